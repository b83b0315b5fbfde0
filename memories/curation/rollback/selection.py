"""What a roll back selects: what runs of a session, agent, key or time made, and files and memories of plain kinds that
a key or agent wrote; triples are in triples.py."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import CharField, Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery, UUIDField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from memories.kinds import Kind
from memories.models import (
    ActorKind,
    Change,
    ChangeSet,
    DreamedEpisode,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    FactEvidence,
    FactRevision,
    FileVersion,
    GroupEvidence,
    MemoryFile,
    ProfileRevision,
    ProfileSection,
    Status,
    Tenant,
    Turn,
)

ROLL_BACK, UNDO = NEUTRAL = ("roll_back", "undo_roll_back")
# What a change names a revision by.
ID_IN_CHANGES: dict[type[Any], str] = {FactRevision: "number", ProfileRevision: "uuid"}
Revised = TypeVar("Revised", FactRevision, ProfileRevision)


@dataclass(frozen=True)
class Selector:
    """Which origins to roll back: a row must match all that are given, of which one is a session, agent, key or time.

    An agent, a session or a key may be of one person or, without `end_user`, of all people of the tenant. The time ends
    before `until`.
    """

    tenant: Tenant
    end_user: EndUser | None = None
    session: uuid.UUID | None = None
    agent_id: str = ""
    key: uuid.UUID | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        if not any((self.session, self.agent_id, self.key, self.since, self.until)):
            raise TypeError("a roll back needs a session, an agent, a key or a time")

    def owner(self) -> QuerySet[EndUser]:
        """The one person whom it names, by themselves or by their session; nobody: it is of all people."""
        people = EndUser.objects.filter(tenant=self.tenant)
        if self.end_user:
            return people.filter(pk=self.end_user.pk)
        return people.filter(sessions=self.session) if self.session else people.none()

    def as_json(self) -> dict[str, str]:
        """What was given but for the person: ids of rows, the agent's name, times as ISO-8601."""
        given = {
            "session": self.session,
            "agent": self.agent_id,
            "key": self.key,
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
        }
        return {name: str(value) for name, value in given.items() if value}


def runs(selector: Selector) -> QuerySet[ExtractionRun]:
    """The extraction runs of the selected sessions and time; of a key, those whose range holds turns that it posted."""
    given = {
        "end_user": selector.end_user,
        "session": selector.session,
        "session__agent_id": selector.agent_id or None,
        "started_at__gte": selector.since,
        "started_at__lt": selector.until,
    }
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    found = ExtractionRun.objects.filter(tenant=selector.tenant, **named)
    if selector.key is None:
        return found
    posted = Turn.objects.filter(session=OuterRef("session"), key_id=selector.key)
    return found.filter(Exists(posted.filter(number__range=(OuterRef("first_number"), OuterRef("last_number")))))


def revisions(selector: Selector) -> QuerySet[FactRevision]:
    """What these runs did to facts; of a key, what rests on its turns, and what it stated itself."""
    texts = runs(selector).annotate(text=Cast("pk", CharField())).values("text")
    by_runs = Q(actor_kind=ActorKind.RUN, actor_id__in=texts)
    if selector.key is None:
        return FactRevision.objects.filter(by_runs)
    # A run's evidence has the time of its revisions. What it superseded has none of its own: its successor has.
    cited = FactEvidence.objects.filter(turn__key_id=selector.key, created_at=OuterRef("created_at"))
    resting = Exists(cited.filter(fact=OuterRef("fact"))) | Exists(cited.filter(fact=OuterRef("successor")))
    # Nor has a fact that it split, and that begins later since: what came between its parts has.
    between = _with_successor(FactRevision.objects.filter(actor_kind=ActorKind.RUN)).filter(
        Exists(cited.filter(fact=OuterRef("fact"))),
        version=1,
        successor=OuterRef("fact"),
        created_at=OuterRef("created_at"),
        fact__end_user=OuterRef("fact__end_user"),
    )
    split = Q(before__has_key="valid_from") & Q(Exists(between))
    revised = _with_successor(FactRevision.objects.all())
    return revised.filter((by_runs & (Q(resting) | split)) | _stated(selector))


def _with_successor(rows: QuerySet[FactRevision]) -> QuerySet[Any]:
    """Each revision with the `successor` that it gave its fact."""
    return rows.annotate(successor=Cast(KeyTextTransform("superseded_by", "after"), UUIDField()))


def counted(revised: QuerySet[Revised]) -> QuerySet[Revised]:
    """The revisions that count, the last one first: neither a roll back and its undoing, which are nobody's change, nor
    what roll backs took back, or wait to take back, that are not undone."""
    named = {ID_IN_CHANGES[revised.model]: OuterRef("pk")}
    taken = Change.objects.filter(table=Change.Table.REVISION, action=Change.Action.TAKEN, **named)
    not_undone = taken.filter(change_set__undone_at=None)
    return revised.exclude(verb__in=NEUTRAL).exclude(Exists(not_undone)).order_by("-version")


def _with_base(rows: QuerySet[Any], own: QuerySet[Any], selected: QuerySet[Any]) -> QuerySet[Any]:
    """Rows of whose `own` revisions some of the `selected` count, each with the version `base` that is left of it
    without them (0: nothing), and `stays`: an operator's word, or somebody else changed it since."""
    ids = selected.values("pk")
    # Not every row has its first revisions.
    bottom = own.order_by("version").values(number=F("version") - 1)[:1]
    left = counted(own).exclude(pk__in=ids).values("version")[:1]
    rows = rows.filter(Exists(counted(own).filter(pk__in=ids))).annotate(
        base=Coalesce(Subquery(left), Subquery(bottom), output_field=IntegerField()),
        last=Subquery(counted(own).values("version")[:1]),
    )
    found: QuerySet[Any] = rows.annotate(stays=Q(binding=True) | Q(base=F("last")))
    return found


def section_revisions(selector: Selector) -> QuerySet[ProfileRevision]:
    """What these runs wrote into profiles."""
    written = ProfileRevision.objects.filter(actor_kind=ActorKind.RUN, version__isnull=False)
    return written.filter(extraction__in=runs(selector))


def touched_sections(selector: Selector) -> QuerySet[Any]:
    """Sections of profiles that these runs wrote, with `base` and `stays`."""
    selected = section_revisions(selector)
    named = {name: OuterRef(name) for name in ("end_user", "agent_id", "section")}
    own = ProfileRevision.objects.filter(**named, version__isnull=False)
    rows = ProfileSection.objects.filter(tenant=selector.tenant, end_user__in=selected.values("end_user"))
    return _with_base(rows, own, selected)


def read_by_dreams(selector: Selector) -> QuerySet[Episode]:
    """Episodes of the selected sessions that dreams read, for what these wrote nobody takes back: of an agent a roll
    back takes back the files."""
    if selector.agent_id:
        return Episode.objects.none()
    of = {"session": selector.session} if selector.session else {"session__in": runs(selector).values("session")}
    dreamt = DreamedEpisode.objects.filter(episode=OuterRef("pk"), dream__isnull=False)
    return Episode.objects.filter(Exists(dreamt), tenant=selector.tenant, **of)


def touched_files(selector: Selector) -> QuerySet[Any]:
    """Memory files that the key, or any key or dream as the agent, wrote or deleted, but for those rolled back since.

    Each has the `first` version that they made, and `stays`: locked, or changed by somebody else since. A roll back and
    its undoing are nobody's change.

    Files are of no session and no run, so a session or a time alone selects none. What a clearing deleted has an undo
    of its own. A file also stays if the version before is gone by now.
    """
    if selector.session or not (selector.key or selector.agent_id):
        return MemoryFile.objects.annotate(first=Value(1), stays=Value(True)).none()
    given = {
        "actor_id": str(selector.key) if selector.key else None,
        "file__agent_id": selector.agent_id or None,
        "file__end_user": selector.end_user,
        "created_at__gte": selector.since,
        "created_at__lt": selector.until,
    }
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    by_keys = Q(actor_kind=ActorKind.KEY, change_set=None)
    # All versions of a dream have its id as their change set.
    written = FileVersion.objects.filter(by_keys | Q(actor_kind=ActorKind.DREAM), tenant=selector.tenant, **named)
    own, made_by = FileVersion.objects.filter(file=OuterRef("pk")), ChangeSet.objects.filter(tenant=selector.tenant)
    first = own.filter(pk__in=written.values("pk")).order_by("version").values("version")[:1]
    neutral = made_by.filter(verb__in=NEUTRAL).values("pk")
    others = (
        own.filter(version__gt=OuterRef("first")).exclude(pk__in=written.values("pk")).exclude(change_set__in=neutral)
    )
    rolled_back = own.filter(version=OuterRef("version"), change_set__in=made_by.filter(verb=ROLL_BACK).values("pk"))
    files: QuerySet[Any] = MemoryFile.objects.filter(tenant=selector.tenant, pk__in=written.values("file"))
    files = files.exclude(Exists(rolled_back)).annotate(first=Subquery(first))
    # What they made and deleted again.
    files = files.exclude(first=1, trashed_at__isnull=False)
    is_lost = Q(first__gt=1) & ~Q(Exists(own.filter(version=OuterRef("first") - 1)))
    judged: QuerySet[Any] = files.annotate(stays=Q(locked=True) | Q(Exists(others)) | is_lost)
    return judged


def touched_rows(selector: Selector, kind: Kind) -> QuerySet[Any]:
    """Memories of a plain kind that the key, or any key as the agent, wrote, but for those in the trash."""
    return _by_keys(selector, kind.rows.present(), at="created_at")


def touched_statements(selector: Selector) -> QuerySet[GroupEvidence]:
    """What the key, or any key as the agent, stated in groups for their members, but for what is in the trash.

    Of a member's statement that two keys made the last one counts.
    """
    return _by_keys(selector, GroupEvidence.objects.filter(fact__trashed_at=None), at="said_at")


def _by_keys(selector: Selector, rows: QuerySet[Any], *, at: str) -> QuerySet[Any]:
    """Those of the rows that the key, or any key as the agent, wrote; like files, they are of no session and no run."""
    if selector.session or not (selector.key or selector.agent_id):
        return rows.none()
    given = {
        "actor_id": str(selector.key) if selector.key else None,
        "agent_id": selector.agent_id or None,
        "end_user": selector.end_user,
        f"{at}__gte": selector.since,
        f"{at}__lt": selector.until,
    }
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return rows.filter(tenant=selector.tenant, actor_kind=ActorKind.KEY, **named)


def touched(selector: Selector) -> QuerySet[Any]:
    """Facts that these revisions made or changed, but for those in the trash, with `base` and `stays`."""
    selected = revisions(selector)
    facts: QuerySet[Any] = Fact.objects.filter(tenant=selector.tenant, pk__in=selected.values("fact"))
    if selector.end_user:
        facts = facts.filter(end_user=selector.end_user)
    own = FactRevision.objects.filter(fact=OuterRef("pk"))
    return _with_base(facts.exclude(status=Status.TRASHED), own, selected)


def _stated(selector: Selector) -> Q:
    """Facts that the key itself stated, and those that these superseded; they come from no session."""
    if selector.session:
        return Q(pk__in=[])
    given = {
        "fact__agent_id": selector.agent_id or None,
        "created_at__gte": selector.since,
        "created_at__lt": selector.until,
    }
    named: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return Q(actor_kind=ActorKind.KEY, actor_id=str(selector.key), verb__in=["add", "supersede", "split"], **named)
