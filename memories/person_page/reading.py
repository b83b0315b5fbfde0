"""What the page shows of a person: the rows that an export for them has, never those of others.

Which rows these are the privacy registry says (memories/privacy/registry.py), the same as of exports and erasures.
"""

import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F, Model, OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.functions import Left
from django.utils import timezone
from django.utils.functional import Promise

from memories.admin.trail.sentences import sentence_of
from memories.categories import CATEGORIES
from memories.exceptions import NotFound
from memories.models import (
    CLOSED,
    ActorKind,
    AuditEvent,
    CaseType,
    EndUser,
    ExportState,
    Fact,
    FactEvidence,
    FactRevision,
    PrivacyExport,
    Session,
    Source,
    Status,
    Trust,
    Turn,
)
from memories.person_page import words
from memories.privacy import registry

# Facts of a page, turns behind a fact in a list, other rows of a list.
FACTS, CITED, ROWS = 100, 3, 50
# Turns behind the fact of its own page.
ALL_CITED = 50
LONGEST_QUOTE = 400
# What made a fact that a key stated or an import brought: nobody heard the person say it.
_STATED = ("api", "import")


@dataclass(frozen=True)
class Said:
    """A turn that a fact rests on: who said it, what, and when."""

    who: Promise
    text: str
    at: datetime | None


@dataclass(frozen=True)
class ShownFact:
    fact: Fact
    origin: Promise | str
    said: list[Said]

    @property
    def heading(self) -> Promise | str:
        return CATEGORIES[self.fact.category].heading

    @property
    def is_own(self) -> bool:
        return self.fact.source == Source.PERSON

    @property
    def is_kept_by_staff(self) -> bool:
        """Whether the person cannot change it here."""
        return self.fact.locked or self.fact.pinned or (self.fact.binding and not self.is_own)


@dataclass
class Group:
    """The facts of a category, under its heading."""

    title: str
    facts: list[ShownFact] = field(default_factory=list)


@dataclass(frozen=True)
class RememberedPage:
    """A page of facts in groups, whether more follow, and the counts of all."""

    groups: list[Group]
    number: int
    has_more: bool
    waiting: list[ShownFact]
    forgotten: list[ShownFact]


def rows_of(label: str, person: EndUser) -> QuerySet[Any]:
    """The rows of a store that are about the person, or about a name that leads to them."""
    found: QuerySet[Model] = next(one for one in registry.STORES if one.model == label).rows_of(person)
    return found


def remembered(person: EndUser, *, number: int, now: datetime, beside: Collection[uuid.UUID] = ()) -> RememberedPage:
    """Page `number`, from 1, of what agents are told without the facts that stand `beside`; and with the first what
    waits, and what the person forgot."""
    facts = _with_evidence(Fact.objects.filter(pk__in=rows_of("memories.Fact", person).values("pk")), CITED)
    active = facts.active(now=now).exclude(pk__in=beside).order_by("category", "-last_confirmed_at", "-pk")
    start = (number - 1) * FACTS
    found = list(active[start : start + FACTS + 1])
    # In the order of the categories.
    groups = {category: Group(str(row.heading)) for category, row in CATEGORIES.items()}
    for fact in found[:FACTS]:
        groups[fact.category].facts.append(shown(fact))
    first = number == 1
    waiting = list(facts.filter(status=Status.PENDING).order_by("-created_at", "-pk")[:ROWS]) if first else []
    gone = facts.filter(pk__in=_forgotten_by_person(person)).order_by("-trashed_at", "-pk")
    return RememberedPage(
        groups=[group for group in groups.values() if group.facts],
        number=number,
        has_more=len(found) > FACTS,
        waiting=[shown(fact) for fact in waiting],
        forgotten=[shown(fact) for fact in gone[:ROWS]] if first else [],
    )


def facts_of(person: EndUser, ids: Collection[uuid.UUID], *, most: int = CITED) -> list[Fact]:
    """Those of these facts that are the person's, each with so many of its turns."""
    own = Fact.objects.filter(pk__in=rows_of("memories.Fact", person).values("pk"))
    return list(_with_evidence(own.filter(pk__in=ids), most))


def fact_of(person: EndUser, fact_id: uuid.UUID) -> Fact:
    """A fact of the person that agents are told, or that waits. Errors: NotFound."""
    facts = Fact.objects.filter(pk__in=rows_of("memories.Fact", person).values("pk"))
    fact: Fact | None = _with_evidence(facts, ALL_CITED).filter(pk=fact_id, status__in=Status.LIVE).first()
    if fact is None:
        raise NotFound
    return fact


def forgotten_fact(person: EndUser, fact_id: uuid.UUID) -> Fact:
    """A fact that the person forgot here, and that can be brought back. Errors: NotFound."""
    fact = Fact.objects.filter(pk=fact_id).filter(pk__in=_forgotten_by_person(person)).first()
    if fact is None:
        raise NotFound
    return fact


def session_of(person: EndUser, session_id: uuid.UUID) -> Session:
    """Errors: NotFound."""
    found: Session | None = rows_of("memories.Session", person).filter(pk=session_id).first()
    if found is None:
        raise NotFound
    return found


def open_case(person: EndUser, *types: CaseType) -> Any:
    """The newest request of these types that nobody has answered yet; None without one."""
    waiting = rows_of("memories.PrivacyCase", person).filter(type__in=types).exclude(state__in=CLOSED)
    return waiting.order_by("-created_at", "-pk").first()


def own_export(person: EndUser) -> PrivacyExport | None:
    """The copy that the person asked for here, as long as it can be downloaded."""
    ready = rows_of("memories.PrivacyExport", person).filter(
        state=ExportState.READY, case__opened_kind=ActorKind.PERSON, expires_at__gt=timezone.now()
    )
    found: PrivacyExport | None = ready.order_by("-created_at", "-pk").first()
    return found


@dataclass(frozen=True)
class Page:
    """A page of a list, and whether more follow."""

    rows: list[Any]
    number: int
    has_more: bool


def conversations(person: EndUser, *, number: int) -> Page:
    """The newest first; each with `opening`, the first that the person said there."""
    said = Turn.objects.said().filter(session=OuterRef("pk")).order_by("number").values("content")[:1]
    rows = rows_of("memories.Session", person).annotate(opening=Left(Subquery(said), LONGEST_QUOTE))
    return _paged(rows.order_by("-last_turn_at", "-pk"), number)


def first_turns(session: Session) -> list[Said]:
    """How a conversation began."""
    turns = session.turns.current().exclude(content="").order_by("number")[:ROWS]
    return [Said(words.WHO.get(turn.speaker, words.WHO["other"]), _short(turn.content), turn.sent_at) for turn in turns]


@dataclass(frozen=True)
class Reading:
    """Who was given memories, when, and which of the facts among them are still there."""

    agent: str
    at: datetime
    count: int
    facts: list[str]


def readings(person: EndUser, *, number: int) -> Page:
    """The log of contexts, the newest first."""
    page = _paged(rows_of("memories.LoggedContext", person).order_by("-created_at", "-pk"), number)
    named = {item["id"] for row in page.rows for item in row.items if item.get("kind") == "fact"}
    known = rows_of("memories.Fact", person).filter(pk__in=named).exclude(status=Status.TRASHED)
    texts = {str(pk): text for pk, text in known.values_list("pk", "content")}
    rows = [
        Reading(
            row.agent_id,
            row.created_at,
            len(row.items),
            [texts[item["id"]] for item in row.items if item["id"] in texts],
        )
        for row in page.rows
    ]
    return Page(rows, page.number, page.has_more)


def done(person: EndUser) -> list[tuple[datetime, str]]:
    """What was done with the person's record, requests and copies, in sentences, the newest first; by which role."""
    labels = ("memories.EndUser", "memories.PrivacyCase", "memories.PrivacyExport")
    objects = [pk for label in labels for pk in rows_of(label, person).values_list("pk", flat=True)]
    events = AuditEvent.objects.filter(tenant_uuid=person.tenant_id, object_id__in=objects).order_by("-id")[:ROWS]
    sentences = []
    for event in events:
        who = words.ACTORS.get(event.actor_kind, words.SOMEBODY)
        what = words.OBJECTS.get(event.object_type, "")
        sentence = sentence_of(who=str(who), verb=event.verb, object_type=event.object_type, what=str(what))
        sentences.append((event.created_at, sentence))
    return sentences


def _paged(rows: QuerySet[Any], number: int) -> Page:
    start = (number - 1) * ROWS
    found = list(rows[start : start + ROWS + 1])
    return Page(found[:ROWS], number, len(found) > ROWS)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE].rstrip()} …"


def shown(fact: Fact) -> ShownFact:
    return ShownFact(fact, _origin(fact), [_said(one, fact) for one in fact.cited])


def _origin(fact: Fact) -> Promise:
    """Who said it. The person did only if their word made it so, here or in a turn that is theirs."""
    if fact.source == Source.PERSON:
        return words.PERSON_HERE
    if fact.source == Source.CORRECTED or fact.trust != Trust.USER:
        return words.SAID_BY.get(fact.trust, words.STAFF)
    if fact.source == Source.IMPLICIT:
        return words.CONCLUDED
    is_heard = fact.extractor not in _STATED or any(one.turn and one.turn.is_said for one in fact.cited)
    return words.PERSON if is_heard else words.APPLICATION_FOR_PERSON


def _said(one: FactEvidence, fact: Fact) -> Said:
    turn = one.turn
    text = one.quote or (turn.own_text if turn else "")
    # What a key quotes may be the assistant's words.
    who = words.WHO.get(turn.speaker, words.WHO["other"]) if turn else words.SPOKE[fact.trust]
    return Said(who, _short(text), turn.sent_at if turn else one.created_at)


def _with_evidence(facts: Any, most: int) -> Any:
    cited = FactEvidence.objects.select_related("turn").order_by("-created_at", "-turn_number")
    return facts.prefetch_related(Prefetch("evidence", queryset=cited[:most], to_attr="cited"))


def _forgotten_by_person(person: EndUser) -> QuerySet[Any]:
    """What the person forgot on their page, and nobody has touched since."""
    trashed = rows_of("memories.Fact", person).filter(status=Status.TRASHED)
    by_person = FactRevision.objects.filter(fact__in=trashed.values("pk"), verb="forget", actor_kind=ActorKind.PERSON)
    return by_person.filter(version=F("fact__version")).values("fact")


def beside(person: EndUser) -> dict[str, Any]:
    """What else is remembered: short summaries of the person, and what groups share of them."""
    sections = rows_of("memories.ProfileSection", person).exclude(summary="").order_by("agent_id", "section")
    told = rows_of("memories.GroupFact", person).filter(trashed_at=None, group__trashed_at=None)
    told = told.select_related("group").order_by("-said_at")
    rows = list(sections[:ROWS])
    for row in rows:
        row.wrote = words.WROTE.get(row.actor_kind, "")
    return {"sections": rows, "told_in_groups": list(told[:ROWS])}
