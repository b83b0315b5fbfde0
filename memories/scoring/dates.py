"""Days, weeks, months and years that a query names, and how near to them something was said; pure.

A turn seldom says its own date. "What did I paint in July 2022?" is answered by one that was said then, or soon after.
"""

import calendar
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import date as day_of
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring import relative_dates
from memories.scoring.relative_dates import Period

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
# From one day to another, and the other one of the same month.
_TO, _HAN_TO = r"\s*(?:to\b|until\b|till\b|through\b|[-\u2013\u2014~])\s*", r"\s*(?:到|至|[-\u2013\u2014~\uff5e])\s*"
_LAST = r"(?P<last>[0-3]?\d)(?:st|nd|rd|th)?\b"
_HAN_DAYS = rf"(?P<day>[0-3]?\d)\s*[日号號]?{_HAN_TO}(?P<last>[0-3]?\d)\s*[日号號]"
_HAN_PART = r"份?的?(?P<part>[上中下]旬|初(?![一二三四五六七八九十])|[底末])"
_HAN_DIGITS = " 一二三四五六七八九"
_PART = r"\b(?P<part>early|mid(?:dle)?|late|beginning|start|end)(?:\s+of)?(?:\s+|-)"


_NAMES = rf"(?:{'|'.join(_MONTHS)})\b"


def _one_of(months: Sequence[str]) -> str:
    return "(?:" + "|".join(rf"(?P<m{number}>{name})" for number, name in enumerate(months, 1)) + r")\b\.?"


_OF_MONTH = rf"\s+(?:of\s+)?\b{_one_of(_MONTHS)}(?:,?\s+{_YEAR})?"
# Longer forms first: what one of them has read is not read again.
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<sign>[-/.])(?P<month>[01]?\d)(?P=sign)(?P<day>[0-3]?\d)(?!\d)",
        rf"(?:{_YEAR}\s*年\s*)?{_HAN_MONTH}\s*{_HAN_DAYS}",
        rf"{_DAY}{_TO}(?:the\s+)?{_LAST}{_OF_MONTH}",
        rf"\bbetween\s+(?:the\s+)?{_DAY}\s+and\s+(?:the\s+)?{_LAST}{_OF_MONTH}",
        rf"\b{_one_of(_MONTHS)}\s+{_DAY}{_TO}{_LAST}(?!\s+(?:of\s+)?{_NAMES})(?:,?\s+{_YEAR})?",
        rf"(?:{_YEAR}\s*年\s*)?{_HAN_MONTH}(?:\s*{_HAN_DAY}|{_HAN_PART})?",
        rf"{_YEAR}\s*年",
        rf"{_DAY}{_OF_MONTH}",
        rf"\b{_one_of(_MONTHS)}\s+{_DAY}(?:,?\s+{_YEAR})?",
        rf"{_PART}{_one_of(_WHOLE_MONTHS)}(?:,?\s+{_YEAR})?",
        rf"\b{_one_of(_MONTHS)},?\s+{_YEAR}",
        rf"\b(?:in|during|since|until|last|this|next)\s+{_one_of(_WHOLE_MONTHS)}",
        rf"\b(?:in|during|since|until|spring|summer|autumn|fall|winter)\s+{_YEAR}",
    )
)


# What stands for each date that was read, in its order, and two of them that name all between.
_MARKS = [chr(0xE000 + place) for place in range(64)]
_MARK = f"([{_MARKS[0]}-{_MARKS[-1]}])"
_RANGE = re.compile(
    rf"between\s+{_MARK}\s+and\s+{_MARK}|{_MARK}(?:\s*,)?(?:{_TO}|{_HAN_TO})(?:the\s+)?{_MARK}", re.IGNORECASE
)


# Most queries name no date and are not looked at further.
_HINT = re.compile(r"[\d月]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", re.IGNORECASE)


# "On 8 May 2023, what did Ann do yesterday?" is asked of that day; so is "[2023-05-08] What did Ann do yesterday?".
_OPENING = re.compile(
    r"\W*(?:(?:today|now|it)(?:'s|’s|\s+is|\s+was)|as\s+of|on|date|(?:今天|现在)是?|截至)?\W*", re.IGNORECASE
)
_CLOSING = re.compile(r"\s*(?:\d\d?:\d\d(?::\d\d)?\s*)?[,.:;)\]，。：；）】]")


class Date(NamedTuple):
    """A day, a month or a year; without a year it is that of every year. With a `last` day the part of a month, or what
    lies between it and that day of the `last_month`, which may be one of the next year."""

    year: int | None
    month: int | None
    day: int | None
    last: int | None = None
    last_month: int | None = None

    @property
    def is_day(self) -> bool:
        """Whether it is a single day."""
        return self.day is not None and self.last is None


def named(text: str, asked: datetime | None = None) -> tuple[Date | Period, ...]:
    """The dates that a text names, if they are few; also those relative to the day on which it is `asked`, or that it
    opens with."""
    periods, text = relative_dates.periods(text, _opening(text) or asked.date()) if asked else ((), text)
    found = dict.fromkeys([*_of_year(_absolute(text), periods)])
    return tuple(found) if len(found) <= MOST_DATES else ()


def _opening(text: str) -> day_of | None:
    """The day with which the text begins, set apart from what follows."""
    start = opening.end() if (opening := _OPENING.match(text)) else 0
    for pattern in _PATTERNS:
        match = pattern.match(text, start)
        date = _date(match.groupdict()) if match and _CLOSING.match(text, match.end()) else None
        if date and date.year and date.month and date.day and not date.last and _span(date, date.year):
            return day_of(date.year, date.month, date.day)
    return None


def _absolute(text: str) -> list[Date]:
    if not _HINT.search(text):
        return []
    found: list[Date] = []
    for pattern in _PATTERNS:
        text = pattern.sub(partial(_read, found), text)
    return _joined(found, text) if len(found) > 1 else found


def _read(found: list[Date], match: re.Match[str]) -> str:
    """What is put in the place of a date: nothing else is to be read from it."""
    date = _date(match.groupdict())
    # 2000 had a 29th of February; what no calendar has is no date.
    if not _span(date, date.year or 2000):
        return match[0] if match.groupdict().get("last") else " ; "
    found.append(date)
    return f" {_MARKS[len(found) - 1]} " if len(found) <= len(_MARKS) else " ; "


def _joined(found: Sequence[Date], text: str) -> list[Date]:
    """The dates; in the place of two that the text names as the ends of a time that time."""
    places: dict[int, Date | None] = dict(enumerate(found))
    for match in _RANGE.finditer(text):
        first, last = (_MARKS.index(mark) for mark in match.groups() if mark)
        if last < len(found) and first < len(found) and (between := _between(found[first], found[last])):
            places |= {first: between, last: None}
    return [date for date in places.values() if date]


def _between(first: Date, last: Date) -> Date | None:
    """From the one to the other, if both are days or months, and it takes less than a year."""
    if first.last or last.last or first.month is None or last.month is None:
        return None
    later = last.month < first.month
    year = first.year if first.year or not last.year else last.year - later
    between = Date(year, first.month, first.day or 1, last.day or 31, last.month)
    ends = year is None or last.year in (None, year + later)
    return between if ends and _span(between, year or 2000) else None


def _of_year(dates: Sequence[Date], periods: Sequence[Period]) -> list[Date | Period]:
    """All of them; of "on 3 May last year" the day in that year."""
    years = [period for period in periods if period.is_year]
    if len(years) != 1 or not any(date.year is None for date in dates):
        return [*dates, *periods]
    dated = [date if date.year else date._replace(year=years[0].first.year) for date in dates]
    return [*dated, *(period for period in periods if period not in years)]


def closeness(
    times: NDArray[np.float64], dates: Sequence[Date | Period], *, before: float, after: float, zone: tzinfo = UTC
) -> Floats:
    """1 for what was said at one of the dates, falling to 0 as many days before and after it; float32 as `times`.

    `times`: seconds since 1970. Days are those of the zone.
    """
    spans = sorted(
        span for date in dates for year in _years(date, times) if (span := _span(date, year, zone)) is not None
    )
    if not spans:
        return np.zeros(times.shape, np.float32)
    starts, ends = np.array(spans).T
    begun = np.searchsorted(starts, times, side="right")
    early = np.append(starts, np.inf)[begun] - times
    late = times - np.append(-np.inf, np.maximum.accumulate(ends))[begun]
    away = np.minimum(early / (before * _DAY_SECONDS), late / (after * _DAY_SECONDS))
    near: Floats = (1 - np.clip(away, 0, 1)).astype(np.float32)
    return near


_NUMBERS = ("year", "month", "day", "last")


def _date(groups: dict[str, str | None]) -> Date:
    numbers = {name: _number(text) for name, text in groups.items() if text and name in _NUMBERS}
    spelt = next((number for number in range(1, 13) if groups.get(f"m{number}")), None)
    part = groups.get("part")
    first, last = relative_dates.third(part) if part else (numbers.get("day"), numbers.get("last"))
    return Date(numbers.get("year"), numbers.get("month", spelt), first, last)


def _number(text: str) -> int:
    """Of Arabic digits, or of Chinese ones up to 39."""
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    return (_HAN_DIGITS.index(tens or "一") * 10 if ten else 0) + (_HAN_DIGITS.index(ones) if ones else 0)


def _years(date: Date | Period, times: NDArray[np.float64]) -> Sequence[int]:
    """The date's own, or all in which something was said and one more at both ends."""
    if isinstance(date, Period):
        return [date.first.year]
    if date.year is not None:
        return [date.year]
    if not times.size:
        return []
    first, last = (datetime.fromtimestamp(seconds, UTC).year for seconds in (times.min(), times.max()))
    return range(first - 1, last + 2)


def _span(date: Date | Period, year: int, zone: tzinfo = UTC) -> tuple[float, float] | None:
    """Seconds from its beginning to its end; None for what is not in the calendar of that year."""
    try:
        first, days = _days(date, year)
        start = datetime(first.year, first.month, first.day, tzinfo=zone)
        return start.timestamp(), (start + timedelta(days=days)).timestamp()
    except (ValueError, OverflowError):
        return None


def _days(date: Date | Period, year: int) -> tuple[day_of, int]:
    """Its first day, and how many they are."""
    if isinstance(date, Period):
        return date.first, (date.last - date.first).days + 1
    first = day_of(year, 1 if date.month is None else date.month, 1 if date.day is None else date.day)
    if date.month is None:
        return first, 366 if calendar.isleap(year) else 365
    if date.last is None:
        return first, calendar.monthrange(year, date.month)[1] if date.day is None else 1
    month = date.last_month or date.month
    year += month < date.month
    last = day_of(year, month, min(date.last, calendar.monthrange(year, month)[1]))
    if last < first:
        raise ValueError("It ends before it begins")
    return first, (last - first).days + 1
