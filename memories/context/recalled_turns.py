"""Turns that a context recalls into the room that is left: those that answer the query, or what was said last."""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.context import relevance
from memories.context.rendering import MemoryLine, said_again, text_of, turn_line
from memories.context.window import OpenWindow
from memories.db import binary_rows
from memories.llm.reranking import Candidate
from memories.models import EndUser, Role, Turn, hand_written
from memories.models.conversations.conversations import moment_sent, speaker
from memories.models.folding import bare, fold
from memories.models.hand_written import condition, parameter
from memories.models.memories.visibility import Conversations
from memories.retrieval import reranking, turn_search
from memories.retrieval.evidence import Level
from memories.retrieval.hits import TURN, SearchFilters
from memories.retrieval.outdated import Outdated
from memories.retrieval.prepared_query import PreparedQuery
from memories.retrieval.turn_index import Shown, Stretches, TurnIndex, open_or_newest
from memories.retrieval.turn_search import SHOWN, TurnRanking
from memories.text.injection.flagged_turns import is_flagged

# With any fill, turns below it have nothing to do with the query and come after the others, what was said last first.
FLOOR = 0.1
# Without a query so many of the newest are told, unless the budget is to be filled.
NEWEST = 20
# Turns of tools and systems are found by searches only: nobody vouches for them.
RECALLED_ROLES = frozenset((Role.USER, Role.ASSISTANT))
# A turn repeats facts whose texts make up so much of it, and says nothing else if they make up so much.
SAME_SHARE, WHOLE_SHARE = 0.4, 0.8
# Tokens of the shortest line, what a line has beside its text at least, and about what it shows of the longest text.
LEAST, BESIDE_TEXT, MOST_TEXT = 3, 2, 300
# How much is told of which turns until there is room for more: up to which place, bytes (None: all), and about how many
# tokens these are. The first places answer most questions.
Lengths = tuple[tuple[int, int | None, int], ...]
RELEVANT_LENGTHS: Lengths = ((3, None, MOST_TEXT), (8, 90, 27), (10_000, 40, 14))
FILLING_LENGTHS: Lengths = ((10, None, MOST_TEXT), (10_000, 120, 36))
# Tokens up to which passages are told as a whole, where a question needs few.
ROOMY = 500
# Of the best, however many turns there are, as many are certain as the room holds of the shortest; so many at least and
# at most.
CERTAIN = (64, 256)
# Turns that are read beyond those that should fill the room, and at once where they did not: some may not be told.
SPARE, AT_ONCE = 4, 32

# By hand, because an agent waits for it before every reply. As many of the newest as fill the room.
_NEWEST = f"{moment_sent()} DESC, session_id DESC, number DESC"
_LATEST = f"""
    WITH latest AS (
        SELECT {", ".join(SHOWN)}, least(token_count, {MOST_TEXT}) + {BESIDE_TEXT} AS tokens FROM memories_turn
        WHERE tenant_id = %(tenant)s AND end_user_id = %(person)s AND (SPEAKER) = ANY(%(roles)s)
            AND terms IS NOT NULL
            AND flagged IS NOT TRUE AND IN_CONVERSATIONS
            AND NOT (session_id IS NOT DISTINCT FROM %(session)s::uuid AND number = ANY(%(numbers)s::int[]))
        ORDER BY {_NEWEST} LIMIT %(most)s
    ), counted AS (
        SELECT *, sum(tokens) OVER (ORDER BY {_NEWEST}) - tokens AS newer FROM latest
    )
    SELECT {", ".join(SHOWN)} FROM counted WHERE newer <= %(room)s ORDER BY {_NEWEST}
"""  # noqa: S608  (columns of our own model)

# (speaker, bare text).
Said = tuple[str, str]


class Saying(NamedTuple):
    """A folded text that one speaker said, once or again. One line tells it, the newest turn's, and names
    the others."""

    key: Said
    text: str
    line: MemoryLine


class Fresh(NamedTuple):
    """Lines to be told, and those of turns that are only named: what they say stands there already."""

    lines: list[MemoryLine]
    named: list[MemoryLine]


Recalled = list[Saying]


@dataclass(frozen=True, eq=False)
class Recallable:
    """The turns that a context may recall, scored for its query: those of `ranked` that are allowed."""

    query: PreparedQuery
    ranked: TurnRanking
    # Whether all turns were scored, not only the newest.
    is_whole: bool = True

    @cached_property
    def level(self) -> Level:
        """How strong the evidence is that any of them has to do with the query."""
        return self.ranked.evidence.best

    @cached_property
    def tokens(self) -> int:
        """About how many tokens all of them take as passages; of very many at least how many."""
        permitted = self.ranked.permitted
        if (many := LEAST * int(np.count_nonzero(permitted))) > relevance.LITTLE:
            return many
        counts = self.ranked.index.token_counts[permitted]
        return int(np.minimum(counts, FILLING_LENGTHS[-1][2]).sum()) + BESIDE_TEXT * len(counts)

    def related(self, most: int) -> int:
        """How many of the best `most` have to do with the query."""
        if self.level == Level.NONE:
            return 0
        return relevance.related(self.ranked.totals(self.ranked.best(most)))

    def have(self, stretches: Stretches) -> NDArray[np.bool_]:
        """Of which of these stretches any turn is among the person's."""
        return self.ranked.index.has_turns(stretches)


class Bounds(NamedTuple):
    """What limits the turns: `room` in tokens, `most` as asked for, and the scores of those that may be told.
    `is_filled`: unrelated turns take what is left."""

    room: int
    is_filled: bool
    most: int | None = None
    least_score: float | None = None
    least_level: Level = Level.NONE


def recallable(
    person: EndUser,
    query: PreparedQuery,
    window: OpenWindow,
    conversations: Conversations,
    *,
    room: int,
    is_filled: bool,
) -> Recallable:
    """Turns in the window and of other conversations are left out. `room`: tokens, of which unrelated turns take what
    is left if it `is_filled`."""
    index, is_whole = open_or_newest(person, query.space, shown=Shown(window.session, window.numbers))
    among = _outside(index, window)
    least, most = CERTAIN
    if not is_filled:
        most = min(most, max(least, room // (BESIDE_TEXT + RELEVANT_LENGTHS[-1][2])))
    ranked = turn_search.rank(person, index, query, SearchFilters(), conversations, most=most, among=among)
    return Recallable(query, ranked, is_whole)


def answering(found: Recallable, bounds: Bounds, *, all_of_them: bool, outdated: Outdated) -> Iterator[Recalled]:
    """The turns that answer the query, best first, as batches: first about as many as fill the room."""
    query, most = found.query, bounds.room // LEAST
    ranked, places = _places(found, bounds, most if bounds.is_filled or all_of_them else found.related(most))
    places, reranked = _reranked(query.text, ranked, places)
    lengths = FILLING_LENGTHS if bounds.is_filled else RELEVANT_LENGTHS
    ends = np.array([end for end, _, _ in lengths])
    part = np.searchsorted(ends, np.arange(len(places)), side="right").clip(max=len(lengths) - 1)
    expected = np.minimum(ranked.index.token_counts[places], np.array([size for _, _, size in lengths])[part])
    first = int(np.searchsorted(np.cumsum(expected + BESIDE_TEXT), bounds.room)) + SPARE
    words, zone = query.terms, ranked.person.clock
    for start, end in pairwise([0, *range(first, len(places), AT_ONCE), len(places)]):
        stored = turn_search.read(ranked, places[start:end])
        there = [
            (place, turn)
            for place in range(start, end)
            if (turn := stored.get(places[place])) and turn.speaker in RECALLED_ROLES
        ]
        # Places by turns, and then as much of the text as its best turn shows.
        ranks = {turn.id: place for place, turn in there}

        def line_of(turn: Turn, text: str, best: Turn, ranks: Mapping[uuid.UUID, int] = ranks) -> MemoryLine:
            at = places[ranks[turn.id]]
            parts, length = ranked.parts(at), lengths[part[ranks[best.id]]][1]
            if at in reranked:
                parts |= reranked[at]
            return turn_line(turn, text, ranked.score(at), parts, words=words, length=length, zone=zone)

        yield sayings([turn for _, turn in there], outdated, line_of)


def sayings(turns: Sequence[Turn], outdated: Outdated, line_of: Callable[[Turn, str, Turn], MemoryLine]) -> Recalled:
    """What those of the turns that may be told say that still holds, each text once, where its first turn is.

    `line_of`: makes the line of a turn with its text, given the first turn that says the same.
    """
    found: dict[Said, tuple[str, list[tuple[Turn, str]]]] = {}
    for turn in turns:
        outdated.apply(turn)
        text = text_of(turn)
        if text and not is_flagged(turn):
            folded = fold(text)
            found.setdefault((turn.speaker, bare(folded)), (folded, []))[1].append((turn, text))
    said = []
    for key, (folded, same) in found.items():
        first, newest = same[0][0], same[0]
        if len(same) > 1:
            newest = max(same, key=lambda one: (one[0].sent_at, one[0].number))
        line = line_of(*newest, first)
        if len(same) > 1:
            others = sorted((one for one in same if one is not newest), key=lambda one: one[0].sent_at, reverse=True)
            line = said_again(line, [line_of(*one, first) for one in others], newest[1])
        said.append(Saying(key, folded, line))
    return said


def fresh(
    batches: Iterable[Recalled],
    query: str,
    texts: Sequence[str],
    *,
    again: bool,
    said: Collection[Said] = (),
    shown: Collection[tuple[str, str]] = (),
) -> Iterator[Fresh]:
    """The lines of what may be recalled and is not told yet: `texts` are those of facts and episodes, `said` of other
    turns, `shown` the keys of lines. What is the question itself tells nothing, and is left out.

    What says little more than a text, or what another speaker said, comes last if it may come `again`, else not at all.
    """
    folded, asked = {fold(text) for text in texts}, bare(fold(query))
    facts, told, by_any = set(map(bare, folded)), set(said), {asked}
    least = SAME_SHARE if again else WHOLE_SHARE
    repeating: list[MemoryLine] = []
    for batch in batches:
        found = Fresh([], [])
        for key, text, line in batch:
            if key == (Role.USER, asked):
                continue
            lines = (line, *line.also)
            if key[1] in facts or key in told or (shown and any(one.key in shown for one in lines)):
                found.named.extend(one for one in lines if one.key not in shown)
            elif key[1] in by_any or (folded and _repeated(text, folded) >= least):
                repeating.append(line)
            else:
                found.lines.append(line)
            told.add(key)
            by_any.add(key[1])
        yield found
    if again:
        yield Fresh(repeating, [])


def may_be_recalled(turn: Turn) -> bool:
    """Whether the turn has text of the conversation that does not speak to a model."""
    return turn.speaker in RECALLED_ROLES and text_of(turn) != "" and not is_flagged(turn)


def latest(
    person: EndUser, window: OpenWindow, conversations: Conversations, *, bounds: Bounds, outdated: Outdated
) -> Recalled:
    """What was said last."""
    parameters = {
        "tenant": person.tenant_id,
        "person": person.pk,
        "roles": list(RECALLED_ROLES),
        "session": window.session,
        "numbers": sorted(window.numbers),
        "most": bounds.room // LEAST if bounds.is_filled else min(bounds.room // LEAST, 2 * (bounds.most or NEWEST)),
        "room": bounds.room,
        "agent": conversations.agent_id,
        "as_of": conversations.as_of,
    }
    statement = _latest_statement(conversations.by_default, as_of=conversations.as_of is not None)
    turns = [hand_written.read(Turn, SHOWN, row) for row in binary_rows.fetched(statement, parameters)]
    zone = person.clock
    return sayings(turns, outdated, lambda turn, text, _: turn_line(turn, text, zone=zone))


@cache
def _latest_statement(by_default: str, *, as_of: bool) -> str:
    conversations = Conversations(parameter("agent"), by_default, parameter("as_of") if as_of else None)
    return _LATEST.replace("SPEAKER", speaker("memories_turn")).replace(
        "IN_CONVERSATIONS", condition(Turn, conversations.turns(parameter("person")))
    )


def _outside(index: TurnIndex, window: OpenWindow) -> NDArray[np.bool_]:
    """Turns of the conversation that are not in the window."""
    outside = index.said_by(RECALLED_ROLES).copy()
    if window.session:
        there = index.turns_of(window.session)
        outside[there] &= ~np.isin(index.numbers[there], list(window.numbers))
    return outside


def _places(found: Recallable, bounds: Bounds, most: int) -> tuple[TurnRanking, list[int]]:
    """Places of `most` turns: the best, best first, then unrelated ones, what was said last first."""
    ranked = found.ranked
    allowed, near = _allowed(ranked, bounds)
    if near.sum() < most and len(ranked.places) < len(ranked.index):
        ranked = ranked.latest(most)
        allowed, near = _allowed(ranked, bounds)
    places = replace(ranked, allowed=near).best(most)
    if len(places) < most:
        far = ranked.places[allowed & ~near]
        by_time = np.lexsort((far, ranked.index.times[far]))[::-1]
        places += far[by_time][: most - len(places)].tolist()
    return ranked, places


def _allowed(ranked: TurnRanking, bounds: Bounds) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of the turns that were scored may be told, and which of them have to do with the query."""
    allowed = ranked.allowed
    if bounds.least_score is not None:
        allowed = allowed & (ranked.scores.total >= bounds.least_score)
    if bounds.least_level != Level.NONE:
        allowed = allowed & [level.rank >= bounds.least_level.rank for level in ranked.evidence.levels]
    return allowed, allowed & (ranked.scores.total >= FLOOR)


def _reranked(query: str, ranked: TurnRanking, places: list[int]) -> tuple[list[int], dict[int, dict[str, float]]]:
    """The places in the reranker's order, and its part of their scores, if there is one."""
    # Without a reranker these are none, and no text is read.
    best = places[: reranking.candidates_for(0)]
    stored = turn_search.read(ranked, best)
    present = [at for at in best if at in stored]
    candidates = [Candidate(TURN, str(stored[at].pk), stored[at].own_text, ranked.score(at)) for at in present]
    reranked = {present[at]: part for at, part in reranking.order(query, candidates)}
    return [*reranked, *places[len(best) :]], reranked


def _repeated(text: str, folded: Collection[str]) -> float:
    """How much of it these texts make up, 0..1."""
    return min(1.0, sum(len(one) for one in folded if one in text) / max(1, len(text)))
