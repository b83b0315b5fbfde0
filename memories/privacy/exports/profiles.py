"""What goes into an export: the fields of each store of the registry, for two profiles.

Access (GDPR Art. 15) has everything. Portability (Art. 20) has what the person provided, knowingly or by using the
service (Article 29 Working Party, WP 242 rev.01, endorsed by the EDPB), and nothing that was inferred: no replies of
the assistant, no scores, no summaries. tests/privacy/test_profiles.py fails when a store or a field is neither here nor
in memories/privacy/exports/omissions.py.
"""

from dataclasses import dataclass, field

from django.apps import apps
from django.db import models
from django.db.models import Q

from memories.models import Author, CaseType, Role, Source, Status, Trust

# Facts that the person stated, unless somebody rejected them.
STATED = Q(trust=Trust.USER, source__in=[Source.EXPLICIT, Source.CORRECTED]) & ~Q(status=Status.REJECTED)


@dataclass(frozen=True)
class ExportSection:
    """A list in the export: the rows of one store. Rows of other stores that belong to a row are `inside` it.

    Access has the columns `fields` and the `computed` ones (memories/privacy/exports/rows.py). Portability has the
    columns `provided` of the rows that `only` selects; an empty `provided` leaves out the section. `order` is the order
    of the rows, `with_rows` is joined to each.
    """

    name: str
    store: str
    fields: tuple[str, ...]
    order: tuple[str, ...] = ("created_at", "pk")
    computed: tuple[str, ...] = ()
    provided: tuple[str, ...] = ()
    only: Q = field(default_factory=Q)
    with_rows: tuple[str, ...] = ()
    inside: tuple["ExportSection", ...] = ()

    @property
    def model(self) -> type[models.Model]:
        return apps.get_model(self.store)

    def columns_in(self, profile: str) -> tuple[str, ...]:
        return self.fields if profile == CaseType.ACCESS else self.provided

    def computed_in(self, profile: str) -> tuple[str, ...]:
        return self.computed if profile == CaseType.ACCESS else ()

    def inside_in(self, profile: str) -> tuple["ExportSection", ...]:
        return tuple(inner for inner in self.inside if inner.columns_in(profile))


_QUEUE = ExportSection(
    "queue",
    "memories.SessionQueue",
    ("due_at", "first_pending_at", "signals", "extracted_number", "attempts", "parked_at", "failure"),
)
_WORKING_MEMORY = ExportSection(
    "working_memory",
    "memories.WorkingMemory",
    ("summary", "extractor", "prompt_version", "left_number", "parked_at", "failure", "updated_at"),
)
_EVIDENCE = ExportSection(
    "evidence",
    "memories.FactEvidence",
    ("turn", "session", "turn_number", "quote", "created_at"),
    computed=("said_by",),
    provided=("turn", "session", "turn_number", "quote"),
    only=Q(turn__role=Role.USER, turn__author__in=["", Author.PERSON]),
    with_rows=("turn",),
)
_REVISIONS = ExportSection(
    "revisions",
    "memories.FactRevision",
    ("version", "verb", "actor_kind", "reason", "change_set", "created_at"),
    order=("version",),
    computed=("run", "before", "after"),
)
_RELATIONS = ExportSection(
    "relations", "memories.FactRelation", ("target", "type", "created_at"), order=("created_at", "pk")
)

_NOTES = ExportSection("notes", "memories.ReviewNote", ("text", "actor_kind", "created_at"))
_CHANGES = ExportSection("changes", "memories.Change", ("table", "action", "uuid", "version", "before"), order=("pk",))
_FILE_VERSIONS = ExportSection(
    "versions",
    "memories.FileVersion",
    (
        "version",
        "verb",
        "content",
        "encoding",
        "size",
        "actor_kind",
        "trust",
        "restored",
        "reason",
        "change_set",
        "created_at",
    ),
    order=("version",),
)
_DREAM_EDITS = ExportSection(
    "edits",
    "memories.DreamEdit",
    ("number", "path", "old_text", "new_text", "state", "code", "file_version"),
    order=("number",),
)

_GROUP = ExportSection("group", "memories.MemoryGroup", ("id", "name", "kind", "created_at", "trashed_at"))
# What the person said in a group; who else said it is theirs.
_FACT_OF_GROUP = ExportSection(
    "fact", "memories.GroupFact", ("id", "group", "content"), provided=("id", "group", "content")
)

SECTIONS = (
    ExportSection(
        "people",
        "memories.EndUser",
        ("id", "external_id", "display_name", "time_zone", "language", "metadata", "capture", "serve", "restricted_at",
         "erased_before", "merged_into", "created_at", "last_seen_at"),
        provided=("id", "external_id", "display_name", "time_zone", "language", "metadata", "merged_into"),
    ),
    ExportSection(
        "sessions",
        "memories.Session",
        ("id", "agent_id", "external_id", "memory_of", "turn_count", "token_count", "round_count", "created_at",
         "last_turn_at", "ended_at"),
        provided=("id", "agent_id", "external_id", "created_at", "last_turn_at", "ended_at"),
        with_rows=("queue", "working_memory"),
        inside=(_QUEUE, _WORKING_MEMORY),
    ),
    ExportSection(
        "turns",
        "memories.Turn",
        ("id", "session", "number", "role", "author", "content", "parts", "name", "tool_calls", "tool_call_id",
         "metadata", "external_id", "token_count", "timestamp", "created_at", "redacted_at", "left_at"),
        order=("session__created_at", "session", "number"),
        provided=("id", "session", "number", "role", "content", "parts", "name", "metadata", "external_id", "timestamp",
                  "created_at"),
        only=Q(role=Role.USER, author__in=["", Author.PERSON]),
    ),
    ExportSection(
        "facts",
        "memories.Fact",
        ("id", "agent_id", "category", "content", "raw", "structured", "triples", "external_id", "document", "key",
         "value", "confidence", "stated_confidence", "importance", "tags", "source", "source_error", "trust",
         "extractor", "prompt_version", "extraction", "flags", "status", "pinned", "locked", "binding", "mentions",
         "version", "scope", "allowed_roles", "created_at", "updated_at", "first_observed_at", "last_confirmed_at",
         "last_recalled_at", "valid_from", "valid_to", "superseded_by", "expires_at", "trashed_at", "decay_score",
         "forget_at"),
        computed=("inferred", "allowed_users", "allowed_others"),
        provided=("id", "agent_id", "content", "raw", "key", "value", "first_observed_at", "last_confirmed_at",
                  "valid_from", "valid_to"),
        only=STATED,
        inside=(_EVIDENCE, _REVISIONS, _RELATIONS),
    ),
    ExportSection(
        "profile_sections",
        "memories.ProfileSection",
        ("id", "agent_id", "section", "summary", "binding", "actor_kind", "extraction", "prompt_version", "trust",
         "evidence", "version", "updated_at", "document"),
        order=("agent_id", "section", "pk"),
    ),
    ExportSection(
        "profile_history",
        "memories.ProfileRevision",
        ("id", "agent_id", "section", "version", "verb", "actor_kind", "before", "after", "binding_before",
         "extraction", "trust", "evidence", "reason", "change_set", "created_at"),
        computed=("run",),
    ),
    ExportSection(
        "episodes",
        "memories.Episode",
        ("id", "session", "first_number", "last_number", "fed_turns", "summary", "key_topics", "actions_taken",
         "outcomes", "importance", "quality", "flaws", "extractor", "prompt_version", "status", "pinned", "binding",
         "version", "started_at", "ended_at", "created_at", "updated_at", "last_recalled_at", "expires_at",
         "trashed_at", "decay_score", "forget_at"),
    ),
    ExportSection(
        "files",
        "memories.MemoryFile",
        ("id", "agent_id", "path", "content", "encoding", "size", "version", "locked", "actor_kind", "trust",
         "created_at", "updated_at", "expires_at", "trashed_at"),
        order=("agent_id", "path", "pk"),
        inside=(_FILE_VERSIONS,),
    ),
    ExportSection(
        "diary",
        "memories.DiaryEntry",
        ("id", "agent_id", "topic", "content", "actor_kind", "trust", "created_at", "trashed_at", "change_set"),
    ),
    ExportSection(
        "groups",
        "memories.GroupMember",
        ("id", "may_write", "created_at"),
        with_rows=("group",),
        inside=(_GROUP,),
    ),
    ExportSection(
        "group_facts",
        "memories.GroupFact",
        ("id", "group", "content", "created_at", "said_at", "trashed_at", "change_set"),
        computed=("about_you",),
    ),
    ExportSection(
        "said_in_groups",
        "memories.GroupEvidence",
        ("id", "agent_id", "actor_kind", "trust", "created_at", "said_at"),
        provided=("id", "created_at", "said_at"),
        with_rows=("fact",),
        inside=(_FACT_OF_GROUP,),
    ),
    ExportSection(
        "dreams",
        "memories.Dream",
        ("id", "agent_id", "kind", "trigger", "actor_kind", "state", "episodes", "proposed", "summary", "failure",
         "extractor", "prompt_version", "calls", "prompt_tokens", "completion_tokens", "cost", "version", "started_at",
         "finished_at", "decided_at", "doubted_at"),
        order=("started_at", "pk"),
        inside=(_DREAM_EDITS,),
    ),
    ExportSection(
        "review_items",
        "memories.ReviewItem",
        ("id", "kind", "reason", "fact", "known", "proposed_section", "episode", "extraction", "state", "version",
         "change_set", "note", "created_at", "decided_at", "lost_at"),
        inside=(_NOTES,),
    ),
    ExportSection(
        "runs",
        "memories.ExtractionRun",
        ("id", "session", "first_number", "last_number", "fed_turns", "status", "attempt", "extractor",
         "prompt_version", "calls", "prompt_tokens", "completion_tokens", "cost", "outcome", "refusals", "failure",
         "started_at", "finished_at"),
        order=("started_at", "pk"),
    ),
    ExportSection("refusals", "memories.FactRefusal", ("kind", "fact", "actor_kind", "created_at")),
    ExportSection(
        "changes",
        "memories.ChangeSet",
        ("id", "item", "fact", "episode", "verb", "actor_kind", "reason", "counts", "created_at", "undone_at"),
        inside=(_CHANGES,),
    ),
    ExportSection(
        "turn_vectors", "memories.TurnVector", ("turn", "session", "language"), order=("pk",),
        computed=("model",), with_rows=("space",),
    ),
    ExportSection(
        "fact_vectors", "memories.FactVector", ("fact", "language"), order=("pk",),
        computed=("model",), with_rows=("space",),
    ),
    ExportSection(
        "episode_vectors", "memories.EpisodeVector", ("episode", "language"), order=("pk",),
        computed=("model",), with_rows=("space",),
    ),
    ExportSection(
        "diary_vectors", "memories.DiaryVector", ("entry", "language"), order=("pk",),
        computed=("model",), with_rows=("space",),
    ),
    ExportSection(
        "graph_entities",
        "memories.GraphEntity",
        ("id", "name", "type", "merged_into", "created_at"),
        order=("name", "pk"),
    ),
    ExportSection(
        "graph_triples",
        "memories.GraphTriple",
        ("id", "agent_id", "subject", "predicate", "object", "valid_from", "valid_to", "confidence", "status", "flags",
         "trust", "extractor", "actor_kind", "fact", "turn", "version", "created_at", "updated_at", "trashed_at"),
        order=("dated_at", "pk"),
    ),
    ExportSection(
        "store_items",
        "memories.StoreItem",
        ("id", "namespace", "key", "value", "index_paths", "ttl_minutes", "expires_at", "created_at", "updated_at"),
        order=("namespace", "key"),
    ),
    ExportSection(
        "store_item_vectors", "memories.StoreItemVector", ("item", "place"), order=("pk",),
        computed=("model",), with_rows=("space",),
    ),
    ExportSection(
        "contexts",
        "memories.LoggedContext",
        ("id", "created_at", "agent_id", "session_id", "asked", "query", "memory", "items", "left_out", "token_count",
         "max_tokens", "as_of"),
    ),
    ExportSection(
        "sent_blocks", "memories.SentBlock", ("id", "sent_at", "agent_id", "kind", "text", "items", "token_count"),
        order=("sent_at", "pk"),
    ),
    ExportSection(
        "kept_answers", "memories.IdempotencyRecord", ("endpoint", "status", "fact", "created_at")
    ),
    ExportSection(
        "cases",
        "memories.PrivacyCase",
        ("id", "type", "state", "asked_by", "channel", "reference", "received_at", "due_at", "opened_kind",
         "verified_at", "verified_how", "verified_kind", "scoped_at", "preview", "policy", "approved_at",
         "approved_kind", "extended_at", "extension_reason", "extension_notice_on", "refusal", "refusal_reason",
         "held_from", "held_at", "hold_reason", "hold_review_on", "counts", "findings", "failure", "started_at",
         "told", "outcome", "receipt", "completed_at", "created_at"),
    ),
    ExportSection(
        "exports",
        "memories.PrivacyExport",
        ("id", "case", "profile", "state", "size", "made_at", "expires_at", "taken_at", "created_at"),
    ),
)  # fmt: skip


def sections_of(profile: str) -> tuple[ExportSection, ...]:
    """The lists of an export of this profile, in their order in the file."""
    return SECTIONS if profile == CaseType.ACCESS else tuple(section for section in SECTIONS if section.provided)
