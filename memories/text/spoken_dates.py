"""The days that a text means, counted from the day on which it was said: "in three days", 两周后, "am Montag"; pure.

What is read is exact. Of a period only the first and the last day are meant, and the day that is as far away, until
somebody names another one.
"""

import calendar
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import product
from typing import NamedTuple

from memories.text import date_words as words
from memories.text.date_words import LAST, NEXT, SECOND_LAST, SECOND_NEXT, THIS

_DAYS_OF = {"day": 1, "week": 7, "fortnight": 14}
_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
# What is further away is a number of something else.
_MOST_DAYS = 45_000
_OFFSETS = {NEXT: 1, LAST: -1, THIS: 0, SECOND_NEXT: 2, SECOND_LAST: -2}


class Meant(NamedTuple):
    """From its first to its last day. `days`: "any" if each of them is meant, "ends" for the first and the last one,
    "named" for none; besides, one whose number somebody names."""

    first: date
    last: date
    days: str = "ends"

    def has_month(self, year: int | None, month: int) -> bool:
        """Whether it touches this month, of any year if `year` is None."""
        start, end = (self.first.year, self.first.month), (self.last.year, self.last.month)
        years = [year] if year else range(self.first.year, self.last.year + 1)
        return any(start <= (one, month) <= end for one in years)

    def has_day(self, year: int | None, month: int, day: int, *, is_named: bool) -> bool:
        """Whether it means this day. `is_named`: somebody named its number."""
        for one in [year] if year else range(self.first.year, self.last.year + 1):
            try:
                found = date(one, month, day)
            except ValueError:
                continue
            is_end = self.days == "ends" and found in (self.first, self.last)
            if self.first <= found <= self.last and (is_named or is_end or self.days == "any"):
                return True
        return False


def read(text: str, today: date) -> list[Meant]:
    """What a folded text without its written dates means, said on that day."""
    reading = _Reading(text, today)
    try:
        return reading.meant()
    except (ValueError, OverflowError):
        # Beyond the calendar.
        return reading.found


def edges(text: str) -> Iterator[str]:
    """Which of "first", "middle" and "last" a folded text names, of any period."""
    return (name for name, pattern in words.EDGES.items() if pattern.search(text))


def speaks_of_time(text: str) -> bool:
    """Whether a folded text names a day or a unit of time at all."""
    return words.OF_TIME.search(text) is not None


def is_last(year: int | None, month: int, day: int) -> bool:
    """Whether it is the last day of the month, in any year if `year` is None."""
    return day == calendar.monthrange(year or 2001, month)[1] or (year is None and (month, day) == (2, 29))


class _Amount(NamedTuple):
    """So many units, and whether they lie ahead (1) or back (-1), from today or only from a day that is named beside
    them (no sign); (start, end) is its place."""

    start: int
    end: int
    unit: str
    numbers: tuple[float, ...]
    signs: tuple[int, ...]


class _Reading:
    """One pass over a text. What a pattern has read is blanked, so that "tomorrow" is not read in "the day after
    tomorrow"."""

    def __init__(self, text: str, today: date) -> None:
        self.found: list[Meant] = []
        self._original = self._text = text
        self._today = today
        self._monday = today - timedelta(days=today.weekday())
        self._edges = set(edges(text))
        self._amounts: list[_Amount] = []
        # Days that an amount may be counted from, with their place, and weeks that a weekday may be of.
        self._anchors: list[tuple[int, int, list[date]]] = []
        self._weeks: list[date] = []
        self._weekdays: set[int] = set()

    def meant(self) -> list[Meant]:
        readers: list[tuple[re.Pattern[str], Callable[[re.Match[str]], None]]] = [
            (words.AMOUNT, self._amount),
            (words.EAST_AMOUNT, self._east_amount),
            (words.DAY, self._day),
            (words.EAST_PERIOD, self._east_period),
            (words.EAST_YEAR, lambda match: self._add_period("year", words.EAST_YEARS[match["which"]])),
            (words.EAST_EDGE, self._east_edge),
            (words.HOLIDAY, self._holiday),
            (words.PERIOD, self._period),
            (words.WEEKEND, self._weekend),
            (words.WEEKDAY, self._weekday),
            (words.SEASON, self._season),
            (words.DAY_OF_MONTH, self._day_of_month),
        ]
        for pattern, reader in readers:
            for match in pattern.finditer(self._text):
                reader(match)
            self._text = pattern.sub(lambda match: words.BLANK * len(match[0]), self._text)
        for amount in self._amounts:
            self._count(amount)
        for monday, weekday in product(self._weeks, self._weekdays):
            # Some weeks begin on Sunday.
            self._add_days(monday + timedelta(days=weekday), *([monday - timedelta(days=1)] if weekday == 6 else []))
        return self.found

    def _add_days(self, *days: date) -> None:
        self.found += (Meant(day, day) for day in days)

    def _amount(self, match: re.Match[str]) -> None:
        """Three days, with what says whether they lie ahead or back."""
        which = words.which(match["which"] or "")
        is_future = match["ahead"] or match["later"] or which == NEXT
        is_past = match["back"] or match["ago"] or which == LAST
        unit = words.UNIT_OF[match["unit"]]
        numbers = words.numbers(match)
        if unit == "day" and numbers[0] in (8, 15):
            # Huit jours, quince días: one and two weeks.
            numbers = (*numbers, numbers[0] - 1)
        # "Twice a week" counts from no day.
        signs = () if match["one"] and not (is_future or is_past) else _signs(is_future, is_past)
        self._amounts.append(_Amount(*match.span(), unit, numbers, signs))

    def _east_amount(self, match: re.Match[str]) -> None:
        is_future, is_past = match["ahead"] or match["later"], match["back"] or match["ago"]
        unit = words.EAST_UNIT_OF[match["unit"] or match["half_unit"]]
        if match["unit"] == "日" and not (is_future or is_past):
            return
        half = 0.5 if match["half_unit"] or match["half"] else 0
        numbers = tuple(one + half for one in words.east_numbers(match["number"]))
        self._amounts.append(_Amount(*match.span(), unit, numbers, _signs(is_future, is_past)))

    def _count(self, amount: _Amount) -> None:
        """From today, or from a day beside it: "a week from tomorrow", "Montag in zwei Wochen"."""
        if amount.numbers == words.FEW:
            for sign in amount.signs:
                ends = sorted(_shifted(self._today, amount.unit, number, sign)[0] for number in words.FEW)
                self.found.append(Meant(ends[0], ends[-1], "named"))
            return
        starts = list(self._beside(amount)) or [(self._today, amount.signs)]
        for (start, signs), number in product(starts, amount.numbers):
            for sign in signs:
                # The day, and a weekday of that week or a named day of that month.
                days = _shifted(start, amount.unit, number, sign)
                self._add_days(*days)
                if amount.unit in ("week", "fortnight"):
                    self._weeks.append(days[0] - timedelta(days=days[0].weekday()))
                elif amount.unit in _MONTHS_OF:
                    self.found.append(Meant(*_month(days[0]), "named"))

    def _beside(self, amount: _Amount) -> Iterator[tuple[date, tuple[int, ...]]]:
        for start, end, days in self._anchors:
            between = self._original[amount.end : start] if start >= amount.end else self._original[end : amount.start]
            if words.BESIDE.fullmatch(between):
                is_before = any(word in between.split() for word in ("before", "vor", "antes"))
                yield from ((day, (-1,) if is_before else amount.signs or (1,)) for day in days)

    def _day(self, match: re.Match[str]) -> None:
        day = self._today + timedelta(days=int(words.DAY_OF[match[0]]))
        self._anchors.append((*match.span(), [day]))
        self._add_days(day)

    def _period(self, match: re.Match[str]) -> None:
        """Next week, le mois dernier; "the end of the month" is of this one."""
        which = words.which_beside(self._text, match)
        if which is None and not self._edges:
            return
        self._add_period(words.UNIT_OF[match[0]], _OFFSETS[which or THIS])

    def _add_period(self, unit: str, offset: int) -> None:
        if unit == "week":
            monday = self._monday + timedelta(weeks=offset)
            self._weeks.append(monday)
            ends = [(0, 6), (0, 4), (-1, 5)]
            self.found += (Meant(monday + timedelta(days=one), monday + timedelta(days=other)) for one, other in ends)
            self._add_days(self._today + timedelta(weeks=offset))
            return
        months = _MONTHS_OF[unit]
        month = self._today.year * 12 + self._today.month - 1
        first = (month // months + offset) * months
        last = first + months - 1
        self.found.append(Meant(_month(_of_month(first, 1))[0], _month(_of_month(last, 1))[1]))
        if offset:
            self._add_days(*_shifted(self._today, unit, abs(offset), 1 if offset > 0 else -1))

    def _east_period(self, match: re.Match[str]) -> None:
        """下周, 下周三, 来週の月曜, 上个月."""
        offset = words.EAST_OFFSETS[match["which"]]
        if match["month"]:
            self._add_period("month", offset)
        elif not match["weekday"]:
            self._add_period("week", offset)
        else:
            monday = self._monday + timedelta(weeks=offset)
            days = words.east_weekdays(match["weekday"])
            self.found.append(Meant(monday + timedelta(days=days[0]), monday + timedelta(days=days[-1])))

    def _east_edge(self, match: re.Match[str]) -> None:
        """月底, 年初: of this one, and a beginning also of the next one."""
        unit = "month" if match["unit"] == "月" else "year"
        for offset in (0, 1) if "first" in self._edges else (0,):
            self._add_period(unit, offset)

    def _weekend(self, match: re.Match[str]) -> None:
        saturday = self._monday + timedelta(days=5)
        offsets = {NEXT: (0, 1), LAST: (-1,), THIS: (0,), None: (-1, 0), SECOND_NEXT: (2,), SECOND_LAST: (-2,)}
        for offset in offsets[words.which_beside(self._text, match)]:
            first = saturday + timedelta(weeks=offset)
            self.found.append(Meant(first, first + timedelta(days=1)))

    def _weekday(self, match: re.Match[str]) -> None:
        """The nearest ones; "next Friday" can be the first one or the one of next week."""
        weekday = words.weekday(match)
        which = words.which_beside(self._text, match)
        ahead = timedelta(days=(weekday - self._today.weekday() - 1) % 7 + 1)
        back = timedelta(days=(self._today.weekday() - weekday - 1) % 7 + 1)
        ours = self._monday + timedelta(days=weekday)
        week = timedelta(weeks=1)
        choices = {
            NEXT: [self._today + ahead, ours + week],
            LAST: [self._today - back, ours - week],
            THIS: [self._today + ahead, ours],
            SECOND_NEXT: [ours + 2 * week],
            SECOND_LAST: [ours - 2 * week],
            None: [self._today + ahead, self._today - back],
        }
        days = choices[which]
        if which in (None, THIS) and self._today.weekday() == weekday:
            days.append(self._today)
        self._weekdays.add(weekday)
        self._anchors.append((*match.span(), days))
        self._add_days(*days)

    def _holiday(self, match: re.Match[str]) -> None:
        first, last, days = words.holiday(match[0])
        spans = [Meant(date(year, *first), date(year, *last), days) for year in self._years()]
        self.found += self._chosen(spans, words.which_beside(self._text, match))

    def _season(self, match: re.Match[str]) -> None:
        month = int(words.SEASON_OF[match[0]])
        starts = [year * 12 + month - 1 for year in self._years()]
        spans = [Meant(_of_month(start, 1), _month(_of_month(start + 2, 1))[1], "named") for start in starts]
        self.found += self._chosen(spans, words.which_beside(self._text, match))

    def _years(self) -> Iterable[int]:
        return range(self._today.year - 2, self._today.year + 3)

    def _chosen(self, spans: Sequence[Meant], which: str | None) -> list[Meant]:
        """Those that come once a year: the nearest ones; "next summer" can be the first one or that of next year."""
        ahead = [span for span in spans if span.last >= self._today]
        back = [span for span in reversed(spans) if span.first <= self._today]
        if which in (NEXT, SECOND_NEXT):
            return [span for span in ahead if span.first > self._today][:2]
        if which in (LAST, SECOND_LAST):
            return [span for span in back if span.last < self._today][:2]
        if which == THIS:
            return [span for span in spans if self._today.year in (span.first.year, span.last.year)]
        return [*ahead[:1], *back[:1]]

    def _day_of_month(self, match: re.Match[str]) -> None:
        """The 15th: the next one and the one before."""
        number = words.day_of_month(match)
        month = self._today.year * 12 + self._today.month - 1
        months = range(month - 2, month + 3)
        days = [_of_month(one, number) for one in months if 1 <= number <= _length(one)]
        ahead, back = [day for day in days if day >= self._today], [day for day in days if day <= self._today]
        self._add_days(*ahead[:1], *back[-1:])


def _signs(is_future: object, is_past: object) -> tuple[int, ...]:
    """Either, where nothing says which."""
    return (1, -1) if bool(is_future) == bool(is_past) else (1,) if is_future else (-1,)


def _shifted(start: date, unit: str, number: float, sign: int) -> list[date]:
    """The day so many units later or earlier; the days it can be, where hours or halves leave several."""
    whole, rest = int(number), number % 1
    if unit == "hour":
        days = [whole // 24] if whole % 24 == 0 and not rest else [whole // 24, whole // 24 + 1]
    elif unit in _DAYS_OF:
        exact = number * _DAYS_OF[unit]
        days = [int(exact), *([int(exact) + 1] if exact % 1 else [])]
    else:
        months = number * _MONTHS_OF[unit]
        start, days = _months_later(start, sign * int(months)), [14, 15] if months % 1 else [0]
    if max(days) > _MOST_DAYS:
        raise OverflowError
    return [start + sign * timedelta(days=one) for one in days]


def _months_later(start: date, months: int) -> date:
    """The same day of that month, or its last one."""
    month = start.year * 12 + start.month - 1 + months
    if not 12 <= month < 12 * 9999:
        raise OverflowError
    return _of_month(month, min(start.day, _length(month)))


def _of_month(month: int, day: int) -> date:
    """A day of a month that is counted from the year 0."""
    return date(month // 12, month % 12 + 1, day)


def _length(month: int) -> int:
    return calendar.monthrange(month // 12, month % 12 + 1)[1]


def _month(day: date) -> tuple[date, date]:
    return day.replace(day=1), day.replace(day=calendar.monthrange(day.year, day.month)[1])
