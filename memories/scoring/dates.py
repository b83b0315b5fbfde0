"""Days, months and years that a query names, and how near to them something was said; pure.

A turn seldom says its own date. "What did I paint in July 2022?" is answered by one that was said then, or soon after.
"""

import calendar
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

# More are a timetable that was pasted, not the time of what is asked for.
MOST_DATES = 4
_DAY_SECONDS = 86_400.0
# Words that are no month as often as one need their capital, and a month alone its whole name.
_MONTHS = (
    *("jan(?:uary)?", "feb(?:ruary)?", "(?-i:Mar(?:ch)?|MARCH)", "apr(?:il)?", "(?-i:May|MAY)", "june?", "july?"),
    *("aug(?:ust)?", "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?"),
)
_WHOLE_MONTHS = (
    *("january", "february", "(?-i:March|MARCH)", "april", "(?-i:May|MAY)", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_YEAR, _DAY = r"(?P<year>(?:19|20)\d\d)(?!\d)", r"(?<!\d)(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\b"
_HAN_MONTH = r"(?<!\d)(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])\s*月"
_HAN_DAY = r"(?P<day>[0-3]?\d|[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])\s*[日号號]"
_HAN_DIGITS = " 一二三四五六七八九"


def _one_of(months: Sequence[str]) -> str:
    return "(?:" + "|".join(rf"(?P<m{number}>{name})" for number, name in enumerate(months, 1)) + r")\b\.?"


# Longer forms first: what one of them has read is not read again.
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<sign>[-/.])(?P<month>[01]?\d)(?P=sign)(?P<day>[0-3]?\d)(?!\d)",
        rf"(?:{_YEAR}\s*年\s*)?{_HAN_MONTH}(?:\s*{_HAN_DAY})?",
        rf"{_YEAR}\s*年",
        rf"{_DAY}\s+(?:of\s+)?\b{_one_of(_MONTHS)}(?:,?\s+{_YEAR})?",
        rf"\b{_one_of(_MONTHS)}\s+{_DAY}(?:,?\s+{_YEAR})?",
        rf"\b{_one_of(_MONTHS)},?\s+{_YEAR}",
        rf"\b(?:in|during|since|until|last|this|next|early|mid|late)\s+{_one_of(_WHOLE_MONTHS)}",
        rf"\b(?:in|during|since|until|spring|summer|autumn|fall|winter)\s+{_YEAR}",
    )
)


# Most queries name no date and are not looked at further.
_HINT = re.compile(r"[\d月]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", re.IGNORECASE)


class Date(NamedTuple):
    """A day, a month or a year; without a year it is that of every year."""

    year: int | None
    month: int | None
    day: int | None


def named(text: str) -> tuple[Date, ...]:
    """The dates that a text names, if they are few."""
    if not _HINT.search(text):
        return ()
    found: dict[Date, None] = {}
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            date = _date(match.groupdict())
            # 2000 had a 29th of February; what no calendar has is no date.
            if _span(date, date.year or 2000):
                found[date] = None
        text = pattern.sub(" ; ", text)
    return tuple(found) if len(found) <= MOST_DATES else ()


def closeness(times: NDArray[np.float64], dates: Sequence[Date], *, before: float, after: float) -> Floats:
    """1 for what was said at one of the dates, falling to 0 as many days before and after it; float32[n].

    `times`: seconds since 1970. Days are those of UTC.
    """
    spans = sorted(span for date in dates for year in _years(date, times) if (span := _span(date, year)))
    if not spans:
        return np.zeros(len(times), np.float32)
    starts, ends = np.array(spans).T
    begun = np.searchsorted(starts, times, side="right")
    early = np.append(starts, np.inf)[begun] - times
    late = times - np.append(-np.inf, np.maximum.accumulate(ends))[begun]
    away = np.minimum(early / (before * _DAY_SECONDS), late / (after * _DAY_SECONDS))
    near: Floats = (1 - np.clip(away, 0, 1)).astype(np.float32)
    return near


def _date(groups: dict[str, str | None]) -> Date:
    numbers = {name: _number(text) for name, text in groups.items() if text and name in ("year", "month", "day")}
    spelt = next((number for number in range(1, 13) if groups.get(f"m{number}")), None)
    return Date(numbers.get("year"), numbers.get("month", spelt), numbers.get("day"))


def _number(text: str) -> int:
    """Of Arabic digits, or of Chinese ones up to 39."""
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    return (_HAN_DIGITS.index(tens or "一") * 10 if ten else 0) + (_HAN_DIGITS.index(ones) if ones else 0)


def _years(date: Date, times: NDArray[np.float64]) -> Sequence[int]:
    """The date's own, or all in which something was said and one more at both ends."""
    if date.year is not None:
        return [date.year]
    if not len(times):
        return []
    first, last = (datetime.fromtimestamp(seconds, UTC).year for seconds in (times.min(), times.max()))
    return range(first - 1, last + 2)


def _span(date: Date, year: int) -> tuple[float, float] | None:
    """Seconds from its beginning to its end; None for what is not in the calendar of that year."""
    month, day = 1 if date.month is None else date.month, 1 if date.day is None else date.day
    try:
        start = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    if date.month is None:
        days = 366 if calendar.isleap(year) else 365
    else:
        days = calendar.monthrange(year, month)[1] if date.day is None else 1
    return start.timestamp(), (start + timedelta(days=days)).timestamp()
