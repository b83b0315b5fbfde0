"""What a roll back selects: what the runs of a session, agent, key or time made of facts and profiles."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, Subquery, UUIDField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from memories.models import (
    ActorKind,
    EndUser,
    ExtractionRun,
    Fact,
    FactEvidence,
    FactRevision,
    ProfileRevision,
    ProfileSection,
    Status,
    Tenant,
    Turn,
)

ROLL_BACK, UNDO = NEUTRAL = ("roll_back", "undo_roll_back")


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


def touched_sections(selector: Selector) -> QuerySet[Any]:
    """Sections of profiles that these runs wrote, with `first` and `stays` as in touched()."""
    written = ProfileRevision.objects.filter(actor_kind=ActorKind.RUN, version__isnull=False)
    selected = written.filter(extraction__in=runs(selector))
    named = {name: OuterRef(name) for name in ("end_user", "agent_id", "section")}
    own = ProfileRevision.objects.filter(**named, version__isnull=False)
    first = own.filter(pk__in=selected.values("pk")).order_by("version").values("version")[:1]
    others = own.filter(version__gt=OuterRef("first")).exclude(pk__in=selected.values("pk")).exclude(verb__in=NEUTRAL)
    people = selected.values("end_user")
    rows = ProfileSection.objects.filter(tenant=selector.tenant, end_user__in=people).annotate(
        first=Subquery(first), last=Subquery(own.order_by("-version").values("verb")[:1])
    )
    return rows.filter(first__isnull=False).exclude(last=ROLL_BACK).annotate(stays=Q(binding=True) | Q(Exists(others)))


def touched(selector: Selector) -> QuerySet[Any]:
    """Facts that these revisions made or changed, but for those in the trash, or rolled back since.

    Each with the `first` version that they made, and `stays`: an operator's word, or changed by somebody else since. A
    roll back and its undoing are nobody's change.
    """
    selected = revisions(selector).values("pk")
    own = FactRevision.objects.filter(fact=OuterRef("pk"))
    first = own.filter(pk__in=selected).order_by("version").values("version")[:1]
    others = own.filter(version__gt=OuterRef("first")).exclude(pk__in=selected).exclude(verb__in=NEUTRAL)
    facts: QuerySet[Any] = Fact.objects.filter(tenant=selector.tenant, pk__in=revisions(selector).values("fact"))
    if selector.end_user:
        facts = facts.filter(end_user=selector.end_user)
    facts = facts.exclude(status=Status.TRASHED).annotate(
        first=Subquery(first), last=Subquery(own.order_by("-version").values("verb")[:1])
    )
    facts = facts.annotate(stays=Q(binding=True) | Q(Exists(others)))
    return facts.exclude(last=ROLL_BACK)


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
