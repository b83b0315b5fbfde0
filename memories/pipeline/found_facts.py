"""Facts in the order in which they answer a question: by relevance, gently weighted by how good a fact is."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from memories.models import EndUser, Fact, FactEvidence, FactQuerySet, MemoryScope
from memories.pipeline import lone_units, rows
from memories.pipeline.asking import Question
from memories.pipeline.fact_units import FactStore, Measured
from memories.pipeline.findings import FACT, Evidence, Filters, Finding
from memories.pipeline.lone_units import Ranking

# What a finding shows of a fact.
SHOWN = ("end_user", "content", "agent_id", "category", "confidence", "tags", "first_observed_at")


@dataclass(frozen=True, eq=False)
class Ranked:
    """All facts of a store with their scores against a question; a place is one of the store's."""

    store: FactStore
    ranking: Ranking
    allowed: NDArray[np.bool_] | None = None

    def best(self, limit: int | None = None) -> list[int]:
        """Places of the best that are allowed, best first; of equals the newer one."""
        return self.ranking.best(limit, allowed=self.allowed)

    def __len__(self) -> int:
        """How many are allowed."""
        return len(self.store) if self.allowed is None else int(self.allowed.sum())


def rank(store: FactStore, question: Question) -> Ranked:
    """Score all facts of the store."""
    return Ranked(store, lone_units.rank(store.units, store.weights, question.queries))


def narrowed(person: EndUser, ranked: Ranked, filters: Filters) -> Ranked:
    """Those of them that the filters leave."""
    left = set(_left(Fact.objects.of(person.tenant, person), filters))
    # Sessions are named by each person's application: those of others are not meant.
    if filters.session_id is None:
        left |= set(_left(Fact.objects.public_beside(person.tenant, person), filters))
    return replace(ranked, allowed=np.array([fact.id in left for fact in ranked.store.facts], np.bool_))


def measured(facts: FactQuerySet) -> list[Measured]:
    """In the binary format, for reading thousands of dates as text takes long."""
    statement, parameters = facts.order_by("-created_at", "-id").values_list(*Measured._fields).query.sql_with_params()
    return [Measured(*row) for row in rows.fetched(statement, parameters)]


def shown(person: EndUser, ranked: Ranked, places: Sequence[int]) -> list[Finding]:
    """The facts with their text as they are stored, in the given order.

    Those of the person with their evidence; of whom a public one is, and who said it where, nobody else is told.
    """
    if not places:
        return []
    ids = {place: ranked.store.facts[place].id for place in places}
    served = Fact.objects.filter(Q(end_user=person) | Q(scope=MemoryScope.PUBLIC), tenant=person.tenant)
    stored = served.only(*SHOWN).in_bulk(ids.values())
    evidence = _evidence([pk for pk, fact in stored.items() if fact.end_user_id == person.pk])
    return [
        _finding(stored[pk], evidence.get(pk, []), ranked.ranking, place) for place, pk in ids.items() if pk in stored
    ]


def _left(facts: FactQuerySet, filters: Filters) -> Iterable[uuid.UUID]:
    given = {
        "category": filters.category,
        "tags__contains": list(filters.tags) or None,
        "first_observed_at__gte": filters.since,
        "first_observed_at__lt": filters.until,
    }
    facts = facts.filter(**{name: value for name, value in given.items() if value is not None})
    if filters.session_id is not None:
        resting = FactEvidence.objects.filter(session__external_id=filters.session_id).values("fact")
        facts = facts.filter(pk__in=resting)
    return facts.order_by().values_list("pk", flat=True)


def _evidence(facts: Sequence[uuid.UUID]) -> dict[uuid.UUID, list[Evidence]]:
    found: dict[uuid.UUID, list[Evidence]] = {}
    for row in FactEvidence.objects.filter(fact__in=facts).select_related("session"):
        found.setdefault(row.fact_id, []).append(Evidence(row.session.external_id, row.turn_number, row.quote))
    return found


def _finding(fact: Fact, evidence: list[Evidence], ranking: Ranking, place: int) -> Finding:
    sessions = {one.session_id for one in evidence}
    # One session can be named; evidence of several is told below.
    session = sessions.pop() if len(sessions) == 1 else None
    return Finding(
        kind=FACT,
        id=fact.pk,
        text=fact.content,
        score=ranking.score(place),
        score_parts=ranking.parts(place),
        created_at=fact.first_observed_at,
        session_id=session,
        agent_id=fact.agent_id or None,
        turn_numbers=[one.turn_number for one in evidence] if session else [],
        category=fact.category,
        confidence=fact.confidence,
        tags=fact.tags,
        evidence=evidence,
    )
