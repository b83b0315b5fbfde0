"""What goes into an export: lists of the stores of the registry, for two profiles; their columns are those that the
models declare (memories/models/columns.py).

Access (GDPR Art. 15) has everything. Portability (Art. 20) has what the person provided, knowingly or by using the
service (Article 29 Working Party, WP 242 rev.01, endorsed by the EDPB), and nothing that was inferred: no replies of
the assistant, no scores, no summaries. tests/privacy/test_profiles.py fails when a store or a field is neither exported
nor left out with a reason.
"""

from dataclasses import dataclass, field

from django.apps import apps
from django.db import models
from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.kinds import EMBEDDED, PLAIN
from memories.models import Author, CaseType, Role, Source, Status, Trust
from memories.models.columns import columns_of
from memories.trust import CORRECTIONS

# Facts that the person stated, unless somebody rejected them.
STATED = Q(trust=Trust.USER, source__in=[Source.EXPLICIT, *CORRECTIONS]) & ~Q(status=Status.REJECTED)


@dataclass(frozen=True)
class ExportSection:
    """A list in the export: the rows of one store. Rows of other stores that belong to a row are `inside` it.

    Access has the columns `fields` and the `computed` ones (memories/privacy/exports/rows.py). Portability has the
    columns `provided` of the rows that `only` selects; an empty `provided` leaves out the section. `order` is the order
    of the rows, `with_rows` is joined to each. `title` is its heading for people; inside of another it has none.
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
    title: Promise | str = ""

    @property
    def model(self) -> type[models.Model]:
        return apps.get_model(self.store)

    @property
    def is_data_only(self) -> bool:
        """Whether it is of vectors: numbers that mean nothing to people stand in data.json alone."""
        return "model" in self.computed

    def columns_in(self, profile: str) -> tuple[str, ...]:
        return self.fields if profile == CaseType.ACCESS else self.provided

    def computed_in(self, profile: str) -> tuple[str, ...]:
        return self.computed if profile == CaseType.ACCESS else ()

    def inside_in(self, profile: str) -> tuple["ExportSection", ...]:
        return tuple(inner for inner in self.inside if inner.columns_in(profile))


def _section(
    name: str,
    store: str,
    title: Promise | str = "",
    *,
    order: tuple[str, ...] = ("created_at", "pk"),
    computed: tuple[str, ...] = (),
    only: Q | None = None,
    with_rows: tuple[str, ...] = (),
    inside: tuple[ExportSection, ...] = (),
) -> ExportSection:
    columns = columns_of(apps.get_model(store))
    return ExportSection(
        name, store, columns.exported, order, computed, columns.provided, only or Q(), with_rows, inside, title
    )


def _vectors(name: str, store: str, title: Promise | str) -> ExportSection:
    return _section(f"{name}_vectors", store, title, order=("pk",), computed=("model",), with_rows=("space",))


_QUEUE = _section("queue", "memories.SessionQueue")
_WORKING_MEMORY = _section("working_memory", "memories.WorkingMemory")
_EVIDENCE = _section(
    "evidence",
    "memories.FactEvidence",
    computed=("said_by",),
    only=Q(turn__role=Role.USER, turn__author__in=["", Author.PERSON]),
    with_rows=("turn",),
)
_REVISIONS = _section("revisions", "memories.FactRevision", order=("version",), computed=("run", "before", "after"))
_RELATIONS = _section("relations", "memories.FactRelation", order=("created_at", "pk"))

_NOTES = _section("notes", "memories.ReviewNote")
_CHANGES = _section("changes", "memories.Change", order=("pk",))
_FILE_VERSIONS = _section("versions", "memories.FileVersion", order=("version",))
_STEPS = _section("steps", "memories.TrajectoryStep", order=("position",))
_DREAM_EDITS = _section("edits", "memories.DreamEdit", order=("number",))

_PASSAGES = _section("passages", "memories.Passage", order=("number",), only=Q(author=Author.APPLICATION))

_GROUP = _section("group", "memories.MemoryGroup")
# What the person said in a group; who else said it is theirs.
_FACT_OF_GROUP = ExportSection(
    "fact", "memories.GroupFact", ("id", "group", "content"), provided=("id", "group", "content")
)

SECTIONS = (
    _section("people", "memories.EndUser", _("Your record")),
    _section(
        "sessions",
        "memories.Session",
        _("Conversations"),
        with_rows=("queue", "working_memory"),
        inside=(_QUEUE, _WORKING_MEMORY),
    ),
    _section(
        "turns",
        "memories.Turn",
        _("What was said"),
        order=("session__created_at", "session", "number"),
        only=Q(role=Role.USER, author__in=["", Author.PERSON]),
    ),
    _section("attachments", "memories.Attachment", _("Files that came with what was said"), inside=(_PASSAGES,)),
    _section(
        "facts",
        "memories.Fact",
        _("What is remembered"),
        computed=("inferred", "allowed_users", "allowed_others"),
        only=STATED,
        inside=(_EVIDENCE, _REVISIONS, _RELATIONS),
    ),
    _section("profile_sections", "memories.ProfileSection", _("Your profile"), order=("agent_id", "section", "pk")),
    _section("profile_history", "memories.ProfileRevision", _("Changes of the profile"), computed=("run",)),
    _section("episodes", "memories.Episode", _("Episodes")),
    _section(
        "files",
        "memories.MemoryFile",
        _("Files that agents keep about you"),
        order=("agent_id", "path", "pk"),
        inside=(_FILE_VERSIONS,),
    ),
    *(_section(kind.plural, kind.model._meta.label, kind.plain.exported) for kind in PLAIN if kind.plain),
    _section("trajectories", "memories.Trajectory", _("What agents did for you, step by step"), inside=(_STEPS,)),
    _section(
        "skill_trials",
        "memories.SkillTrial",
        _("Procedures that were tried in your sessions"),
        order=("noted_at", "pk"),
    ),
    _section("groups", "memories.GroupMember", _("Groups that you belong to"), with_rows=("group",), inside=(_GROUP,)),
    _section(
        "group_facts",
        "memories.GroupFact",
        _("What groups share that is about you, or that you alone said"),
        computed=("about_you",),
    ),
    _section(
        "said_in_groups",
        "memories.GroupEvidence",
        _("What you said in groups"),
        with_rows=("fact",),
        inside=(_FACT_OF_GROUP,),
    ),
    _section(
        "dreams",
        "memories.Dream",
        _("What a model changed in these files"),
        order=("started_at", "pk"),
        inside=(_DREAM_EDITS,),
    ),
    _section("review_items", "memories.ReviewItem", _("Review items"), inside=(_NOTES,)),
    _section("runs", "memories.ExtractionRun", _("Runs of the model"), order=("started_at", "pk")),
    _section("refusals", "memories.FactRefusal", _("Permanent refusals")),
    _section("changes", "memories.ChangeSet", _("Changes that people made"), inside=(_CHANGES,)),
    _vectors("turn", "memories.TurnVector", _("Vectors of turns")),
    *(
        _vectors(kind.name, kind.embedded.vectors._meta.label, kind.embedded.exported)
        for kind in EMBEDDED
        if kind.embedded
    ),
    _section(
        "graph_entities", "memories.GraphEntity", _("People, places and things in your graph"), order=("name", "pk")
    ),
    _section("graph_triples", "memories.GraphTriple", _("What holds between them, and when"), order=("dated_at", "pk")),
    _section("store_items", "memories.StoreItem", _("What agents keep under your id"), order=("namespace", "key")),
    _vectors("store_item", "memories.StoreItemVector", _("Vectors of store items")),
    _section("contexts", "memories.LoggedContext", _("What agents were given about you")),
    _section(
        "sent_blocks", "memories.SentBlock", _("What your conversations carry of your memory"), order=("sent_at", "pk")
    ),
    _section("kept_answers", "memories.IdempotencyRecord", _("Copies of API responses")),
    _section("cases", "memories.PrivacyCase", _("Requests about your data")),
    _section("exports", "memories.PrivacyExport", _("Copies like this one")),
)
OF_VECTORS = frozenset(section.store for section in SECTIONS if section.is_data_only)


def sections_of(profile: str) -> tuple[ExportSection, ...]:
    """The lists of an export of this profile, in their order in the file."""
    return SECTIONS if profile == CaseType.ACCESS else tuple(section for section in SECTIONS if section.provided)
