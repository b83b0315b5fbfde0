"""What was said at about the same time in sessions that run beside each other, and how much of a query it holds; pure.

Calls, messages, notes and reminders of one evening are of one event, each in a session of its own kind. A session that
others only follow or precede has its window for that (lexical.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring.constants import Constants

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
_HOUR, _DAY_HOURS = 3_600.0, 24.0
# Terms of the query that are looked at together: bounds the memory of a long query.
_TERMS_AT_ONCE = 64


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """The hours and days (UTC) in which a person's units were said.

    `hour`: the ordinal of each unit's, `day`: the ordinal of each hour's; what the number of terms in an hour or a day
    takes from every one of them; `beside`: 1 for units of sessions that overlap with another, else 0.
    """

    hour: Ints
    day: Ints
    hour_norms: Floats
    day_norms: Floats
    beside: Floats

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
        hours, hour = np.unique(np.floor_divide(times, _HOUR), return_inverse=True)
        days, day = np.unique(np.floor_divide(hours, _DAY_HOURS), return_inverse=True)
        of_hours = np.bincount(hour, weights=lengths, minlength=len(hours))
        of_days = np.bincount(day, weights=of_hours, minlength=len(days))
        beside = np.repeat(overlap, np.diff(np.append(starts, len(times)))).astype(np.float32)
        norms = (_norms(of_hours, c.hour_pivot, c), _norms(of_days, c.day_pivot, c))
        return cls(hour.astype(np.int64), day.astype(np.int64), *norms, beside)

    def coverage(self, holding: Iterable[tuple[Ints, Floats]], c: Constants) -> Floats:
        """What the hour and the day of each unit add to its score, as much of the query as they hold.

        `holding`: for each term of the query the units that hold it, and how often.
        """
        hours, days = np.zeros(len(self.hour_norms), np.float32), np.zeros(len(self.day_norms), np.float32)
        of_hours, of_days, said = 0.0, 0.0, list(holding)
        for start in range(0, len(said), _TERMS_AT_ONCE):
            terms = said[start : start + _TERMS_AT_ONCE]
            rows = np.repeat(np.arange(len(terms)), [len(units) for units, _ in terms])
            slots = self.hour[np.concatenate([units for units, _ in terms])]
            held = _held(rows, slots, np.concatenate([often for _, often in terms]), (len(terms), len(hours)))
            hours += _gains(held, self.hour_norms, c)
            of_hours += float(held.idf.sum())
            held = _held(held.rows, self.day[held.slots], held.counts, (len(terms), len(days)))
            days += _gains(held, self.day_norms, c)
            of_days += float(held.idf.sum())
        hours *= c.hour * _told(hours, c) / max(of_hours, 1e-9)
        days *= c.day * _told(days, c) / max(of_days, 1e-9)
        added: Floats = (hours + days[self.day])[self.hour] * self.beside
        return added


def _overlap(first: NDArray[np.float64], last: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of these spans of time share more than a moment with another."""
    order = np.lexsort((last, first))
    ends = np.maximum.accumulate(last[order])
    overlap = np.zeros(len(first), np.bool_)
    overlap[order[1:]] = first[order[1:]] < ends[:-1]
    overlap[order[:-1]] |= last[order[:-1]] > first[order[1:]]
    return overlap


def _told(shares: Floats, c: Constants) -> float:
    """With few hours or days it tells little to be in the right one, as with sessions."""
    return min(1.0, log(len(shares)) / log(c.sessions_full))


def _norms(lengths: NDArray[Any], pivot: float, c: Constants) -> Floats:
    return (c.saturation * (1 - c.moment_slope + c.moment_slope / pivot * lengths)).astype(np.float32)


class _Held(NamedTuple):
    """Which term, a row each, is said in which slot, and how often; and the idf of every term."""

    rows: Ints
    slots: Ints
    counts: NDArray[Any]
    idf: NDArray[np.float64]


def _held(rows: Ints, slots: Ints, counts: NDArray[Any], shape: tuple[int, int]) -> _Held:
    """Counts of the same term in the same slot added up; `shape`: the number of terms, and of slots."""
    terms, size = shape
    sums = np.bincount(rows * size + slots, weights=counts, minlength=terms * size)
    places = np.flatnonzero(sums)
    rows, slots = np.divmod(places, size)
    holding = np.bincount(rows, minlength=terms)
    return _Held(rows, slots, sums[places], np.log1p((size - holding + 0.5) / (holding + 0.5)))


def _gains(held: _Held, norms: Floats, c: Constants) -> Floats:
    """What the terms weigh in each slot, as in a turn (lexical.py)."""
    weights = held.idf[held.rows] * (c.saturation + 1) * held.counts / (held.counts + norms[held.slots])
    return np.bincount(held.slots, weights=weights, minlength=len(norms)).astype(np.float32)
