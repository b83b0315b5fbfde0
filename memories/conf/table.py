"""The table of the numbers: default, lowest and highest, unit, label and what each means.

Validation, the admin's form and docs/settings.md come from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from memories.conf.kinds import Group

# An allergy must not fade, nor who somebody is.
HALF_LIVES: Mapping[str, float | None] = {"identity": None, "relationship": None, "constraint": None}
# Of one attempt, whoever asks (rules.md, 2.7): the workers' time limit rests on it.
MOST_CALLS = 4


@dataclass(frozen=True)
class Rules:
    """The numbers of the rules as they hold for a tenant: seconds, days, counts and shares of 1 as named."""

    debounce_seconds: int = Group.CAPTURE.number(
        30, (1, 300), "s", "Quiet time", "A session is extracted once it was quiet for so long."
    )
    max_wait_seconds: int = Group.CAPTURE.number(
        300, (1, 3_600), "s", "Longest wait", "No turn waits longer, however lively the session."
    )
    rounds_due_at_once: int = Group.CAPTURE.number(
        20, (1, 200), "rounds", "Rounds due at once", "With so many waiting, nobody waits for quiet."
    )
    tokens_due_at_once: int = Group.CAPTURE.number(
        6_000, (100, 100_000), "tokens", "Tokens due at once", "With so much text waiting, nobody waits for quiet."
    )
    batch_tokens: int = Group.EXTRACTION.number(
        8_000, (500, 100_000), "tokens", "Batch", "The most that one attempt reads; more goes in parts."
    )
    known_facts: int = Group.EXTRACTION.number(
        60, (0, 200), "facts", "Known facts shown", "The most facts that the model sees beside a batch."
    )
    near_facts: int = Group.EXTRACTION.number(
        3, (1, 10), "facts", "Near facts judged", "The most that a new fact is held against."
    )
    max_model_calls: int = Group.EXTRACTION.number(
        4, (1, MOST_CALLS), "calls", "Model calls", "The most of one attempt; with 1 nothing is judged."
    )
    lease_seconds: int = Group.EXTRACTION.number(
        120, (2, 3_600), "s", "Lease", "A worker that is silent for so long loses its batch to another."
    )
    max_attempts: int = Group.EXTRACTION.number(
        5, (1, 20), "attempts", "Attempts", "After so many failures a batch is parked."
    )
    min_confidence: float = Group.GATE.number(
        0.7, (0, 1), "", "Least confidence", "Less certain statements are not kept."
    )
    inferred_confidence: float = Group.GATE.number(
        0.8, (0, 1), "", "Confidence without a quote", "What nobody said in these words counts as no surer."
    )
    min_importance: float = Group.GATE.number(
        0.2, (0, 1), "", "Least importance", "Less important statements are not kept."
    )
    confirmed_by: float = Group.GATE.number(
        0.05, (0, 0.5), "", "Confidence gain per mention", "So much surer is a fact that is said again, up to 1."
    )
    capacity: int = Group.GATE.number(
        500,
        (10, 5_000),
        "facts",
        "Capacity",
        "Active ones of a person; the least beyond it are archived.",
        zero="no bound",
    )
    # A column of the tenant's own beside its numbers.
    trust_assistant: bool = False
    window_tokens: int = Group.WINDOW.number(
        8_000, (200, 200_000), "tokens", "Window in tokens", "Beyond it the oldest rounds leave."
    )
    window_rounds: int = Group.WINDOW.number(
        10, (1, 200), "rounds", "Window in rounds", "Beyond it the oldest rounds leave."
    )
    window_keep: float = Group.WINDOW.number(
        0.8, (0.1, 0.95), "", "Share that stays", "Of either limit, at most, when rounds leave."
    )
    # Reading trims the window anyway, so compaction can wait for quiet.
    compaction_quiet_seconds: int = Group.WINDOW.number(
        5, (1, 300), "s", "Quiet before compaction", "A window over its limits waits so long."
    )
    # What leaves a lively window costs two calls each time, so it is not done too often.
    compaction_wait_seconds: int = Group.WINDOW.number(
        120, (1, 3_600), "s", "Longest wait for compaction", "However lively the session."
    )
    idle_seconds: int = Group.EPISODES.number(
        1_800, (1, 86_400), "s", "Idle", "A session that is silent for so long counts as over."
    )
    episode_turns: int = Group.EPISODES.number(
        4, (1, 100), "turns", "Least turns", "Shorter conversations make no episode."
    )
    episode_quality: float = Group.EPISODES.number(
        0.5, (0, 1), "", "Least quality", "Worse summaries are made anew once; still bad ones wait for review."
    )
    half_life_days: float = Group.DECAY.number(
        90.0,
        (1, 3_650),
        "days",
        "Half-life",
        "After it a memory counts half; each doubling of its mentions adds as much.",
    )
    half_lives: Mapping[str, float | None] = Group.DECAY.half_lives(
        HALF_LIVES, (1, 3_650), "Half-life by category", "The others have the one above."
    )
    grace_days: float = Group.DECAY.number(
        30.0, (0, 3_650), "days", "Grace", "Nothing fades so soon after its last mention or recall."
    )
    forget_below: float = Group.FORGETTING.number(
        0.2, (0, 0.9), "", "Facts forgotten below", "Of importance, faded; at 0 no fact is forgotten."
    )
    forget_episodes_below: float = Group.FORGETTING.number(
        0.1, (0, 0.9), "", "Episodes forgotten below", "Of importance, faded; at 0 none is."
    )
    trash_days: int = Group.FORGETTING.number(
        30, (1, 365), "days", "Days in the trash", "So long a memory can be restored; then it is deleted."
    )
    brake_share: float = Group.FORGETTING.number(
        0.2, (0, 1), "", "Brake: share", "Of all memories: a pass that would forget more stops and asks."
    )
    brake_count: int = Group.FORGETTING.number(
        100, (0, 1_000_000), "memories", "Brake: count", "A pass that forgets no more never stops."
    )
    nightly_hour: int = Group.FORGETTING.number(
        3, (0, 23), "o’clock", "Hour of the nightly pass", "In the tenant’s time zone."
    )
    served_confidence: float = Group.SERVING.number(
        0.6, (0, 1), "", "Least confidence of facts", "Less certain facts are kept but not served."
    )
    served_importance: float = Group.SERVING.number(
        0.3, (0, 1), "", "Least importance of episodes", "Minimum decayed importance to be served."
    )
    context_facts: int = Group.SERVING.number(
        20, (0, 500), "facts", "Facts in a context", "Unless the caller says how many; standing ones on top."
    )
    context_episodes: int = Group.SERVING.number(
        3, (0, 50), "episodes", "Episodes in a context", "Unless the caller says how many."
    )
    context_corrections: int = Group.SERVING.number(
        10, (0, 100), "facts", "Standing corrections", "Included in every context, newest first."
    )
    context_standing: int = Group.SERVING.number(
        10, (0, 100), "facts", "Standing instructions", "Preferences and constraints, included in every context."
    )
    staleness_review: bool = Group.UPKEEP.switch(
        "Staleness review", "The model looks through facts that nobody confirmed for long."
    )
    stale_days: int = Group.UPKEEP.number(
        90, (1, 3_650), "days", "Stale after", "Facts not confirmed for so long are looked at."
    )
    stale_least: int = Group.UPKEEP.number(
        3, (1, 1_000), "facts", "Least to look at", "With fewer stale ones a person is left alone."
    )
    stale_most: int = Group.UPKEEP.number(
        10, (1, 1_000), "facts", "Most removed", "Of one person in one pass; corrections never."
    )
    merge_crowded: bool = Group.UPKEEP.switch(
        "Merge crowded categories", "The model merges facts of a person that say much the same."
    )
    crowded_facts: int = Group.UPKEEP.number(
        8, (2, 500), "facts", "Crowded from", "A category with so many facts of a person is looked at."
    )
    merged_most: int = Group.UPKEEP.number(
        8, (2, 20), "facts", "Most merged into one", "Of at least 2 facts and at most so many one is made."
    )
    upkeep_people: int = Group.UPKEEP.number(
        200,
        (1, 100_000),
        "people",
        "Most people a night",
        "So many are looked at in a night; each costs a call.",
    )
    keep_turns_days: int = Group.RETENTION.number(
        0,
        (7, 36_500),
        "days",
        "Turns",
        "Once they are extracted and out of the window; facts stay, without the quotes.",
        zero="for ever",
    )
    keep_episodes_days: int = Group.RETENTION.number(
        0, (7, 36_500), "days", "Episodes", "After they ended; also pinned ones.", zero="for ever"
    )
    keep_runs_days: int = Group.RETENTION.number(
        0, (7, 36_500), "days", "Extraction runs", "What each attempt read, made and cost.", zero="for ever"
    )
    keep_audit_days: int = Group.RETENTION.number(
        0, (90, 36_500), "days", "Audit events", "Sealed ones; the seals stay.", zero="for ever"
    )
    keep_exports_days: int = Group.RETENTION.number(
        7, (1, 90), "days", "Exports of a person's data", "Files that nobody has downloaded."
    )
