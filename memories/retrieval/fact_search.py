"""Facts in the order in which they answer a query: by relevance, weighted by confidence, decay and recency."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from memories.db import binary_rows, closed_indexes
from memories.models import TRUSTED, EndUser, Fact, FactEvidence, FactQuerySet
from memories.models.memories.visibility import own_or_public
from memories.retrieval import evidence, memory_index
from memories.retrieval.fact_index import FactFeatures, FactIndex
from memories.retrieval.hits import FACT, Evidence, Finding, SearchFilters
from memories.retrieval.memory_index import MemoryRanking
from memories.retrieval.prepared_query import PreparedQuery

# What a hit shows of a fact.
SHOWN = ("end_user", "content", "agent_id", "category", "confidence", "tags", "first_observed_at")


@dataclass(frozen=True, eq=False)
class RankedFacts:
    """All facts of an index with their scores for a query; a place is a position in the index."""

    index: FactIndex
    ranking: MemoryRanking
    allowed: NDArray[np.bool_] | None = None

    def best(self, limit: int | None = None) -> list[int]:
        """Places of the best that are allowed, best first; of equals the newer one."""
        return self.ranking.best(limit, allowed=self.allowed)

    @cached_property
    def evidence(self) -> evidence.Evidence:
        """How strong each that is allowed is as evidence; of what users and operators stated by itself."""
        trusted = np.array([fact.trust in TRUSTED for fact in self.index.facts], np.bool_)
        return self.ranking.evidence(allowed=self.allowed, trusted=trusted)

    def __len__(self) -> int:
        """How many are allowed."""
        return len(self.index) if self.allowed is None else int(self.allowed.sum())


def rank(index: FactIndex, query: PreparedQuery) -> RankedFacts:
    return RankedFacts(index, memory_index.rank(index.units, index.weights, index.times, query.queries))


def read_features(facts: FactQuerySet) -> list[FactFeatures]:
    """Read in the binary format, because thousands of dates take long as text."""
    query = facts.order_by("-first_observed_at", "-id").values_list(*FactFeatures._fields).query
    return [FactFeatures(*row) for row in binary_rows.fetched(*query.sql_with_params())]


def narrowed(person: EndUser, ranked: RankedFacts, filters: SearchFilters) -> RankedFacts:
    """Allow only what passes the filters."""
    own, tenant_id = Fact.objects.of(person.tenant, person), person.tenant_id
    passing = set(_passing(own, filters, tenant_id=tenant_id))
    # Each person's application names its sessions: other people's sessions of the same name are not meant.
    if filters.session_id is None:
        public = Fact.objects.public_beside(person.tenant, person)
        passing |= set(_passing(public, filters, tenant_id=tenant_id))
    return replace(ranked, allowed=np.array([fact.id in passing for fact in ranked.index.facts], np.bool_))


def _passing(facts: FactQuerySet, filters: SearchFilters, *, tenant_id: uuid.UUID) -> Iterable[uuid.UUID]:
    given = {
        "category": filters.category,
        "first_observed_at__gte": filters.since,
        "first_observed_at__lt": filters.until,
    }
    facts = facts.filter(**{name: value for name, value in given.items() if value is not None})
    if filters.tags:
        facts = facts.filter(closed_indexes.opened(Q(tags__contains=list(filters.tags)), facts, tenant_id=tenant_id))
    if filters.session_id is not None:
        resting = FactEvidence.objects.filter(session__external_id=filters.session_id)
        facts = facts.filter(pk__in=resting.values("fact"))
    return facts.order_by().values_list("pk", flat=True)


def hits(person: EndUser, ranked: RankedFacts, places: Sequence[int]) -> list[Finding]:
    """These facts as they are stored, in the given order.

    Only the person's own come with evidence: nobody learns from whom a public fact is, or who said it where.
    """
    if not places:
        return []
    ids = {place: ranked.index.facts[place].id for place in places}
    visible = Fact.objects.filter(own_or_public(person.tenant_id, person.pk))
    stored = visible.only(*SHOWN).in_bulk(ids.values())
    cited: dict[uuid.UUID, list[Evidence]] = {}
    own = [pk for pk, fact in stored.items() if fact.end_user_id == person.pk]
    for row in FactEvidence.objects.filter(fact__in=own).select_related("session"):
        cited.setdefault(row.fact_id, []).append(Evidence(row.session.external_id, row.turn_number, row.quote))
    return [_hit(stored[pk], cited.get(pk, []), ranked, place) for place, pk in ids.items() if pk in stored]


def _hit(fact: Fact, cited: list[Evidence], ranked: RankedFacts, place: int) -> Finding:
    sessions = {one.session_id for one in cited}
    # The hit names a session only if all evidence is of that one.
    session = sessions.pop() if len(sessions) == 1 else None
    return Finding(
        kind=FACT,
        id=fact.pk,
        text=fact.content,
        score=ranked.ranking.score(place),
        score_parts=ranked.ranking.parts(place),
        created_at=fact.first_observed_at,
        session_id=session,
        agent_id=fact.agent_id or None,
        turn_numbers=[one.turn_number for one in cited] if session else [],
        category=fact.category,
        confidence=round(fact.confidence, 6),
        tags=fact.tags,
        evidence=cited,
        evidence_level=ranked.evidence.levels[place],
    )
