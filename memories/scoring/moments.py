"""What was said at about the same time in sessions that run beside each other, and how much of a query it holds; pure.

Calls, messages, notes and reminders of one evening are of one event, each in a session of its own kind. A session that
others only follow or precede has its window for that (lexical.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log, log1p

import numpy as np
from numpy.typing import NDArray

from memories.scoring.constants import Constants

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
_HOUR, _DAY_HOURS = 3_600.0, 24.0


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
        weights = [0.0, 0.0]
        for units, counts in holding:
            of_hours = np.bincount(self.hour[units], weights=counts, minlength=len(hours))
            held = np.flatnonzero(of_hours)
            of_days = np.bincount(self.day[held], weights=of_hours[held], minlength=len(days))
            weights[0] += _add(hours, of_hours, self.hour_norms, c)
            weights[1] += _add(days, of_days, self.day_norms, c)
        hours *= c.hour * _told(hours, c) / max(weights[0], 1e-9)
        days *= c.day * _told(days, c) / max(weights[1], 1e-9)
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


def _norms(lengths: NDArray[np.float64], pivot: float, c: Constants) -> Floats:
    return (c.saturation * (1 - c.moment_slope + c.moment_slope / pivot * lengths)).astype(np.float32)


def _add(shares: Floats, counts: NDArray[np.float64], norms: Floats, c: Constants) -> float:
    """Add what a term weighs to the hours or days that hold it; its idf."""
    held = np.flatnonzero(counts)
    idf = log1p((len(shares) - len(held) + 0.5) / (len(held) + 0.5))
    often = counts[held].astype(np.float32)
    shares[held] += np.float32(idf * (c.saturation + 1)) * often / (often + norms[held])
    return idf
