"""How much of a query's words a turn, its neighbourhood and its session hold; pure.

The share of the query that is covered, not BM25 against the rest of the list: words that nobody said count against
every unit, so a score means the same in every store.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memories.scoring import terms
from memories.scoring.constants import Constants

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
# Terms of the query that are looked at together: bounds the memory of a long query in a large store.
TERMS_AT_ONCE = 32


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """Shares of the query, 0 to about 2.2 (repeats count a little): of each turn, its window, its session."""

    turn: Floats
    window: Floats
    session: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The terms of n units, by term: the units that hold `ids[i]` are `units[starts[i]:starts[i + 1]]`."""

    ids: NDArray[np.uint32]
    starts: Ints
    units: Ints
    counts: Floats
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
        units = np.delete(np.repeat(np.arange(len(packed)), sizes), headers)
        return cls._sorted(np.delete(records, headers), units, lengths)

    @classmethod
    def _sorted(cls, records: NDArray[np.void], units: Ints, lengths: Floats) -> "Postings":
        order = np.argsort(records["id"], kind="stable")
        ids, starts = np.unique(records["id"][order], return_index=True)
        starts = np.append(starts, len(order))
        return cls(ids, starts, units[order], records["count"][order].astype(np.float32), lengths)

    def counts_of(self, query: NDArray[np.uint32]) -> Floats:
        """How often each unit holds each term: float32[terms, n]; rows of zeros for words that nobody said."""
        table = np.zeros((len(query), len(self.lengths)), np.float32)
        for row, some in self._of(query):
            table[row, self.units[some]] = self.counts[some]
        return table

    def holding(self, query: NDArray[np.uint32]) -> Iterator[tuple[Ints, Floats]]:
        """For each term the units that hold it, and how often; empty for a word that nobody said."""
        found = dict(self._of(query))
        for row in range(len(query)):
            some = found.get(row, slice(0))
            yield self.units[some], self.counts[some]

    def _of(self, query: NDArray[np.uint32]) -> Iterator[tuple[int, slice]]:
        """Of the terms that somebody said: the row, and where its units stand."""
        for row, place in enumerate(np.searchsorted(self.ids, query)):
            if place < len(self.ids) and self.ids[place] == query[row]:
                yield row, slice(int(self.starts[place]), int(self.starts[place + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where sessions begin and end among units that are ordered by session and number."""

    starts: Ints
    session: Ints
    accompanied: NDArray[np.bool_]

    @classmethod
    def of(cls, sessions: NDArray[np.int32], *, alone: bool) -> "Layout":
        """Sessions are runs of one ordinal; `alone`: every unit is a session of its own."""
        changes = np.ones(len(sessions), np.bool_)
        if not alone:
            changes[1:] = sessions[1:] != sessions[:-1]
        starts, session = np.flatnonzero(changes), np.cumsum(changes) - 1
        return cls(starts, session, np.bincount(session, minlength=len(starts))[session] > 1)

    def together(self, distance: int) -> Floats:
        """1 where a unit and the one `distance` later are of one session, else 0: float32[n − distance]."""
        same: Floats = (self.session[distance:] == self.session[:-distance]).astype(np.float32)
        return same

    def window_sums(self, values: Floats, reach: int) -> Floats:
        """Sums over the last axis of each unit with up to `reach` before and after it in its session."""
        sums = values.copy()
        for distance in range(1, reach + 1):
            together = self.together(distance)
            sums[..., distance:] += values[..., :-distance] * together
            sums[..., :-distance] += values[..., distance:] * together
        return sums

    def session_sums(self, values: Floats) -> Floats:
        """Sums over the last axis by session: one column for each."""
        sums: Floats = np.add.reduceat(values, self.starts, axis=-1)
        return sums


def coverage(postings: Postings, layout: Layout, query: NDArray[np.uint32], constants: Constants) -> Coverage:
    """The shares of a query's distinct terms; all zero for a query without terms or a store without units."""
    size = len(postings.lengths)
    sums, weights = np.zeros((3, size), np.float32), np.zeros(3)
    for start in range(0, len(query) if size else 0, TERMS_AT_ONCE):
        table = postings.counts_of(query[start : start + TERMS_AT_ONCE])
        for row, (gain, weight) in enumerate(_levels(table, postings, layout, constants)):
            sums[row] += gain
            weights[row] += weight
    turn, window, session = sums / np.maximum(weights, 1e-9)[:, None].astype(np.float32)
    of_session = np.float32(min(1.0, np.log(max(1, len(layout.starts))) / np.log(constants.sessions_full)))
    return Coverage(turn, window * layout.accompanied, session * layout.accompanied * of_session)


def _levels(table: Floats, postings: Postings, layout: Layout, c: Constants) -> list[tuple[Floats, float]]:
    """Weighted gains and the sum of the weights for turn, window and session."""
    lengths, reach = postings.lengths, c.reach
    session, total = _gain(
        layout.session_sums(table), layout.session_sums(lengths), c.session_slope, c.session_pivot, c.saturation
    )
    return [
        _gain(table, lengths, c.turn_slope, c.turn_pivot, c.saturation),
        _gain(
            layout.window_sums(table, reach),
            layout.window_sums(lengths, reach),
            c.window_slope,
            c.window_pivot,
            c.saturation,
        ),
        (session[layout.session], total),
    ]


def _gain(counts: Floats, lengths: Floats, slope: float, pivot: float, saturation: float) -> tuple[Floats, float]:
    """Σ idf · tf · (k + 1) / (tf + k · (1 − b + b · length / pivot)), and Σ idf (Robertson's BM25).

    idf = ln(1 + (N − df + 0.5) / (df + 0.5)), over the N columns of `counts`.
    """
    holding = np.count_nonzero(counts, axis=1)
    idf = np.log1p((counts.shape[1] - holding + 0.5) / (holding + 0.5)).astype(np.float32)
    norm = np.float32(saturation) * ((1 - slope) + (slope / pivot) * lengths).astype(np.float32)
    gains = counts * np.float32(saturation + 1)
    gains /= counts + norm
    weighted: Floats = idf @ gains
    return weighted, float(idf.sum())
