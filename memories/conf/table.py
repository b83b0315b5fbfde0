"""The table of the numbers: default, lowest and highest, unit, label and what each means.

Validation, the admin's form and docs/settings.md come from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from memories.categories import CATEGORIES
from memories.conf.kinds import SettingGroup

HALF_LIVES: Mapping[str, float | None] = {name: None for name, row in CATEGORIES.items() if not row.fades}
# Of one attempt, whoever asks (rules.md, 2.7): the workers' time limit rests on it.
MOST_CALLS = 4


@dataclass(frozen=True)
class Rules:
    """The numbers of the rules as they hold for a tenant: seconds, days, counts and shares of 1 as named."""

    debounce_seconds: int = SettingGroup.CAPTURE.number(
        30, (1, 300), "s", "Quiet time", "Extraction starts when a session has had no new turns for this long."
    )
    max_wait_seconds: int = SettingGroup.CAPTURE.number(
        300, (1, 3_600), "s", "Maximum wait", "A turn never waits longer than this, even in a busy session."
    )
    rounds_due_at_once: int = SettingGroup.CAPTURE.number(
        20, (1, 200), "rounds", "Rounds due at once", "With this many rounds waiting, extraction starts immediately."
    )
    tokens_due_at_once: int = SettingGroup.CAPTURE.number(
        6_000,
        (100, 100_000),
        "tokens",
        "Tokens due at once",
        "With this much text waiting, extraction starts immediately.",
    )
    import_files: int = SettingGroup.CAPTURE.number(
        5, (1, 1_000), "files", "Files to import", "So many uploaded files can wait to be imported; more are refused."
    )
    attachment_kilobytes: int = SettingGroup.CAPTURE.number(
        5_000,
        (10, 7_000),
        "kB",
        "Attachments",
        "Largest file that comes with a turn; of larger ones only the turn is stored.",
        zero="no attachments",
    )
    batch_tokens: int = SettingGroup.EXTRACTION.number(
        8_000, (500, 100_000), "tokens", "Batch", "Maximum text that one attempt reads; more is split."
    )
    known_facts: int = SettingGroup.EXTRACTION.number(
        60,
        (0, 200),
        "facts",
        "Existing facts sent",
        "Maximum number of existing facts that the model receives with a batch.",
    )
    near_facts: int = SettingGroup.EXTRACTION.number(
        3,
        (1, 10),
        "facts",
        "Similar facts compared",
        "Maximum number of existing facts that a new fact is compared with.",
    )
    max_model_calls: int = SettingGroup.EXTRACTION.number(
        4, (1, MOST_CALLS), "calls", "Model calls", "Maximum per attempt; with 1, no facts are compared."
    )
    lease_seconds: int = SettingGroup.EXTRACTION.number(
        120,
        (2, 3_600),
        "s",
        "Lease",
        "A batch whose worker is silent for this long goes to another worker.",
    )
    max_attempts: int = SettingGroup.EXTRACTION.number(
        5,
        (1, 20),
        "attempts",
        "Attempts",
        "A batch is parked after this many failures; a permanent error parks it at once.",
    )
    triples: bool = SettingGroup.EXTRACTION.switch(
        "Triples for the graph", "The model also states relations of named things; about 250 more tokens a call."
    )
    min_confidence: float = SettingGroup.GATE.number(
        0.7, (0, 1), "", "Minimum confidence", "Less certain statements are discarded."
    )
    inferred_confidence: float = SettingGroup.GATE.number(
        0.8, (0, 1), "", "Confidence without a quote", "Maximum confidence of a statement without a matching quote."
    )
    min_importance: float = SettingGroup.GATE.number(
        0.2, (0, 1), "", "Minimum importance", "Less important statements are discarded."
    )
    confirmed_by: float = SettingGroup.GATE.number(
        0.05, (0, 0.5), "", "Confidence gain per mention", "Added each time a fact is mentioned again, up to 1."
    )
    capacity: int = SettingGroup.GATE.number(
        500,
        (10, 5_000),
        "facts",
        "Capacity",
        "Active facts per person; beyond it, the least important are archived.",
        zero="no bound",
    )
    review_target_hours: int = SettingGroup.REVIEW.number(
        48, (0, 8_760), "hours", "Target", "What waits longer for a decision is marked as late.", zero="no target"
    )
    # A column of the tenant's own beside its numbers.
    trust_assistant: bool = False
    window_tokens: int = SettingGroup.WINDOW.number(
        8_000, (200, 200_000), "tokens", "Window in tokens", "Beyond this, the oldest rounds are evicted."
    )
    window_rounds: int = SettingGroup.WINDOW.number(
        10, (1, 200), "rounds", "Window in rounds", "Beyond this, the oldest rounds are evicted."
    )
    window_keep: float = SettingGroup.WINDOW.number(
        0.8, (0.1, 0.95), "", "Share to keep", "Maximum share of either limit that remains after eviction."
    )
    # Reading trims the window anyway, so compaction can wait for quiet.
    compaction_quiet_seconds: int = SettingGroup.WINDOW.number(
        5,
        (1, 300),
        "s",
        "Quiet before compaction",
        "A window over its limits is compacted after this long without new turns.",
    )
    # What leaves a lively window costs two calls each time, so it is not done too often.
    compaction_wait_seconds: int = SettingGroup.WINDOW.number(
        120, (1, 3_600), "s", "Maximum wait for compaction", "Even in a busy session."
    )
    idle_seconds: int = SettingGroup.EPISODES.number(
        1_800, (1, 86_400), "s", "Idle", "A session without new turns for this long counts as ended."
    )
    episode_turns: int = SettingGroup.EPISODES.number(
        4, (1, 100), "turns", "Minimum turns", "Shorter conversations get no episode."
    )
    episode_quality: float = SettingGroup.EPISODES.number(
        0.5,
        (0, 1),
        "",
        "Minimum quality",
        "Worse summaries are regenerated once; still bad ones wait for review.",
    )
    half_life_days: float = SettingGroup.DECAY.number(
        90.0,
        (1, 3_650),
        "days",
        "Half-life",
        "Time after which strength halves; each doubling of mentions adds the same time.",
    )
    half_lives: Mapping[str, float | None] = SettingGroup.DECAY.half_lives(
        HALF_LIVES, (1, 3_650), "Half-life by category", "Other categories use the half-life above."
    )
    grace_days: float = SettingGroup.DECAY.number(
        30.0,
        (0, 3_650),
        "days",
        "Grace period",
        "A memory does not fade for this long after its last mention or recall.",
    )
    forget_below: float = SettingGroup.FORGETTING.number(
        0.2,
        (0, 0.9),
        "",
        "Facts forgotten below",
        "Decayed importance below which a fact is forgotten; with 0, none is.",
    )
    forget_episodes_below: float = SettingGroup.FORGETTING.number(
        0.1,
        (0, 0.9),
        "",
        "Episodes forgotten below",
        "Decayed importance below which an episode is forgotten; with 0, none is.",
    )
    trash_days: int = SettingGroup.FORGETTING.number(
        30, (1, 365), "days", "Days in the trash", "A memory can be restored for this long and is then deleted."
    )
    brake_share: float = SettingGroup.FORGETTING.number(
        0.2,
        (0, 1),
        "",
        "Safety limit: share",
        "A pass that would forget a larger share of all memories stops and asks.",
    )
    brake_count: int = SettingGroup.FORGETTING.number(
        100, (0, 1_000_000), "memories", "Safety limit: count", "A pass that forgets no more than this never stops."
    )
    nightly_hour: int = SettingGroup.FORGETTING.number(
        3, (0, 23), "o’clock", "Hour of the nightly pass", "In the tenant’s time zone."
    )
    served_confidence: float = SettingGroup.SERVING.number(
        0.6, (0, 1), "", "Minimum confidence of facts", "Less certain facts are kept but not served."
    )
    served_importance: float = SettingGroup.SERVING.number(
        0.3, (0, 1), "", "Minimum importance of episodes", "Minimum decayed importance to be served."
    )
    context_facts: int = SettingGroup.SERVING.number(
        20,
        (0, 500),
        "facts",
        "Facts in a context",
        "Unless the request sets a number; standing instructions are extra.",
    )
    context_episodes: int = SettingGroup.SERVING.number(
        3, (0, 50), "episodes", "Episodes in a context", "Unless the request sets a number."
    )
    context_corrections: int = SettingGroup.SERVING.number(
        10, (0, 100), "facts", "Standing corrections", "Included in every context, newest first."
    )
    context_standing: int = SettingGroup.SERVING.number(
        10, (0, 100), "facts", "Standing instructions", "Preferences and constraints, included in every context."
    )
    mcp_tenant_keys: bool = SettingGroup.SERVING.switch(
        "MCP for any end user",
        "Keys for all end users work at /mcp, too. Each request names the person.",
    )
    files_per_person: int = SettingGroup.FILES.number(
        1_000, (1, 100_000), "files", "Files per person", "Beyond it, new files are refused; deleted ones do not count."
    )
    file_kilobytes: int = SettingGroup.FILES.number(
        100, (1, 1_000), "kB", "Largest file", "In UTF-8; a kilobyte is 1,000 bytes."
    )
    scratch_days: int = SettingGroup.FILES.number(
        7, (1, 365), "days", "Scratch files", "A file below /temp/ is deleted this long after its last change."
    )
    version_days: int = SettingGroup.FILES.number(
        90,
        (7, 3_650),
        "days",
        "Old versions",
        "A version is deleted this long after a newer one has replaced it.",
        zero="as long as the file",
    )
    seed_files: bool = SettingGroup.FILES.switch(
        "First file",
        "/memories/AGENTS.md has a short first text until it is written.",
        default=True,
    )
    diary_entries: int = SettingGroup.DIARY.number(
        10_000,
        (10, 1_000_000),
        "entries",
        "Entries per person",
        "Of all agents; beyond it, new entries are refused; deleted ones do not count.",
        zero="no bound",
    )
    trajectories: int = SettingGroup.TRAJECTORIES.number(
        10_000,
        (10, 1_000_000),
        "trajectories",
        "Trajectories per person",
        "Of all agents; beyond it, new ones are refused.",
        zero="no bound",
    )
    trajectory_steps: int = SettingGroup.TRAJECTORIES.number(
        1_000, (10, 10_000), "steps", "Steps per trajectory", "Beyond it, more steps are refused."
    )
    gateway_trajectories: bool = SettingGroup.TRAJECTORIES.switch(
        "Trajectories of the gateway",
        "Tool calls that pass the gateway become a trajectory of their session.",
    )
    group_facts: int = SettingGroup.GROUPS.number(
        1_000,
        (10, 100_000),
        "facts",
        "Facts per group",
        "Beyond it, new facts of the group are refused; deleted ones do not count.",
        zero="no bound",
    )
    dreams: bool = SettingGroup.DREAMS.switch(
        "Dreams", "A model edits memory files from new episodes; the tenant’s page names them."
    )
    dream_hours: int = SettingGroup.DREAMS.number(
        2,
        (1, 720),
        "hours",
        "Interval of dreams",
        "At least this long between two dreams about a person; each costs a call.",
    )
    dream_hour: int = SettingGroup.DREAMS.number(
        0,
        (0, 24),
        "o’clock",
        "Hour of dreams",
        "Once a day from this hour on, in the tenant’s time zone.",
        zero="by the interval",
    )
    dreams_wait: bool = SettingGroup.DREAMS.switch(
        "Dreams wait for approval", "An operator approves each dream before it is applied."
    )
    reflections: bool = SettingGroup.DREAMS.switch(
        "Reflections", "A model proposes patterns over many episodes as facts; they always wait."
    )
    reflection_days: int = SettingGroup.DREAMS.number(
        7,
        (1, 90),
        "days",
        "Interval of reflections",
        "Between two reflections about a person and agent; each costs a call.",
    )
    skills: bool = SettingGroup.SKILLS.switch(
        "Skills", "Procedures that trajectories teach; agents get those that were approved."
    )
    skill_days: int = SettingGroup.SKILLS.number(
        1,
        (1, 90),
        "days",
        "Interval of proposals",
        "Between two looks at a kind of task; each may cost a call of the model.",
    )
    skill_trajectories: int = SettingGroup.SKILLS.number(
        3,
        (2, 100),
        "trajectories",
        "Trajectories for a skill",
        "So many must have succeeded, of at least two people, before a skill is proposed.",
    )
    store_items: int = SettingGroup.STORE.number(
        100_000,
        (100, 10_000_000),
        "items",
        "Number of items",
        "Of one person, or of the tenant’s own; beyond it, new items are refused.",
        zero="no bound",
    )
    store_value_kilobytes: int = SettingGroup.STORE.number(
        256, (1, 4_000), "kB", "Largest value", "A larger value is refused, measured as JSON."
    )
    staleness_review: bool = SettingGroup.UPKEEP.switch(
        "Staleness review", "The model reviews facts that were not confirmed for a long time."
    )
    stale_days: int = SettingGroup.UPKEEP.number(
        90, (1, 3_650), "days", "Stale after", "Facts that were not confirmed for this long are reviewed."
    )
    stale_least: int = SettingGroup.UPKEEP.number(
        3, (1, 1_000), "facts", "Minimum to review", "A person with fewer stale facts is skipped."
    )
    stale_most: int = SettingGroup.UPKEEP.number(
        10, (1, 1_000), "facts", "Maximum removals", "Per person and pass; corrections are never removed."
    )
    merge_crowded: bool = SettingGroup.UPKEEP.switch(
        "Merge crowded categories", "The model merges similar facts of a person."
    )
    crowded_facts: int = SettingGroup.UPKEEP.number(
        8, (2, 500), "facts", "Crowded from", "A category with this many facts of a person is reviewed."
    )
    merged_most: int = SettingGroup.UPKEEP.number(
        8, (2, 20), "facts", "Maximum merged into one", "From 2 up to this many facts are merged into one."
    )
    upkeep_people: int = SettingGroup.UPKEEP.number(
        200,
        (1, 100_000),
        "people",
        "Maximum people per night",
        "This many people are reviewed per night; each costs a call.",
    )
    keep_turns_days: int = SettingGroup.RETENTION.number(
        0,
        (7, 36_500),
        "days",
        "Turns",
        "Only extracted ones outside the window; facts stay, without the quotes.",
        zero="for ever",
    )
    keep_episodes_days: int = SettingGroup.RETENTION.number(
        0, (7, 36_500), "days", "Episodes", "Counted from their end; pinned episodes are included.", zero="for ever"
    )
    keep_runs_days: int = SettingGroup.RETENTION.number(
        0, (7, 36_500), "days", "Extraction runs", "What each attempt read, created and cost.", zero="for ever"
    )
    keep_audit_days: int = SettingGroup.RETENTION.number(
        0, (90, 36_500), "days", "Audit events", "Only sealed events; the seals stay.", zero="for ever"
    )
    keep_exports_days: int = SettingGroup.RETENTION.number(
        7, (1, 90), "days", "Exports of a person's data", "Files that were not downloaded."
    )
    keep_store_days: int = SettingGroup.RETENTION.number(
        0,
        (7, 36_500),
        "days",
        "Items of the store",
        "Since they were last written; also those of the tenant’s own.",
        zero="for ever",
    )
    keep_diary_days: int = SettingGroup.RETENTION.number(
        0, (7, 36_500), "days", "Diary entries", "What agents noted for themselves.", zero="for ever"
    )
    keep_trajectories_days: int = SettingGroup.RETENTION.number(
        90,
        (7, 36_500),
        "days",
        "Trajectories",
        "Since their last step or outcome; with their steps.",
        zero="for ever",
    )
    keep_contexts_days: int = SettingGroup.RETENTION.number(
        14, (1, 90), "days", "Log of contexts", "Which memories each context had; off and on with the tenant."
    )
