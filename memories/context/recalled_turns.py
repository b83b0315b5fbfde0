"""Turns that a context recalls for a query: the best hits, each with the turns beside it, as lines."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memories.context.rendering import Line, text_of, turn_line
from memories.context.window import OpenWindow
from memories.llm.reranking import Candidate
from memories.models import EndUser, Role, Turn
from memories.models.folding import fold
from memories.retrieval import reranking, turn_search
from memories.retrieval.hits import TURN, SearchFilters
from memories.retrieval.prepared_query import PreparedQuery
from memories.retrieval.turn_index import ROLES, open_index
from memories.retrieval.turn_search import TurnRanking
from memories.text.injection.flagged_turns import is_flagged

HITS = 10
# A turn below it has next to nothing to do with the query. All turns that answer a question of LoCoMo lie above it; of
# the best ten for a question about somebody else, one in nine does.
FLOOR = 0.3
# Turns of tools and systems are found by searches only: nobody vouches for them.
RECALLED_ROLES = (Role.USER, Role.ASSISTANT)
# A turn repeats a fact whose text makes up so much of it.
SAME_SHARE = 0.4


def lines(person: EndUser, query: PreparedQuery, window: OpenWindow, *, texts: Sequence[str]) -> list[Line]:
    """The best hits, best first, each before its neighbours.

    Turns in the window are left out, and so are turns that repeat one of `texts` (those of facts and episodes).
    """
    index = open_index(person, query.space)
    outside = np.ones(len(index), np.bool_)
    for at, part in enumerate(index.sessions):
        if part.session.id == window.session:
            outside[index.session_of == at] = ~np.isin(part.numbers, list(window.numbers))
    ranked = turn_search.rank(person, index, query, SearchFilters())
    reranked = _reranked(query.text, ranked, _hits(ranked, outside))
    # Each hit before its neighbours in its session.
    places: dict[int, None] = {}
    for hit in list(reranked)[:HITS]:
        for near in (hit, hit - 1, hit + 1):
            is_beside = 0 <= near < len(index) and index.session_of[near] == index.session_of[hit]
            if is_beside and outside[near]:
                places[near] = None
    stored = turn_search.read(ranked, list(places))
    folded = [fold(text) for text in texts]
    return [
        turn_line(stored[place], score=ranked.score(place), score_parts=ranked.parts(place) | reranked.get(place, {}))
        for place in places
        if place in stored and _may_be_recalled(stored[place]) and not _repeats(stored[place], folded)
    ]


def _hits(ranked: TurnRanking, outside: NDArray[np.bool_]) -> list[int]:
    codes = [ROLES.index(role) for role in RECALLED_ROLES]
    recalled = replace(ranked, allowed=ranked.allowed & outside & np.isin(ranked.index.roles, codes))
    best = recalled.best(reranking.candidates_for(HITS))
    return [place for place in best if ranked.scores.total[place] >= FLOOR]


def _reranked(query: str, ranked: TurnRanking, hits: Sequence[int]) -> dict[int, dict[str, float]]:
    """The hits in the order of the reranker, if there is one, each with that part of its score."""
    if not reranking.candidates_for(0):
        return {place: {} for place in hits}
    stored = turn_search.read(ranked, hits)
    hits = [place for place in hits if place in stored]
    candidates = [Candidate(TURN, str(stored[at].pk), stored[at].content, ranked.score(at)) for at in hits]
    return {hits[place]: part for place, part in reranking.order(query, candidates)}


def _may_be_recalled(turn: Turn) -> bool:
    return turn.role in RECALLED_ROLES and text_of(turn) != "" and not is_flagged(turn)


def _repeats(turn: Turn, folded: Iterable[str]) -> bool:
    text = fold(text_of(turn))
    return any(one in text and len(one) >= SAME_SHARE * len(text) for one in folded)
