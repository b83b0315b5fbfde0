"""How much of a query's words a turn, its neighbourhood and its session hold; pure.

The share of the query that is covered, not BM25 against the rest of the list: words that nobody said count against
every unit, so a score means the same in every store.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring import arrays, terms
from memories.scoring.constants import Constants

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
# Of as many as there are units: half of what Ints take.
Ordinals = NDArray[np.int32]
# The units that hold a term, ascending, and how often.
Holding = tuple[Ordinals, Floats]
# A word that one of so many units holds, or more, is summed over the windows of all units at once.
COMMON = 24
# A word that more than one of so many units hold weighs little: the windows of all units are not searched for it.
MANY = 128


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """Shares of the query, 0 to about 2.2 (repeats count a little): of each turn, its window, its session."""

    turn: Floats
    window: Floats
    session: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The terms of n units, by term: the units that hold `ids[i]`, ascending, are `units[starts[i]:starts[i + 1]]`."""

    ids: NDArray[np.uint32]
    starts: Ints
    units: Ordinals
    counts: NDArray[np.uint16]
    lengths: Floats

    @classmethod
    def of(cls, packed: Sequence[bytes]) -> "Postings":
        """Read packed terms; empty bytes are a unit that was not counted yet. ValueError for another version."""
        sizes = np.fromiter(map(len, packed), np.int64, len(packed)) // terms.RECORD.itemsize
        for one in packed:
            if one:
                terms.check(one)
        records = np.frombuffer(b"".join(packed), terms.RECORD)
        counted = np.flatnonzero(sizes)
        headers = (np.cumsum(sizes) - sizes)[counted]
        lengths = np.zeros(len(packed), np.float32)
        lengths[counted] = records.view(terms.HEADER)["length"][headers]
        units = np.delete(np.repeat(np.arange(len(packed), dtype=np.int32), sizes), headers)
        records = np.delete(records, headers)
        return cls._sorted(records["id"], units, records["count"], lengths)

    @classmethod
    def joined(cls, parts: Sequence["Postings"], places: Sequence[Ints], size: int) -> "Postings":
        """Those of `size` units: unit i of a part is unit `places[part][i]`, or goes where that is negative."""
        lengths = np.zeros(size, np.float32)
        for part, place in zip(parts, places, strict=True):
            lengths[place[place >= 0]] = part.lengths[place >= 0]
        ids, units, counts = [np.empty(0, np.uint32)], [np.empty(0, np.int32)], [np.empty(0, np.uint16)]
        for part, place in zip(parts, places, strict=True):
            moved = place[part.units].astype(np.int32)
            there = moved >= 0
            ids.append(np.repeat(part.ids, np.diff(part.starts))[there])
            units.append(moved[there])
            counts.append(part.counts[there])
        return cls._sorted(np.concatenate(ids), np.concatenate(units), np.concatenate(counts), lengths)

    @classmethod
    def _sorted(
        cls, ids: NDArray[np.uint32], units: Ordinals, counts: NDArray[np.uint16], lengths: Floats
    ) -> "Postings":
        # By term, then by unit; no unit has a term twice.
        order = np.argsort(ids.astype(np.uint64) << np.uint64(32) | units.astype(np.uint64))
        distinct, starts = np.unique(ids[order], return_index=True)
        return cls(distinct, np.append(starts, len(order)), units[order], counts[order], lengths)

    def holding(self, query: NDArray[np.uint32]) -> list[tuple[Ordinals, Floats] | None]:
        """For each term the units that hold it, and how often; None for a word that nobody said."""
        places = np.searchsorted(self.ids, query)
        present = places < len(self.ids)
        present[present] = self.ids[places[present]] == query[present]
        ranges = [
            slice(self.starts[at], self.starts[at + 1]) if found else None
            for at, found in zip(places, present, strict=True)
        ]
        return [(self.units[some], self.counts[some].astype(np.float32)) if some else None for some in ranges]

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where sessions begin and end among units that are ordered by session and number."""

    starts: Ints
    session: Ordinals
    # Units that are the only one of their session.
    lonely: Ints
    alone: bool = False

    @classmethod
    def of(cls, sessions: Ordinals, *, alone: bool) -> "Layout":
        """Sessions are runs of one ordinal; `alone`: every unit is a session of its own."""
        starts = np.arange(len(sessions)) if alone else arrays.run_starts(sessions)
        lengths, ordinals = np.diff(starts, append=len(sessions)), np.arange(len(starts), dtype=np.int32)
        session = sessions if np.array_equal(sessions[starts], ordinals) else np.repeat(ordinals, lengths)
        return cls(starts, session, starts[lengths == 1], alone)

    @property
    def ends(self) -> Ints:
        """Behind the last unit of each session."""
        return np.append(self.starts[1:], len(self.session))

    def windows(self, units: Ints, reach: int) -> tuple[Ordinals, Ordinals]:
        """The first and the last unit of the window of each of these."""
        session = self.session.take(units)
        first = np.maximum(units - reach, self.starts.take(session))
        last = np.minimum(units + reach, self.ends.take(session) - 1)
        return first.astype(np.int32), last.astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The terms of n units, as `parts` hold them one after the other, and what their lengths take from each.

    Row i of the parts is unit `places[i]`, or none if that is negative (None: unit i). `room`: for each unit its place
    on an axis on which sessions lie so far apart that no window reaches into the next; `units`: what stands there, -1
    for nothing.
    """

    parts: tuple[Postings, ...]
    places: Ordinals | None
    layout: Layout
    constants: Constants
    lengths: Floats
    turn: Floats
    window: Floats
    session: Floats
    room: Ordinals
    units: Ordinals

    @classmethod
    def of(cls, parts: Sequence[Postings], layout: Layout, constants: Constants, order: Ints | None = None) -> "Words":
        """`order`: for each unit its row in the parts (None: as they stand)."""
        c, places = constants, None
        lengths = arrays.in_a_row([part.lengths for part in parts])
        if order is not None:
            places = np.full(len(lengths), -1, np.int32)
            places[order] = np.arange(len(order), dtype=np.int32)
            lengths = lengths[order]
        room = np.arange(len(lengths), dtype=np.int32) + c.reach * (1 + layout.session)
        units = np.full(len(lengths) + c.reach * (1 + len(layout.starts)), -1, np.int32)
        units[room] = np.arange(len(lengths), dtype=np.int32)
        axis = np.zeros(len(units), np.float32)
        axis[room] = lengths
        windows = _windows(axis, c.reach)[room]
        of_sessions = np.add.reduceat(lengths, layout.starts) if len(lengths) else lengths
        return cls(
            tuple(parts),
            places,
            layout,
            c,
            lengths,
            _norm(lengths, c.turn_slope, c.turn_pivot, c.saturation),
            _norm(windows, c.window_slope, c.window_pivot, c.saturation),
            _norm(of_sessions, c.session_slope, c.session_pivot, c.saturation),
            room,
            units,
        )

    def holding(self, query: NDArray[np.uint32]) -> Iterator[Holding]:
        """For each term who holds it."""
        for found in zip(*(part.holding(query) for part in self.parts), strict=True):
            units, counts, first = [], [], 0
            for part, held in zip(self.parts, found, strict=True):
                if held:
                    units.append(held[0] + first if first else held[0])
                    counts.append(held[1])
                first += len(part)
            if not units:
                yield _NOWHERE
                continue
            rows, often = arrays.in_a_row(units), arrays.in_a_row(counts)
            if self.places is not None:
                rows = self.places[rows]
                rows, often = rows[rows >= 0], often[rows >= 0]
                if (rows[1:] < rows[:-1]).any():
                    order = np.argsort(rows, kind="stable")
                    rows, often = rows[order], often[order]
            yield rows, often

    def window_counts(self, units: Ordinals, counts: Floats, axis: Floats) -> tuple[Ints | Ordinals, Floats]:
        """The units whose windows hold a term that these units hold, and how often. `axis` is zeros, and is again."""
        places, reach = self.room[units], self.constants.reach
        if len(units) * COMMON > len(self.turn):
            axis[places] = counts
            sums = _windows(axis, reach)[self.room]
            axis[places] = 0
            held = np.flatnonzero(sums > 0)
            return held, sums[held]
        around = [places + distance for distance in range(-reach, reach + 1)]
        for some in around:
            np.add.at(axis, some, counts)
        found, often = [], []
        for some in around:
            # What was taken once is zero.
            sums = axis[some]
            there = sums > 0
            found.append(some[there])
            often.append(sums[there])
            axis[some] = 0
        at, sums = self.units[np.concatenate(found)], np.concatenate(often)
        return at[at >= 0], sums[at >= 0]

    def __len__(self) -> int:
        return len(self.turn)


_NOWHERE = (np.empty(0, np.int32), np.empty(0, np.float32))


class _Runs(NamedTuple):
    """The sessions that hold a term, where their units begin among those that hold it, and how often each holds it."""

    sessions: Ordinals
    starts: Ints
    counts: Floats

    @classmethod
    def of(cls, layout: Layout, units: Ordinals, counts: Floats) -> "_Runs":
        session = layout.session.take(units)
        starts = arrays.run_starts(session)
        return cls(session[starts], starts, np.add.reduceat(counts, starts))

    def windows(self, layout: Layout, units: Ordinals, reach: int) -> int:
        """In how many windows the term is."""
        if not len(units):
            return 0
        first, last = units[self.starts], units[np.append(self.starts[1:], len(units)) - 1]
        before = np.minimum(first - layout.starts[self.sessions], reach)
        after = np.minimum(layout.ends[self.sessions] - 1 - last, reach)
        # Between two units of a session all windows have it, or those within reach of either.
        between = np.minimum(np.diff(units), 2 * reach + 1)
        of_others = np.minimum(first[1:] - last[:-1], 2 * reach + 1)
        return int(before.sum() + after.sum() + len(first) + between.sum() - of_others.sum())


class _Frequent(NamedTuple):
    """A term that many hold: the units that do, ascending, how often each does, and what it weighs in windows."""

    units: Ordinals
    counts: Floats
    idf: float

    def said(self, first: Ordinals, last: Ordinals) -> Floats:
        """How often it is said from one unit to another."""
        at, after = np.searchsorted(self.units, first), np.searchsorted(self.units, last, "right")
        said = np.zeros(len(first), np.float32)
        while (within := np.flatnonzero(at < after)).size:
            said[within] += self.counts[at[within]]
            at[within] += 1
        return said


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What coverage() adds up in turns and sessions, of all units; `session`: by session.

    `window`: without the terms that are so `common` that windows_at() adds them up where they are asked for; `whole`:
    what the terms weigh in windows.
    """

    turn: Floats
    session: Floats
    window: Floats
    common: list[_Frequent]
    whole: np.float32


def shares(words: Words, held: Sequence[Holding]) -> Shares:
    """The shares of a query's distinct terms; `held`: of each the units that hold it, and how often."""
    layout, c = words.layout, words.constants
    session = np.zeros(len(layout.starts), np.float32)
    turn, window, axis = arrays.zeros(len(words), len(words), len(words.units))
    of_turns, of_sessions, of_windows, common = 0.0, 0.0, 0.0, []
    for units, counts in held:
        of_turns += _add(turn, units, counts, words.turn, c, holding=len(units))
        runs = _Runs.of(layout, units, counts)
        of_sessions += _add(session, runs.sessions, runs.counts, words.session, c, holding=len(runs.sessions))
        if len(units) * MANY > len(words):
            idf = _idf(len(words), runs.windows(layout, units, c.reach))
            common.append(_Frequent(units, counts, idf))
            of_windows += idf
        else:
            reached, often = words.window_counts(units, counts, axis)
            of_windows += _add(window, reached, often, words.window, c, holding=len(reached))
    turn /= np.float32(max(of_turns, 1e-9))
    session *= _told(session, c) / np.float32(max(of_sessions, 1e-9))
    whole = np.float32(max(of_windows, 1e-9))
    window /= whole
    if layout.lonely.size:
        session[layout.session[layout.lonely]] = window[layout.lonely] = 0
    return Shares(turn, session, window, common, whole)


def windows_at(words: Words, shares: Shares, places: Ints) -> Floats:
    """The shares of the windows of these units."""
    c, found = words.constants, np.zeros(len(places), np.float32)
    first, last = words.layout.windows(places, c.reach)
    for term in shares.common:
        sums = term.said(first, last)
        found += np.float32(term.idf * (c.saturation + 1)) * sums / (sums + words.window[places])
    if words.layout.lonely.size:
        found[np.isin(places, words.layout.lonely)] = 0
    return shares.window[places] + found / shares.whole


def coverage(words: Words, held: Iterable[Holding]) -> Coverage:
    """The shares of a query's distinct terms, of which Words.holding() tells who holds them; all zero for a query
    without terms or a store without units.

    Each share is Σ idf · tf · (k + 1) / (tf + k · (1 − b + b · length / pivot)) over Σ idf (Robertson's BM25), with
    idf = ln(1 + (N − df + 0.5) / (df + 0.5)) over the N turns, windows and sessions. Only what holds a word is touched.
    """
    layout, size = words.layout, len(words)
    turn, window, axis = arrays.zeros(size, size, len(words.units))
    session = np.zeros(len(layout.starts), np.float32)
    weights = [0.0, 0.0, 0.0]
    for units, counts in held if size else ():
        weights[0] += _add(turn, units, counts, words.turn, words.constants, holding=len(units))
        if layout.alone:
            continue
        reached, often = words.window_counts(units, counts, axis)
        weights[1] += _add(window, reached, often, words.window, words.constants, holding=len(reached))
        runs = _Runs.of(layout, units, counts)
        weights[2] += _add(
            session, runs.sessions, runs.counts, words.session, words.constants, holding=len(runs.sessions)
        )
    whole = [np.float32(max(weight, 1e-9)) for weight in weights]
    turn /= whole[0]
    if layout.alone:
        return Coverage(turn, window, np.zeros_like(window))
    window /= whole[1]
    of_session = (session / whole[2] * _told(session, words.constants))[layout.session]
    if layout.lonely.size:
        window[layout.lonely] = of_session[layout.lonely] = 0
    return Coverage(turn, window, of_session)


def _told(session: Floats, c: Constants) -> np.float32:
    """With few sessions it tells little to be in the right one."""
    return np.float32(min(1.0, np.log(max(1, len(session))) / np.log(c.sessions_full)))


def _add(
    shares: Floats,
    units: Ints | Ordinals,
    counts: Floats,
    norms: Floats,
    c: Constants,
    *,
    holding: int,
) -> float:
    """Add what a term weighs to these units, of which so many hold it; its idf."""
    idf = _idf(len(shares), holding)
    if holding:
        np.add.at(shares, units, np.float32(idf * (c.saturation + 1)) * counts / (counts + norms.take(units)))
    return idf


def _idf(size: int, holding: int) -> float:
    return log1p((size - holding + 0.5) / (holding + 0.5))


def _norm(lengths: Floats, slope: float, pivot: float, saturation: float) -> Floats:
    """What the length of a unit takes from each of its words: k · (1 − b + b · length / pivot)."""
    norm: Floats = np.float32(saturation) * ((1 - slope) + (slope / pivot) * lengths).astype(np.float32)
    return norm


def _windows(axis: Floats, reach: int) -> Floats:
    """Sums of each place with up to `reach` before and after it."""
    sums = axis.copy()
    for distance in range(1, reach + 1):
        sums[distance:] += axis[:-distance]
        sums[:-distance] += axis[distance:]
    return sums
