"""Triples of the graph about what a query names, as they hold at a moment, for those who see the facts behind them."""

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Q

from memories import conf
from memories.graph import naming, reading
from memories.models import EndUser, Fact, FactEvidence, GraphTriple, GraphTripleQuerySet, Turn
from memories.models.memories import visibility
from memories.models.memories.visibility import Viewer
from memories.retrieval.hits import TRIPLE, Evidence, Finding, SearchFilters

# Of a triple between two things that the query names, and of one about one of them.
_BOTH, _ONE = 1.0, 0.5


def triples(person: EndUser, viewer: Viewer, text: str, *, rules: conf.Rules, now: datetime) -> GraphTripleQuerySet:
    """Triples of what the text names that hold now, or at the viewer's moment; without a text those of the person.

    First what is between two of these things, then the newest. A triple of a fact is for those that a context tells
    the fact, and a stated one for its agent; both are sure enough to be served.
    """
    names = naming.named_in(person, text or naming.SELF)
    if not names:
        return GraphTriple.objects.none()
    least = rules.served_confidence
    served = visibility.served_facts(viewer, person_id=person.pk, least_confidence=least, now=now)
    facts = Fact.objects.of(person.tenant, person).filter(*served.values()).latest_for(viewer.agent_id)
    rows = GraphTriple.objects.of(person.tenant, person).shown(facts, agent_id=viewer.agent_id)
    rows = rows.filter(confidence__gte=least).held_at(viewer.as_of or now)
    return reading.between(reading.with_names(rows), names)


def narrowed(rows: GraphTripleQuerySet, filters: SearchFilters) -> GraphTripleQuerySet:
    """Those that pass the filters."""
    if filters.only_facts_fit:
        return rows.none()
    if filters.since:
        rows = rows.filter(dated_at__gte=filters.since)
    if filters.until:
        rows = rows.filter(dated_at__lt=filters.until)
    if filters.session_id is not None:
        said = Turn.objects.filter(session__external_id=filters.session_id)
        resting = FactEvidence.objects.filter(session__external_id=filters.session_id)
        rows = rows.filter(Q(turn__in=said.values("pk")) | Q(fact__in=resting.values("fact")))
    return rows


def hits(rows: Iterable[GraphTriple]) -> list[Finding]:
    """These as results of a search, with the turns that say so."""
    found = list(rows)
    evidence: dict[uuid.UUID, list[Evidence]] = {}
    facts = [triple.fact_id for triple in found if triple.fact_id]
    for row in FactEvidence.objects.filter(fact__in=facts).select_related("session") if facts else ():
        cited = Evidence(row.session.external_id, row.turn_number, row.quote)
        evidence.setdefault(row.fact_id, []).append(cited)
    turns = [triple.turn_id for triple in found if triple.turn_id]
    for turn in Turn.objects.filter(pk__in=turns).select_related("session") if turns else ():
        evidence[turn.pk] = [Evidence(turn.session.external_id, turn.number, "")]
    return [_hit(triple, evidence.get(triple.fact_id or triple.turn_id or triple.pk, [])) for triple in found]


def _hit(triple: GraphTriple, evidence: Sequence[Evidence]) -> Finding:
    parts = score_parts(triple)
    sessions = {one.session_id for one in evidence}
    # The hit names a session only if all evidence is of that one.
    session = sessions.pop() if len(sessions) == 1 else None
    return Finding(
        kind=TRIPLE,
        id=triple.pk,
        text=triple.sentence,
        score=parts["named"] * parts["confidence"],
        score_parts=parts,
        created_at=triple.dated_at,
        session_id=session,
        agent_id=triple.agent_id or None,
        turn_numbers=[one.turn_number for one in evidence] if session else [],
        confidence=triple.confidence,
        evidence=list(evidence),
    )


def score_parts(triple: GraphTriple) -> dict[str, float]:
    """Of a triple that triples() found."""
    return {"named": _BOTH if getattr(triple, "has_both", False) else _ONE, "confidence": triple.confidence}
