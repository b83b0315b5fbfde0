"""What a person's groups know, found by words: these facts have no vectors (docs/groups.md).

They are scored as facts of the person without vectors are, and do not decay.
"""

import uuid
from datetime import datetime
from typing import NamedTuple

import numpy as np

from memories.models import EndUser, GroupFact
from memories.retrieval import memory_index
from memories.retrieval.evidence import Level
from memories.retrieval.hits import GROUP_FACT, Finding, FoundGroup, SearchFilters
from memories.retrieval.memory_index import DAY, MemoryRanking
from memories.retrieval.outdated import Written
from memories.retrieval.prepared_query import PreparedQuery
from memories.scoring import terms
from memories.scoring.ranking import Units
from memories.scoring.weighting import Weights

# The facts that are looked at, of all groups together: those said last.
NEWEST = 500


class Shared(NamedTuple):
    id: uuid.UUID
    group: uuid.UUID
    group__name: str
    content: str
    created_at: datetime
    said_at: datetime
    is_own: bool


def hits(
    person: EndUser, query: PreparedQuery, filters: SearchFilters, *, limit: int, now: datetime
) -> tuple[list[Finding], int]:
    """The best that share a word with the query, and how many were looked at."""
    found = newest(person, filters)
    if not found:
        return [], 0
    ranking = rank(found, query, now)
    levels = ranking.evidence().levels
    best = [place for place in ranking.best() if ranking.scores.lexical[place] > 0][:limit]
    return [_hit(found[place], ranking, place, levels[place]) for place in best], len(found)


def newest(person: EndUser, filters: SearchFilters) -> list[Shared]:
    """What the person's groups know, newest first; one statement reads memberships and facts."""
    given = {"created_at__gte": filters.since, "created_at__lt": filters.until}
    rows = GroupFact.objects.served_to(person).said_by(person)
    rows = rows.filter(**{name: at for name, at in given.items() if at is not None})
    return [Shared(*row) for row in rows.order_by("-said_at", "-id").values_list(*Shared._fields)[:NEWEST]]


def rank(found: list[Shared], query: PreparedQuery, now: datetime) -> MemoryRanking:
    units = Units.of(
        sessions=np.arange(len(found), dtype=np.int32), packed=[terms.pack(one.content) for one in found], alone=True
    )
    day = memory_index.today(now)
    weights = Weights.of((1.0, 1.0, float(max(0, (day - one.said_at) // DAY))) for one in found)
    times = np.array([(one.created_at.timestamp(), one.said_at.timestamp()) for one in found], np.float64)
    return memory_index.rank(units, weights, times, query.queries)


def _hit(fact: Shared, ranking: MemoryRanking, place: int, level: Level) -> Finding:
    return Finding(
        kind=GROUP_FACT,
        id=fact.id,
        text=fact.content,
        score=ranking.score(place),
        score_parts=ranking.parts(place),
        evidence_level=level,
        created_at=fact.created_at,
        group=FoundGroup(fact.group, fact.group__name),
        written=Written(fact.content, fact.said_at) if fact.is_own else None,
    )
