"""An agent's own diary, found by meaning and by words (docs/diary.md). No other agent's is looked at.

Entries are scored as facts are. They neither decay nor are more or less sure.
"""

import uuid
from datetime import datetime
from typing import NamedTuple

import numpy as np

from memories.db import binary_rows
from memories.kinds.diary import DIARY
from memories.models import DiaryEntry, DiaryVector, EmbeddingSpace, EndUser
from memories.retrieval import memory_index
from memories.retrieval.evidence import Level
from memories.retrieval.hits import Finding, SearchFilters
from memories.retrieval.memory_index import DAY, MemoryRanking
from memories.retrieval.outdated import Written
from memories.retrieval.prepared_query import PreparedQuery
from memories.scoring.ranking import Units
from memories.scoring.weighting import Weights

# The entries that are looked at: the newest.
NEWEST = 1_000
_VECTORS = f"""
    SELECT entry_id, language, halfvec_send(vector) FROM {DiaryVector._meta.db_table}
    WHERE tenant_id = %(tenant)s AND end_user_id = %(person)s AND space_id = %(space)s AND entry_id = ANY(%(entries)s)
"""  # noqa: S608  (a table of our own)


class _ScoredEntry(NamedTuple):
    id: uuid.UUID
    terms: bytes | None
    created_at: datetime


def hits(
    person: EndUser, query: PreparedQuery, filters: SearchFilters, *, limit: int, now: datetime
) -> tuple[list[Finding], int]:
    """The best entries of the agent that the filters name, and how many were looked at; three statements."""
    rows = DiaryEntry.objects.of(person.tenant, person).present().filter(agent_id=filters.agent_id or "")
    given = {"created_at__gte": filters.since, "created_at__lt": filters.until}
    rows = rows.filter(**{name: at for name, at in given.items() if at is not None})
    listed = rows.order_by("-created_at", "-id").values_list(*_ScoredEntry._fields)[:NEWEST].query
    found = [_ScoredEntry(*row) for row in binary_rows.fetched(*listed.sql_with_params())]
    if not found:
        return [], 0
    ranking = memory_index.rank(
        _units(person, found, query.space),
        Weights.of((1.0, 1.0, float(max(0, (memory_index.today(now) - one.created_at) // DAY))) for one in found),
        np.array([[one.created_at.timestamp()] for one in found], np.float64),
        query.queries,
    )
    levels = ranking.evidence().levels
    best = {found[place].id: place for place in ranking.best(limit)}
    # Texts may be long: those of the best alone are read.
    stored = DiaryEntry.objects.only("topic", "content", "agent_id", "created_at").in_bulk(best)
    return [_hit(stored[pk], ranking, place, levels[place]) for pk, place in best.items() if pk in stored], len(found)


def _units(person: EndUser, found: list[_ScoredEntry], space: EmbeddingSpace | None) -> Units:
    rows = []
    if space:
        given = {"tenant": person.tenant_id, "person": person.pk, "space": space.pk}
        rows = binary_rows.fetched(_VECTORS, {**given, "entries": [one.id for one in found]})
    return memory_index.units_of(found, space, rows)


def _hit(entry: DiaryEntry, ranking: MemoryRanking, place: int, level: Level) -> Finding:
    return Finding(
        kind=DIARY.name,
        id=entry.pk,
        text=entry.text,
        score=ranking.score(place),
        score_parts=ranking.parts(place),
        evidence_level=level,
        created_at=entry.created_at,
        agent_id=entry.agent_id or None,
        written=Written(entry.text, entry.created_at),
    )
