"""Search over the turns of a whole tenant, for operators: by words and by meaning, scored as those of one person are.

No index is kept: it reads the newest sessions that fit, up to MOST turns, in three statements.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from django.db.models import F, Window
from django.db.models.aggregates import Sum
from django.db.models.functions import Length, Substr
from numpy.typing import NDArray

from memories.db import binary_rows
from memories.models import Author, EmbeddingSpace, EndUser, Session, Tenant, Turn
from memories.models.conversations.conversations import AUTHOR_OF_ROLE, moment_sent
from memories.retrieval import evidence
from memories.retrieval.evidence import Level
from memories.retrieval.prepared_query import PreparedQuery
from memories.scoring import dense, ranking
from memories.scoring.ranking import Units

# About 0.3 s and 100 MB while it lasts.
MOST = 20_000
# What scores less has nothing to do with the query. Nor has what has a smaller share of the best score, unless it is
# strong as evidence: a turn that says it in other words, or in another language, scores far below one with the word.
FLOOR, SHARE_OF_BEST = 0.1, 0.4
CLIP = 1_000
_TURNS = f"""
    SELECT id, session_id, number, extract(epoch FROM {moment_sent()})::float8, role, terms, author
    FROM memories_turn
    WHERE tenant_id = %s AND session_id = ANY(%s) AND number > %s AND terms IS NOT NULL ORDER BY session_id, number
"""  # noqa: S608  (columns of our own model)
_VECTORS = """
    SELECT turn_id, language, halfvec_send(vector) FROM memories_turnvector
    WHERE tenant_id = %s AND turn_id = ANY(%s) AND space_id = %s
"""


@dataclass(frozen=True)
class TurnFilters:
    """Which turns are searched; `session` is an external id."""

    person: EndUser | None = None
    session: str = ""
    role: str = ""
    author: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class FoundTurn:
    turn: Any
    score: float


@dataclass(frozen=True)
class TenantTurns:
    """The best turns, best first; how many were compared; whether older ones were left out."""

    found: list[FoundTurn]
    searched: int
    is_cut: bool


def search(tenant: Tenant, query: PreparedQuery, filters: TurnFilters, *, limit: int) -> TenantTurns:
    """The turns of the tenant that answer the query best. Hidden ones and those of systems are not searched."""
    read, is_cut = _read_of(tenant, filters)
    rows = binary_rows.fetched(_TURNS, [tenant.pk, *read]) if read.sessions else []
    if not rows:
        return TenantTurns([], 0, is_cut)
    units, allowed = _units(tenant, rows, query.space), _allowed(rows, filters)
    scores = ranking.score(units, query.queries)
    total = np.where(allowed & (scores.total >= FLOOR), scores.total, np.float32(-np.inf))
    levels = evidence.of(units, query.queries, scores, allowed=allowed).levels
    is_strong = np.array([level == Level.STRONG for level in levels], np.bool_)
    total = np.where(is_strong | (total >= SHARE_OF_BEST * total.max()), total, np.float32(-np.inf))
    places = [int(place) for place in ranking.best_first(total, limit) if np.isfinite(total[place])]
    stored = _read(tenant, [rows[place][0] for place in places])
    found = [FoundTurn(stored[pk], float(total[place])) for place in places if (pk := rows[place][0]) in stored]
    return TenantTurns(found, int(allowed.sum()), is_cut)


class _Read(NamedTuple):
    """What is read: turns of these sessions beyond this number."""

    sessions: list[uuid.UUID]
    after: int


def _read_of(tenant: Tenant, filters: TurnFilters) -> tuple[_Read, bool]:
    """The newest sessions that fit, with about MOST turns, and whether there are more. Of a session that does not fit
    by itself its newest turns."""
    rows = Session.objects.filter(tenant=tenant)
    if filters.person:
        rows = rows.filter(end_user=filters.person)
    if filters.session:
        rows = rows.filter(external_id=filters.session)
    if filters.since:
        # The client's time of a turn is never after its arrival.
        rows = rows.filter(last_turn_at__gte=filters.since)
    newest_first = [F("last_turn_at").desc(), F("pk").desc()]
    stored = F("turn_count") - F("deleted_number")
    counted = rows.annotate(up_to=Window(Sum(stored), order_by=newest_first)).order_by(*newest_first)
    # A session has a turn or more.
    found = list(counted.values_list("pk", "up_to", "turn_count")[: MOST + 1])
    within = [pk for pk, up_to, _ in found if up_to <= MOST]
    if found and not within:
        longest, _, count = found[0]
        return _Read([longest], count - MOST), True
    return _Read(within, 0), len(within) < len(found)


def _units(tenant: Tenant, rows: Sequence[Any], space: EmbeddingSpace | None) -> Units:
    ordinals = {pk: at for at, pk in enumerate(dict.fromkeys(row[1] for row in rows))}
    languages: Any = np.zeros(len(rows), "U2")
    vectors = None
    if space:
        place_of = {row[0]: at for at, row in enumerate(rows)}
        found = binary_rows.fetched(_VECTORS, [tenant.pk, list(place_of), space.pk])
        vectors = np.zeros((len(rows), space.dimensions), np.float16)
        if found:
            places = [place_of[row[0]] for row in found]
            vectors[places] = binary_rows.halves([row[2] for row in found])
            languages[places] = [row[1] for row in found]
    return Units.of(
        sessions=np.array([ordinals[row[1]] for row in rows], np.int32),
        packed=[row[5] for row in rows],
        vectors=vectors,
        present=languages != "",
        languages=languages,
        blocks=dense.blocks(space.model, space.dimensions) if space else (),
        times=np.array([row[3] for row in rows], np.float64),
    )


def _allowed(rows: Sequence[Any], filters: TurnFilters) -> NDArray[np.bool_]:
    allowed = np.ones(len(rows), np.bool_)
    times = np.array([row[3] for row in rows], np.float64)
    if filters.role:
        allowed &= np.array([row[4] == filters.role for row in rows], np.bool_)
    if filters.author:
        whose = [row[6] or AUTHOR_OF_ROLE.get(row[4], Author.APPLICATION) for row in rows]
        allowed &= np.array([author == filters.author for author in whose], np.bool_)
    if filters.since:
        allowed &= times >= filters.since.timestamp()
    if filters.until:
        allowed &= times < filters.until.timestamp()
    return allowed


def _read(tenant: Tenant, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Any]:
    """The turns with their people and sessions; the database clips the text: a message may hold a megabyte."""
    rows = Turn.objects.filter(tenant=tenant, pk__in=ids).select_related("end_user", "session")
    clipped = rows.annotate(start=Substr("content", 1, CLIP), length=Length("content"))
    return {row.pk: row for row in clipped.defer("content", "parts", "terms", "tool_calls", "metadata")}
