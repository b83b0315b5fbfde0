"""What was said at about the same time in sessions that run beside each other, and how much of a query it holds; pure.

Calls, messages, notes and reminders of one evening are of one event, each in a session of its own kind. A matter of
several days, such as a journey, is told in pieces. A session that others only follow or precede has its window for that
(lexical.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring import arrays
from memories.scoring.constants import Constants

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Ordinals = NDArray[np.int32]
# Hours of seconds, days of hours, weeks of days: what is added before it is divided, because 1970 began on a Thursday
# and weeks begin on Monday, and by what.
_LEVELS = ((0.0, 3_600.0), (0.0, 24.0), (3.0, 7.0))
# Terms of the query that are looked at together: bounds the memory of a long query.
_TERMS_AT_ONCE = 16


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Hours, days or weeks (UTC) in which something was said.

    `of`: the ordinal of the one of each unit, hour or day; `norms`: what the number of its terms takes from every one
    of them; `weight`: the most that it adds to a score.
    """

    of: Ordinals
    norms: Floats
    weight: float


class Stretches(NamedTuple):
    """What the units of a session that follow each other have alike: a value from each start to the next."""

    starts: Ints
    values: Floats
    size: int

    def at(self, units: Ints | slice) -> Floats:
        """The values of these units, or of all from one to another."""
        if not isinstance(units, slice):
            return self.values.take(np.searchsorted(self.starts, units, "right") - 1)
        first, end, _ = units.indices(self.size)
        some = slice(max(0, int(np.searchsorted(self.starts, first, "right")) - 1), np.searchsorted(self.starts, end))
        return np.repeat(self.values[some], np.diff(np.maximum(self.starts[some], first), append=end))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """The hours of a person's units, the days of these and the weeks of those.

    `starts`: where a session, or an hour of it, begins; `beside`: of each whether the session overlaps with another.
    """

    levels: tuple[Slots, ...]
    starts: Ints
    beside: NDArray[np.bool_]

    @classmethod
    def of(cls, times: NDArray[np.float64], starts: Ints, lengths: Floats, c: Constants) -> "Moments | None":
        """From when units were said, in seconds since 1970, where their sessions start, and how long they are.

        None where no two sessions overlap.
        """
        if len(starts) < 2:
            return None
        overlap = _overlap(np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts))
        if not overlap.any():
            return None
        levels: list[Slots] = []
        at: NDArray[Any] = times
        told: NDArray[Any] = lengths
        for (early, long), weight, pivot in zip(
            _LEVELS, (c.hour, c.day, c.week), (c.hour_pivot, c.day_pivot, c.week_pivot), strict=True
        ):
            at, of = np.unique(np.floor_divide(at + early, long), return_inverse=True)
            told = np.bincount(of, weights=told, minlength=len(at))
            levels.append(Slots(of.astype(np.int32), _norms(told, pivot, c), weight))
        stretches = np.union1d(starts, arrays.run_starts(levels[0].of))
        return cls(tuple(levels), stretches, overlap[np.searchsorted(starts, stretches, "right") - 1])

    def added(self, holding: Iterable[tuple[Ordinals, Floats]], c: Constants) -> Stretches:
        """What their hour, its day and its week add to the scores of units: as much of the query as these hold.

        `holding`: for each term of the query the units that hold it, and how often.
        """
        said, gains = list(holding), [np.zeros(len(level.norms), np.float32) for level in self.levels]
        whole = [0.0] * len(gains)
        for start in range(0, len(said), _TERMS_AT_ONCE):
            held = np.array([
                np.bincount(self.levels[0].of.take(units), weights=often, minlength=len(gains[0]))
                for units, often in said[start : start + _TERMS_AT_ONCE]
            ])  # fmt: skip
            for place, level in enumerate(self.levels):
                if place:
                    held = np.add.reduceat(held, arrays.run_starts(level.of), axis=1)
                idf = _idf(held)
                gains[place] += _gains(held, idf, level.norms, c)
                whole[place] += float(idf.sum())
        added = np.zeros(1, np.float32)
        for place in range(len(gains) - 1, -1, -1):
            gain, level = gains[place], self.levels[place]
            added = added + gain * np.float32(level.weight * _told(gain, c) / max(whole[place], 1e-9))
            added = added.take(level.of if place else level.of.take(self.starts))
        return Stretches(self.starts, added * self.beside, len(self.levels[0].of))


def _overlap(first: NDArray[np.float64], last: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of these spans of time share more than a moment with another."""
    order = np.lexsort((last, first))
    ends = np.maximum.accumulate(last[order])
    overlap = np.zeros(len(first), np.bool_)
    overlap[order[1:]] = first[order[1:]] < ends[:-1]
    overlap[order[:-1]] |= last[order[:-1]] > first[order[1:]]
    return overlap


def _told(shares: Floats, c: Constants) -> float:
    """With few hours, days or weeks it tells little to be in the right one, as with sessions."""
    return min(1.0, log(len(shares)) / log(c.sessions_full))


def _norms(lengths: NDArray[Any], pivot: float, c: Constants) -> Floats:
    return (c.saturation * (1 - c.moment_slope + c.moment_slope / pivot * lengths)).astype(np.float32)


def _idf(held: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each term, a row each, by how many slots, a column each, hold it."""
    size, holding = held.shape[1], np.count_nonzero(held, axis=1)
    idf: NDArray[np.float64] = np.log1p((size - holding + 0.5) / (holding + 0.5))
    return idf


def _gains(held: NDArray[np.float64], idf: NDArray[np.float64], norms: Floats, c: Constants) -> Floats:
    """What the terms weigh in each slot, as in a turn (lexical.py)."""
    gains: NDArray[np.float64] = ((idf * (c.saturation + 1))[:, None] * held / (held + norms)).sum(axis=0)
    return gains.astype(np.float32)
