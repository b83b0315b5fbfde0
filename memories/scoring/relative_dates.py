"""Days, weeks, months and years that a query names relative to the day on which it is asked; pure.

"Today" and "this week" are not read: they ask about now, for which what was said long ago may be the answer.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import NamedTuple


class Period(NamedTuple):
    """From its first to its last day."""

    first: date
    last: date

    @property
    def is_day(self) -> bool:
        """Whether it is a single day."""
        return self.first == self.last

    @property
    def is_year(self) -> bool:
        """Whether it is one from January to December."""
        return (self.first.month, self.first.day) == (1, 1) and self.last == date(self.first.year, 12, 31)


_Reader = Callable[[Mapping[str, str | None], date], Period | None]

_SPELT = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBERS = {
    **{word: number for number, word in enumerate(_SPELT, 1)},
    **{word: number for number, word in enumerate("一二三四五六七八九十", 1)},
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "两": 2,
    "十一": 11,
    "十二": 12,
}
_NUMBER = rf"(?<!half )\b(?P<number>\d{{1,3}}|a\s+couple\s+of|an?|{'|'.join(_SPELT)})"
_HAN_NUMBER = r"(?<!月)(?P<number>(?<!\d)\d{1,3}|(?<![一二三四五六七八九十])(?:十[一二]?|[一二两三四五六七八九]))"
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
# "May" and "march" are other words as often: they need their capital.
_NAMES = "|".join(f"(?-i:{name.title()}|{name.upper()})" if name in ("march", "may") else name for name in _MONTHS)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HAN_DAYS = "一二三四五六日天末"
_UNITS = {"天": "day", "日": "day", "周": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}
# 三月 is March, and 三个月 three months.
_HAN_UNIT = r"(?:个?(?P<unit>星期|礼拜)|个(?P<long>月)|(?P<short>天|日|周|年))"
# The part of a month or a year: before it in English, after it in Chinese.
_PART_OF = r"(?:\b(?P<part>early|mid(?:dle)?|late|beginning|start|end)\s+(?:of\s+)?)?"
_HAN_PART = r"的?(?P<part>[上中下]旬|初(?![一二三四五六七八九十])|[底末])"
_HAN_PART_OF_YEAR = r"的?年?(?P<part>初|[底末]|[上下]半年)"
_HALVES = {"上半年": 1, "下半年": 7}
# "The last week of June" and "the last year that …" are told by what follows.
_OF = r"(?!\s+(?:of|before|that|when)\b|-)"


def periods(text: str, today: date) -> tuple[tuple[Period, ...], str]:
    """What the text names in this way, and the text without it."""
    if not _HINT.search(text):
        return (), text
    found: dict[Period, None] = {}
    for pattern, reader in _PATTERNS:
        for match in pattern.finditer(text):
            try:
                period = reader(match.groupdict(), today)
            except (ValueError, OverflowError):
                # Beyond the calendar.
                period = None
            if period:
                found[period] = None
        text = pattern.sub(" ; ", text)
    return tuple(found), text


def third(part: str) -> tuple[int, int]:
    """The first and the last day of the part of a month that a word names; 31 is the last one of any."""
    word = part.lower()
    if word in ("上旬", "初", "early", "beginning", "start"):
        return 1, 10
    return (11, 20) if word in ("中旬", "mid", "middle") else (21, 31)


def _ago(groups: Mapping[str, str | None], today: date) -> Period | None:
    """The day, or the week, month or year around it."""
    return _before(today, _unit(groups), _number(groups))


def _within(groups: Mapping[str, str | None], today: date) -> Period | None:
    """From so long ago until today. "The last day" is seldom one of these."""
    unit = _unit(groups)
    if unit == "day" and not groups.get("number"):
        return None
    number = _number(groups)
    if unit in ("month", "year"):
        month = today.year * 12 + today.month - 1 - number * (12 if unit == "year" else 1)
        first = date(month // 12, month % 12 + 1, 1)
        return Period(first + timedelta(days=min(today.day, 28) - 1), today)
    return Period(today - timedelta(days=number * (7 if unit == "week" else 1)), today)


def _last(groups: Mapping[str, str | None], today: date) -> Period | None:
    return _part(_before(today, _unit(groups), 1), groups)


def _weekend(_: Mapping[str, str | None], today: date) -> Period | None:
    monday = today - timedelta(days=today.weekday())
    return Period(monday - timedelta(days=2), monday - timedelta(days=1))


def _weekday(groups: Mapping[str, str | None], today: date) -> Period | None:
    """The last one before today."""
    back = (today.weekday() - _DAYS.index((groups["weekday"] or "").lower()) - 1) % 7 + 1
    return _day(today - timedelta(days=back))


def _month(groups: Mapping[str, str | None], today: date) -> Period | None:
    """The last one that had begun before this month, or for "this" the one of this year."""
    month = _MONTHS.index((groups["month"] or "").lower()) + 1
    earlier = (groups["which"] or "").lower() == "last" and month >= today.month
    return _month_of(today.year - earlier, month)


def _yesterday(_: Mapping[str, str | None], today: date) -> Period | None:
    return _day(today - timedelta(days=1))


def _day_before_yesterday(groups: Mapping[str, str | None], today: date) -> Period | None:
    return _day(today - timedelta(days=2 + bool(groups.get("more"))))


def _han_week(groups: Mapping[str, str | None], today: date) -> Period | None:
    """The week before, or the one before that; or a day of it, or its weekend."""
    week = _before(today, "week", 1 + bool(groups["more"]))
    if not groups["weekday"]:
        return week
    day = _HAN_DAYS.index(groups["weekday"])
    if groups["weekday"] == "末":
        return Period(week.last - timedelta(days=1), week.last)
    return _day(week.first + timedelta(days=min(day, 6)))


def _han_month(groups: Mapping[str, str | None], today: date) -> Period | None:
    return _part(_before(today, "month", 1 + bool(groups["more"])), groups)


def _han_year(groups: Mapping[str, str | None], today: date) -> Period | None:
    return _part(_before(today, "year", 1 if groups["which"] == "去" else 2), groups)


def _half(groups: Mapping[str, str | None], today: date) -> Period | None:
    return _before(today, "month", 6) if groups["short"] else _before(today, "week", 2)


def _this_month(groups: Mapping[str, str | None], today: date) -> Period | None:
    return _part(_before(today, "month", 0), groups)


def _this_year(groups: Mapping[str, str | None], today: date) -> Period | None:
    return _part(_before(today, "year", 0), groups)


def _part(period: Period, groups: Mapping[str, str | None]) -> Period:
    """The part of a month or a year that is named with it: a third of a month, a quarter or a half of a year."""
    part = groups.get("part")
    is_month = period == _month_of(period.first.year, period.first.month)
    if not part or not (period.is_year or is_month):
        return period
    year, month = period.first.year, period.first.month
    if not period.is_year:
        first, last = third(part)
        return Period(date(year, month, first), min(date(year, month, first) + timedelta(last - first), period.last))
    if part in _HALVES:
        first = _HALVES[part]
        return Period(date(year, first, 1), _month_of(year, first + 5).last)
    first = {1: 1, 11: 5, 21: 10}[third(part)[0]]
    return Period(date(year, first, 1), _month_of(year, first + (3 if first == 5 else 2)).last)


def _number(groups: Mapping[str, str | None]) -> int:
    text = " ".join((groups.get("number") or "a").lower().split())
    return int(text) if text.isdigit() else _NUMBERS[text]


def _unit(groups: Mapping[str, str | None]) -> str:
    text = groups.get("unit") or groups.get("long") or groups.get("short") or ""
    return _UNITS.get(text, text.lower())


def _before(today: date, unit: str, number: int) -> Period:
    """The day, week (from Monday), month or year so many before the one of today."""
    if unit == "day":
        return _day(today - timedelta(days=number))
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * number)
        return Period(monday, monday + timedelta(days=6))
    if unit == "month":
        month = today.year * 12 + today.month - 1 - number
        return _month_of(month // 12, month % 12 + 1)
    return Period(date(today.year - number, 1, 1), date(today.year - number, 12, 31))


def _month_of(year: int, month: int) -> Period:
    after = date(year + month // 12, month % 12 + 1, 1)
    return Period(date(year, month, 1), after - timedelta(days=1))


def _day(day: date) -> Period:
    return Period(day, day)


# Most queries name nothing of the kind and are not looked at further.
_HINT = re.compile(r"last|past|ago\b|yesterday|this|[前昨上去今近过本这]", re.IGNORECASE)
# Longer forms first: what one of them has read is not read again. The characters before and after Chinese ones keep
# words apart: 马上周末 names no 上周, 过去年轻 no 去年, 以前天天 no 前天.
_PATTERNS: tuple[tuple[re.Pattern[str], _Reader], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reader)
    for pattern, reader in (
        (rf"{_NUMBER}\s+(?P<unit>day|week|month|year)s?\s+ago\b", _ago),
        (rf"\b(?:last|past)\s+{_NUMBER}\s+(?P<unit>day|week|month|year)s?\b{_OF}", _within),
        (rf"\b(?:the\s+last|past)\s+(?P<unit>day|week|month|year)\b{_OF}", _within),
        (rf"{_PART_OF}\blast\s+(?P<unit>week|month|year)\b{_OF}", _last),
        (rf"\blast\s+weekend\b{_OF}", _weekend),
        (rf"\blast\s+(?P<weekday>{'|'.join(_DAYS)})\b{_OF}", _weekday),
        (rf"\b(?P<which>last|this)\s+(?P<month>{_NAMES})\b(?!\s+\d)", _month),
        (r"\bday\s+before\s+yesterday\b", _day_before_yesterday),
        (r"\byesterday\b|\blast\s+night\b", _yesterday),
        (r"半(?:(?P<short>年)|个月)(?:之|以)?前", _half),
        (rf"{_HAN_NUMBER}\s*{_HAN_UNIT}(?:之|以)?前", _ago),
        (rf"(?:最近|过去|近)的?{_HAN_NUMBER}\s*{_HAN_UNIT}", _within),
        (rf"(?<![马早晚以])上(?P<more>上)?个?(?:周|星期|礼拜)(?P<weekday>[{_HAN_DAYS}])?(?![杰围边期])", _han_week),
        (rf"(?<![马早晚以])上(?P<more>上)?个?月(?![球亮饼台])(?:{_HAN_PART})?", _han_month),
        (rf"(?:本|这个)月{_HAN_PART}", _this_month),
        (r"(?P<more>大)?(?<![以之从目])前(?:天|日|晚)", _day_before_yesterday),
        (r"昨(?:天|日|晚|夜)", _yesterday),
        (rf"(?:(?<!过)(?P<which>去)年|(?<![以之从目])(?P<before>前)年)(?:{_HAN_PART_OF_YEAR})?", _han_year),
        (rf"今年{_HAN_PART_OF_YEAR}", _this_year),
        (r"今年(?=\s*(?:1[0-2]|[1-9]|十[一二]?|[一二三四五六七八九])\s*月)", _this_year),
    )
)
