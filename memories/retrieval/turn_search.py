"""Turns and sessions that answer a query: a person's turns are scored, only the best are read."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memories.db import binary_rows
from memories.models import Author, EndUser, Role, Turn, hand_written
from memories.models.memories.visibility import Conversations
from memories.retrieval import evidence
from memories.retrieval.evidence import Evidence, Level
from memories.retrieval.hits import SESSION, TURN, Finding, SearchFilters
from memories.retrieval.outdated import Outdated
from memories.retrieval.prepared_query import PreparedQuery
from memories.retrieval.turn_index import SPEAKERS, IndexedSession, TurnIndex
from memories.scoring import ranking
from memories.scoring.ranking import Best, Query, Scores
from memories.text.injection.flagged_turns import is_flagged

_AUTHOR_OF: Mapping[str, str] = {
    Role.USER: Author.PERSON,
    Role.ASSISTANT: Author.MODEL,
    Role.TOOL: Author.APPLICATION,
    Role.SYSTEM: Author.APPLICATION,
}
# What a hit shows of a turn.
SHOWN = (
    "id", "session_id", "number", "role", "author", "content", "own", "external_id", "flagged", "timestamp",
    "created_at",
)  # fmt: skip
# By hand, because an agent waits for it before every reply.
_READ = f"""
    SELECT {", ".join(SHOWN)} FROM memories_turn
    WHERE tenant_id = %s AND end_user_id = %s AND id = ANY(%s)
"""  # noqa: S608  (columns of our own model)


@dataclass(frozen=True, eq=False)
class TurnRanking:
    """A person's turns with their scores for one query; a place is a position in the index.

    `found`: those that were scored: all, or of very many those that may be among the best. `allowed` has one row for
    each of them. `permitted`: all that may be found, one row a turn of the index.
    """

    person: EndUser
    index: TurnIndex
    found: Best
    allowed: NDArray[np.bool_]
    permitted: NDArray[np.bool_]
    queries: Sequence[Query]

    @property
    def places(self) -> NDArray[np.int64]:
        """Those that were scored, ascending."""
        return self.found.places

    @property
    def scores(self) -> Scores:
        """One row for each of `places`."""
        return self.found.scores

    def best(self, limit: int) -> list[int]:
        """Places of the best turns, best first."""
        total = self._allowed_scores()
        best = ranking.best_first(total, limit)
        found: list[int] = self.places[best[np.isfinite(total[best])]].tolist()
        return found

    def best_sessions(self, limit: int) -> dict[int, float]:
        """Places of the best turn of each of the best sessions, best first, and what their other turns add."""
        total = self._allowed_scores()
        each = ranking.sessions(total, self.index.session_of[self.places], self.index.units.constants)
        # Of a session without an allowed turn the sum stays infinitely low.
        scores = total[each.best] + each.others
        best = [row for row in ranking.best_first(scores, limit) if np.isfinite(scores[row])]
        return {int(self.places[each.best[row]]): float(each.others[row]) for row in best}

    def totals(self, places: Sequence[int]) -> NDArray[np.float32]:
        """Their scores."""
        return self.scores.total[np.searchsorted(self.places, places)]

    def latest(self, limit: int) -> "TurnRanking":
        """The same with the `limit` turns that were said last."""
        some = ranking.highest(np.where(self.permitted, self.index.times, -np.inf), limit)
        found = ranking.with_others(self.index.units, self.found, some)
        return replace(self, found=found, allowed=self.permitted[found.places])

    @cached_property
    def evidence(self) -> Evidence:
        """How strong each turn that is allowed is as evidence."""
        units, dates = self.index.units, None
        named = [query for query in self.queries if query.dates]
        if named and units.times is not None:
            dates = np.maximum.reduce([query.date_scores(units.times[self.places]) for query in named])
        given: dict[str, Any] = {"dates": dates, "allowed": self.allowed, "places": self.places}
        return evidence.of(units, self.queries, self.scores, **given)

    def _allowed_scores(self) -> NDArray[np.float32]:
        return np.where(self.allowed, self.scores.total, np.float32(-np.inf))

    def parts(self, place: int) -> dict[str, float]:
        """The ranking features of a turn; they add up to its score."""
        row = self._row(place)
        _, vector, lexical, context = self.scores
        return {
            "vector": round(vector.item(row), 6),
            "lexical": round(lexical.item(row), 6),
            "context": round(context.item(row), 6),
        }

    def score(self, place: int) -> float:
        return round(self.scores.total.item(self._row(place)), 6)

    def level(self, place: int) -> Level:
        return self.evidence.levels[self._row(place)]

    def _row(self, place: int) -> int:
        # Where all were scored, it is the place itself.
        return place if len(self.places) == len(self.index) else bisect_left(self.places, place)

    def session(self, place: int) -> IndexedSession:
        return self.index.known[int(self.index.session_of[place])]


def rank(
    person: EndUser,
    index: TurnIndex,
    query: PreparedQuery,
    filters: SearchFilters,
    conversations: Conversations,
    *,
    most: int,
    sessions: bool = False,
    among: NDArray[np.bool_] | None = None,
) -> TurnRanking:
    """Score the person's turns so that the best `most` are certain, and with `sessions` the best sessions.

    `among`: those that may be found, one row a turn.
    """
    allowed = conversations.mask(index.agents, index.agent_of, index.times)
    if filters.since:
        allowed &= index.times >= filters.since.timestamp()
    if filters.until:
        allowed &= index.times < filters.until.timestamp()
    allowed &= index.said_by(_speakers(tuple(filters.authors)))
    if filters.agent_id is not None:
        allowed &= np.array([agent == filters.agent_id for agent, _ in index.agents], np.bool_)[index.agent_of]
    if filters.session_id is not None:
        named = [session.external_id == filters.session_id for session in index.known]
        allowed &= np.array(named, np.bool_)[index.session_of]
    if among is not None:
        allowed &= among
    found = ranking.best(index.units, query.queries, allowed=allowed, most=most, sessions=sessions)
    index.let_go()
    return TurnRanking(person, index, found, allowed[found.places], allowed, query.queries)


@cache
def _speakers(authors: tuple[str, ...]) -> frozenset[str]:
    """Those of SPEAKERS whom these authors are; of none given: all but a user's turns that are not the person's."""
    return frozenset(
        one for one in SPEAKERS if (_AUTHOR_OF.get(one, one) in authors if authors else one in Role.values)
    )


def turns(ranked: TurnRanking, outdated: Outdated, *, limit: int, told: bool = False) -> list[Finding]:
    """The best turns, best first, marked where they are `outdated`; as they are stored, or `told` as in a context."""
    places = ranked.best(limit)
    stored = read(ranked, places)
    hits = {place: _hit(ranked, place, stored[place], outdated) for place in places if place in stored}
    if told:
        hits = {place: replace(hit, text=outdated.told(stored[place])) for place, hit in hits.items()}
    return list(hits.values())


def sessions(ranked: TurnRanking, outdated: Outdated, *, limit: int) -> list[Finding]:
    """The best sessions, best first, each with the text and the parts of its best turn, and what its others add."""
    best = ranked.best_sessions(limit)
    stored = read(ranked, list(best))
    return [
        _session_hit(ranked, place, stored[place], outdated, others)
        for place, others in best.items()
        if place in stored
    ]


def read(ranked: TurnRanking, places: Sequence[int]) -> dict[int, Turn]:
    """The turns at these places from the database, without those that were deleted meanwhile."""
    if not places:
        return {}
    ids = ranked.index.ids
    wanted = {ids[place]: place for place in places}
    rows = binary_rows.fetched(_READ, [ranked.person.tenant_id, ranked.person.pk, list(wanted)])
    return {wanted[row[0]]: hand_written.read(Turn, SHOWN, row) for row in rows}


def _hit(ranked: TurnRanking, place: int, turn: Turn, outdated: Outdated) -> Finding:
    session = ranked.session(place)
    return Finding(
        kind=TURN,
        id=turn.pk,
        text=turn.own_text,
        score=ranked.score(place),
        score_parts=ranked.parts(place),
        created_at=turn.sent_at,
        external_id=turn.external_id,
        session_id=session.external_id,
        agent_id=session.agent_id or None,
        turn_numbers=[turn.number],
        role=turn.role,
        flagged=is_flagged(turn),
        outdated_since=outdated.since(turn),
        evidence_level=ranked.level(place),
    )


def _session_hit(ranked: TurnRanking, place: int, turn: Turn, outdated: Outdated, others: float) -> Finding:
    hit = _hit(ranked, place, turn, outdated)
    return replace(
        hit,
        kind=SESSION,
        id=ranked.session(place).id,
        external_id=None,
        score=round(float(ranked.totals([place])[0]) + others, 6),
        score_parts=hit.score_parts | {"others": round(others, 6)},
    )
