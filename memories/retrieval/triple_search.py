"""Triples of the graph about what a query names, as they hold at a moment, for those who see the facts behind them."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from memories import conf
from memories.graph import naming, reading
from memories.models import ActorKind, EndUser, Fact, FactEvidence, GraphTriple, GraphTripleQuerySet, Turn
from memories.models.memories import visibility
from memories.models.memories.visibility import Viewer
from memories.retrieval.evidence import Level
from memories.retrieval.hits import TRIPLE, Evidence, Finding, SearchFilters
from memories.retrieval.outdated import Written

# Of a triple between two things that the query names, and of one about one of them.
_BOTH, _ONE = 1.0, 0.5


class RankedTriple(NamedTuple):
    """A triple, and whether the query names both of its entities."""

    triple: GraphTriple
    has_both: bool

    @property
    def parts(self) -> dict[str, float]:
        return {"named": _BOTH if self.has_both else _ONE, "confidence": self.triple.confidence}

    @property
    def score(self) -> float:
        return self.parts["named"] * self.parts["confidence"]

    @property
    def level(self) -> Level:
        """A triple between two things that the query names answers it."""
        return Level.STRONG if self.has_both else Level.WEAK

    @property
    def written(self) -> Written | None:
        """What of it can go out of date: one of a fact follows the fact."""
        triple = self.triple
        if triple.fact_id:
            return None
        is_stated = triple.actor_kind in (ActorKind.KEY, ActorKind.OPERATOR)
        return Written(triple.sentence, triple.created_at if is_stated else None)


def triples(person: EndUser, viewer: Viewer, text: str, *, rules: conf.Rules, now: datetime) -> GraphTripleQuerySet:
    """Triples of what the text names that hold now, or at the viewer's moment; without a text those of the person.

    First what is between two of these things, then the newest. A triple of a fact is for those that a context tells
    the fact, and a stated one for its agent; both are sure enough to be served.
    """
    names = naming.named_in(person, text or naming.SELF)
    if not names:
        return reading.between(GraphTriple.objects.none(), names)
    least = rules.served_confidence
    served = visibility.served_facts(viewer, person_id=person.pk, least_confidence=least, now=now)
    facts = Fact.objects.of(person.tenant, person).filter(*served.values()).latest_for(viewer.agent_id)
    rows = GraphTriple.objects.of(person.tenant, person).shown(facts, agent_id=viewer.agent_id)
    rows = rows.filter(confidence__gte=least).held_at(viewer.as_of or now)
    return reading.between(rows, names)


def read(rows: QuerySet[Any], limit: int) -> list[RankedTriple]:
    """The first of these with the names of their entities. Ids first: to sort, the database would join all."""
    first = dict(rows.values_list("pk", "has_both")[:limit])
    found = reading.with_names(GraphTriple.objects.filter(pk__in=first)).in_bulk() if first else {}
    return [RankedTriple(found[pk], has_both) for pk, has_both in first.items() if pk in found]


def narrowed(rows: GraphTripleQuerySet, filters: SearchFilters) -> GraphTripleQuerySet:
    """Those that pass the filters."""
    if filters.only_facts_fit:
        return rows.none()
    if filters.since:
        rows = rows.filter(dated_at__gte=filters.since)
    if filters.until:
        rows = rows.filter(dated_at__lt=filters.until)
    if filters.session_id is not None:
        turns = Turn.objects.filter(session__external_id=filters.session_id)
        resting = FactEvidence.objects.filter(session__external_id=filters.session_id)
        rows = rows.filter(Q(turn__in=turns.values("pk")) | Q(fact__in=resting.values("fact")))
    return rows


def hits(found: Sequence[RankedTriple]) -> list[Finding]:
    """These as results of a search, with the turns that say so."""
    evidence: dict[uuid.UUID, list[Evidence]] = {}
    facts = [one.triple.fact_id for one in found if one.triple.fact_id]
    for row in FactEvidence.objects.filter(fact__in=facts).select_related("session") if facts else ():
        cited = Evidence(row.session.external_id, row.turn_number, row.quote)
        evidence.setdefault(row.fact_id, []).append(cited)
    turns = [one.triple.turn_id for one in found if one.triple.turn_id]
    for turn in Turn.objects.filter(pk__in=turns).select_related("session") if turns else ():
        evidence[turn.pk] = [Evidence(turn.session.external_id, turn.number, "")]
    return [_hit(one, evidence.get(one.triple.fact_id or one.triple.turn_id or one.triple.pk, [])) for one in found]


def _hit(found: RankedTriple, evidence: list[Evidence]) -> Finding:
    triple = found.triple
    sessions = {one.session_id for one in evidence}
    # The hit names a session only if all evidence is of that one.
    session = sessions.pop() if len(sessions) == 1 else None
    return Finding(
        kind=TRIPLE,
        id=triple.pk,
        text=triple.sentence,
        score=found.score,
        score_parts=found.parts,
        created_at=triple.dated_at,
        session_id=session,
        agent_id=triple.agent_id or None,
        turn_numbers=[one.turn_number for one in evidence] if session else [],
        confidence=triple.confidence,
        evidence=evidence,
        written=found.written,
        evidence_level=found.level,
    )
