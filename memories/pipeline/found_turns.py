"""Turns and sessions that answer a question: all of a person's turns are scored, the best are read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memories.models import EndUser, Turn, hand_written
from memories.pipeline import rows
from memories.pipeline.asking import Question
from memories.pipeline.findings import SESSION, TURN, Filters, Finding
from memories.pipeline.stores import Store, Talk
from memories.scoring import ranking
from memories.scoring.ranking import Scores

# What a finding shows of a turn.
SHOWN = ("id", "session_id", "number", "role", "content", "external_id", "timestamp", "created_at")
# By hand, as what stands before every reply of an agent.
_READ = f"""
    SELECT {", ".join(SHOWN)} FROM memories_turn
    WHERE tenant_id = %s AND end_user_id = %s AND id = ANY(%s)
"""  # noqa: S608  (columns of our own model)


@dataclass(frozen=True, eq=False)
class Ranking:
    """A person's turns with their scores against one question; `allowed` are those that the filters leave."""

    person: EndUser
    store: Store
    scores: Scores
    allowed: NDArray[np.bool_]

    def best(self, limit: int) -> list[int]:
        """Places of the best turns, best first."""
        total = self._total()
        return [int(place) for place in ranking.best_first(total, limit) if np.isfinite(total[place])]

    def best_of_sessions(self, limit: int) -> list[int]:
        """Places of the best turn of each of the best sessions, best first."""
        total = self._total()
        each = ranking.best_turns(total, self.store.units)
        each = each[np.isfinite(total[each])]
        return [int(each[place]) for place in ranking.best_first(total[each], limit)]

    def parts(self, place: int) -> dict[str, float]:
        """What the score of a turn consists of; vector, lexical and context add up to it."""
        return {name: round(float(getattr(self.scores, name)[place]), 6) for name in ("vector", "lexical", "context")}

    def score(self, place: int) -> float:
        return round(float(self.scores.total[place]), 6)

    def talk(self, place: int) -> Talk:
        return self.store.stretches[int(self.store.places[place])].talk

    def _total(self) -> NDArray[np.float32]:
        """Scores of the turns that are allowed, one after the other; the others' are below all."""
        return np.where(self.allowed, self.scores.total, np.float32(-np.inf))


def rank(person: EndUser, store: Store, question: Question, filters: Filters) -> Ranking:
    """Score all of the person's turns."""
    return Ranking(person, store, ranking.score(store.units, question.queries), _allowed(store, filters))


def turns(ranked: Ranking, *, limit: int) -> list[Finding]:
    """The best turns as they are stored, best first."""
    places = ranked.best(limit)
    stored = read(ranked, places)
    return [_of_turn(ranked, place, stored[place]) for place in places if place in stored]


def sessions(ranked: Ranking, *, limit: int) -> list[Finding]:
    """The best sessions, best first: each is as good as its best turn, whose words it shows."""
    places = ranked.best_of_sessions(limit)
    stored = read(ranked, places)
    return [_of_session(ranked, place, stored[place]) for place in places if place in stored]


def read(ranked: Ranking, places: Sequence[int]) -> dict[int, Turn]:
    """Place → the turn, from the database; one that was deleted meanwhile is not there."""
    ids = ranked.store.ids
    wanted = [ids[place] for place in places]
    found = rows.fetched(_READ, [ranked.person.tenant_id, ranked.person.pk, wanted]) if wanted else []
    stored = {row[0]: hand_written.read(Turn, SHOWN, row) for row in found}
    return {place: stored[ids[place]] for place in places if ids[place] in stored}


def said_at(turn: Turn) -> datetime:
    """When it was said: by the client's clock, if it told, else by ours."""
    return turn.timestamp or turn.created_at


def _allowed(store: Store, filters: Filters) -> NDArray[np.bool_]:
    allowed = np.ones(len(store), np.bool_)
    if filters.since:
        allowed &= store.times >= filters.since.timestamp()
    if filters.until:
        allowed &= store.times < filters.until.timestamp()
    if filters.agent_id is not None or filters.session_id is not None:
        fitting = [_fits(stretch.talk, filters) for stretch in store.stretches]
        allowed &= np.array(fitting, np.bool_)[store.places]
    return allowed


def _fits(talk: Talk, filters: Filters) -> bool:
    return filters.agent_id in (None, talk.agent_id) and filters.session_id in (None, talk.external_id)


def _of_turn(ranked: Ranking, place: int, turn: Turn) -> Finding:
    talk = ranked.talk(place)
    return Finding(
        kind=TURN,
        id=turn.pk,
        text=turn.content,
        score=ranked.score(place),
        score_parts=ranked.parts(place),
        created_at=said_at(turn),
        external_id=turn.external_id,
        session_id=talk.external_id,
        agent_id=talk.agent_id or None,
        turn_numbers=[turn.number],
        role=turn.role,
    )


def _of_session(ranked: Ranking, place: int, turn: Turn) -> Finding:
    told = _of_turn(ranked, place, turn)
    return replace(told, kind=SESSION, id=ranked.talk(place).id, external_id=None)
