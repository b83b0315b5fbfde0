"""Turns that a context recalls for a question: the best hits, each with the turns beside it, as lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memories.llm.reranking import Candidate
from memories.models import EndUser, Role, Turn
from memories.models.folding import fold
from memories.pipeline import found_turns, reranking
from memories.pipeline.asking import Question
from memories.pipeline.findings import TURN, Filters
from memories.pipeline.found_turns import Ranking
from memories.pipeline.lines import Line, turn_line
from memories.pipeline.open_window import Window
from memories.pipeline.stores import ROLES, Store, open_store

HITS = 10
# Below this a turn has next to nothing to do with the question. Of turns that answer a question of LoCoMo all lie above
# it, of the best ten for a question about somebody else one in nine does.
FLOOR = 0.3
# What tools and systems say is searched, not recalled: nobody vouches for it.
RECALLED_ROLES = (Role.USER, Role.ASSISTANT)
# A turn says again what a fact says when the fact's words make up so much of it.
SAME_SHARE = 0.4


def lines(person: EndUser, question: Question, window: Window, *, said: Sequence[str]) -> list[Line]:
    """The best hits, best first, each before its neighbours; without what `said` (texts of facts) says already, and
    without the turns that the window shows."""
    store = open_store(person, question.space)
    unshown = _unshown(store, window)
    ranked = found_turns.rank(person, store, question, Filters())
    hits = [
        place for place in _heard(ranked, unshown).best(reranking.reach(HITS)) if ranked.scores.total[place] >= FLOOR
    ]
    parts = _reranked(ranked, question.text, hits)
    hits = list(parts)[:HITS]
    places = list(dict.fromkeys(near for hit in hits for near in _with_neighbours(ranked, hit) if unshown[near]))
    stored = found_turns.read(ranked, places)
    known = [fold(text) for text in said]
    told = [place for place in places if place in stored and stored[place].role in RECALLED_ROLES]
    unsaid = [place for place in told if not _says_again(stored[place], known)]
    return [_line(ranked, place, stored[place], parts.get(place, {})) for place in unsaid]


def _reranked(ranked: Ranking, query: str, hits: Sequence[int]) -> dict[int, dict[str, float]]:
    """The hits in the order of the reranker, if there is one, each with that part of its score."""
    if reranking.reach(0):
        stored = found_turns.read(ranked, hits)
        hits = [place for place in hits if place in stored]
        candidates = [Candidate(TURN, str(stored[at].pk), stored[at].content, ranked.score(at)) for at in hits]
        return {hits[place]: part for place, part in reranking.order(query, candidates)}
    return {place: {} for place in hits}


def _heard(ranked: Ranking, unshown: NDArray[np.bool_]) -> Ranking:
    """Only what people and assistants said can be a hit."""
    codes = [ROLES.index(role) for role in RECALLED_ROLES]
    return replace(ranked, allowed=ranked.allowed & unshown & np.isin(ranked.store.roles, codes))


def _unshown(store: Store, window: Window) -> NDArray[np.bool_]:
    """Of each turn, whether the window does not show it."""
    unshown = np.ones(len(store), np.bool_)
    for at, stretch in enumerate(store.stretches):
        if stretch.talk.id == window.session:
            unshown[store.places == at] = ~np.isin(stretch.numbers, list(window.numbers))
    return unshown


def _with_neighbours(ranked: Ranking, hit: int) -> Iterator[int]:
    """The hit, then the turns before and after it in its session."""
    yield hit
    places = ranked.store.places
    for near in (hit - 1, hit + 1):
        if 0 <= near < len(places) and places[near] == places[hit]:
            yield near


def _line(ranked: Ranking, place: int, turn: Turn, part: dict[str, float]) -> Line:
    return turn_line(turn, score=ranked.score(place), score_parts=ranked.parts(place) | part)


def _says_again(turn: Turn, known: Iterable[str]) -> bool:
    """Whether a fact that is told anyway says most of it."""
    text = fold(turn.content)
    return any(one in text and len(one) >= SAME_SHARE * len(text) for one in known)
