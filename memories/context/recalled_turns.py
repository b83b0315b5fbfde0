"""Turns that a context recalls into the room that is left: those that answer the query best, or what was said last."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.context.rendering import MemoryLine, text_of, turn_line
from memories.context.window import OpenWindow
from memories.db import binary_rows
from memories.llm.reranking import Candidate
from memories.models import EndUser, Role, Turn, hand_written
from memories.models.conversations.conversations import voice
from memories.models.folding import fold
from memories.models.hand_written import condition, parameter
from memories.models.memories.visibility import Conversations
from memories.retrieval import reranking, turn_search
from memories.retrieval.hits import TURN, SearchFilters
from memories.retrieval.outdated import Outdated
from memories.retrieval.prepared_query import PreparedQuery
from memories.retrieval.turn_index import VOICES, TurnIndex, open_index
from memories.retrieval.turn_search import SHOWN, TurnRanking
from memories.text.injection.flagged_turns import is_flagged

# Turns below it have nothing to do with the query and come after the others, what was said last first. Of LoCoMo's
# questions it changes what is told to one in a thousand; 0.3 lost 1.5 % of the answers.
FLOOR = 0.1
# Turns of tools and systems are found by searches only: nobody vouches for them.
RECALLED_ROLES = (Role.USER, Role.ASSISTANT)
# A turn repeats a fact whose text makes up so much of it.
SAME_SHARE = 0.4
# Tokens of the shortest line, what a line has beside its text, and about what it shows of the longest text.
LEAST, BESIDE_TEXT, MOST_TEXT = 10, 11, 300
# So many of the best answers are told whole, the others as passages, until there is room for more. Of a passage about
# so many tokens are shown.
WHOLE, PASSAGE = 10, 36
# Turns that are read beyond those that should fill the room, and at once where they did not: some may not be told.
SPARE, AT_ONCE = 4, 32

# By hand, because an agent waits for it before every reply. As many of the newest as fill the room.
_NEWEST = "least(timestamp, created_at) DESC, session_id DESC, number DESC"
_LATEST = f"""
    WITH latest AS (
        SELECT {", ".join(SHOWN)}, least(token_count, {MOST_TEXT}) + {BESIDE_TEXT} AS tokens FROM memories_turn
        WHERE tenant_id = %(tenant)s AND end_user_id = %(person)s AND (VOICE) = ANY(%(roles)s)
            AND terms IS NOT NULL
            AND flagged IS NOT TRUE AND IN_CONVERSATIONS
            AND NOT (session_id IS NOT DISTINCT FROM %(session)s::uuid AND number = ANY(%(numbers)s::int[]))
        ORDER BY {_NEWEST} LIMIT %(most)s
    ), counted AS (
        SELECT *, sum(tokens) OVER (ORDER BY {_NEWEST}) - tokens AS newer FROM latest
    )
    SELECT {", ".join(SHOWN)} FROM counted WHERE newer <= %(room)s ORDER BY {_NEWEST}
"""  # noqa: S608  (columns of our own model)
_Recalled = list[tuple[Turn, MemoryLine]]


class _Bounds(NamedTuple):
    """What batches() was asked for besides the query."""

    window: OpenWindow
    conversations: Conversations
    room: int
    outdated: Outdated


def batches(
    person: EndUser,
    query: PreparedQuery | None,
    window: OpenWindow,
    conversations: Conversations,
    *,
    room: int,
    texts: Sequence[str],
    outdated: Outdated,
) -> Iterator[list[MemoryLine]]:
    """Lines in their order, first about as many as fill so many tokens of `room`.

    Turns in the window and of other conversations are left out, and of the others what is `outdated`.
    Turns that repeat one of `texts` (those of facts and
    episodes) come last.
    """
    folded = sorted(map(fold, texts), key=len)
    repeating: list[MemoryLine] = []
    bounds = _Bounds(window, conversations, room, outdated)
    for recalled in _answering(person, query, bounds) if query else [_latest(person, bounds)]:
        fresh: list[MemoryLine] = []
        for turn, line in recalled:
            if may_be_recalled(turn):
                (repeating if _repeats(turn, folded) else fresh).append(line)
        yield fresh
    yield repeating


def may_be_recalled(turn: Turn) -> bool:
    """Whether the turn has text of the conversation that does not speak to a model."""
    return turn.voice in RECALLED_ROLES and text_of(turn) != "" and not is_flagged(turn)


def _latest(person: EndUser, bounds: _Bounds) -> _Recalled:
    """What was said last."""
    window, conversations, room, outdated = bounds
    parameters = {
        "tenant": person.tenant_id,
        "person": person.pk,
        "roles": list(RECALLED_ROLES),
        "session": window.session,
        "numbers": sorted(window.numbers),
        "most": room // LEAST,
        "room": room,
        "agent": conversations.agent_id,
        "as_of": conversations.as_of,
    }
    statement = _latest_statement(conversations.by_default, as_of=conversations.as_of is not None)
    turns = [hand_written.read(Turn, SHOWN, row) for row in binary_rows.fetched(statement, parameters)]
    for turn in turns:
        outdated.apply(turn)
    return [(turn, turn_line(turn, zone=person.clock)) for turn in turns]


@cache
def _latest_statement(by_default: str, *, as_of: bool) -> str:
    conversations = Conversations(parameter("agent"), by_default, parameter("as_of") if as_of else None)
    return _LATEST.replace("VOICE", voice("memories_turn")).replace(
        "IN_CONVERSATIONS", condition(Turn, conversations.turns(parameter("person")))
    )


def _answering(person: EndUser, query: PreparedQuery, bounds: _Bounds) -> Iterator[_Recalled]:
    """The best hits, best first."""
    window, conversations, room, outdated = bounds
    index = open_index(person, query.space)
    ranked = turn_search.rank(person, index, query, SearchFilters(), conversations)
    recallable = _recallable(index, window) & ranked.allowed
    places, reranked = _ordered(query.text, ranked, recallable, room // LEAST)
    most = np.where(np.arange(len(places)) < WHOLE, MOST_TEXT, PASSAGE)
    filled = np.cumsum(np.minimum(index.token_counts[places], most) + BESIDE_TEXT)
    words, whole = query.terms, frozenset(places[:WHOLE])
    first = int(np.searchsorted(filled, room)) + SPARE
    zone = person.clock
    for start, end in pairwise([0, *range(first, len(places), AT_ONCE), len(places)]):
        stored = turn_search.read(ranked, places[start:end])
        batch: _Recalled = []
        for at in places[start:end]:
            if turn := stored.get(at):
                outdated.apply(turn)
                parts = ranked.parts(at) | reranked.get(at, {})
                cut_for = None if at in whole else words
                line = turn_line(turn, score=ranked.score(at), score_parts=parts, words=cut_for, zone=zone)
                batch.append((turn, line))
        yield batch


def _recallable(index: TurnIndex, window: OpenWindow) -> NDArray[np.bool_]:
    """Turns of the conversation that are not in the window."""
    recallable = np.isin(index.roles, [VOICES.index(role) for role in RECALLED_ROLES])
    for at, part in enumerate(index.sessions):
        if part.session.id == window.session:
            recallable[index.session_of == at] &= ~np.isin(part.numbers, list(window.numbers))
    return recallable


def _ordered(
    query: str, ranked: TurnRanking, recallable: NDArray[np.bool_], most: int
) -> tuple[list[int], dict[int, dict[str, float]]]:
    """Places of the best turns, best first, and the reranker's part of their scores, if there is one."""
    near = recallable & (ranked.scores.total >= FLOOR)
    places = replace(ranked, allowed=near).best(most)
    if len(places) < most:
        far = np.flatnonzero(recallable & ~near)
        latest = np.lexsort((far, ranked.index.times[far]))[::-1]
        places += far[latest][: most - len(places)].tolist()
    # Without a reranker these are none, and no text is read.
    best = places[: reranking.candidates_for(0)]
    stored = turn_search.read(ranked, best)
    present = [at for at in best if at in stored]
    candidates = [Candidate(TURN, str(stored[at].pk), stored[at].own_text, ranked.score(at)) for at in present]
    reranked = {present[at]: part for at, part in reranking.order(query, candidates)}
    return [*reranked, *places[len(best) :]], reranked


def _repeats(turn: Turn, folded: Sequence[str]) -> bool:
    """Whether it repeats one of the texts, which are given from the shortest to the longest."""
    text = fold(text_of(turn))
    first = bisect_left(folded, SAME_SHARE * len(text), key=len)
    return any(one in text for one in folded[first : bisect_right(folded, len(text), key=len)])
