"""Numbers and dates in a text, however they are written, and which of them follow from other texts; pure.

data/quantities.toml has the words.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path

from memories.scoring.terms import fold

_DATA = tomllib.loads((Path(__file__).parent / "data" / "quantities.toml").read_text(encoding="utf-8"))


def _by_word(table: dict[str, str]) -> dict[str, int]:
    return {fold(word): int(number) for number, words in table.items() for word in words.split()}


_WORDS, _ORDINALS, _MONTHS = _by_word(_DATA["words"]), _by_word(_DATA["ordinals"]), _by_word(_DATA["months"])
_DAYS = {fold(word).replace("_", " "): int(days) for days, words in _DATA["days"].items() for word in words.split()}
_SCALES = {"k": 1_000, "m": 1_000_000, "mio": 1_000_000, "万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}
_NUMERALS = "〇零一二三四五六七八九十百千万两俩"
_DIGIT = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "俩": 2}
_UNIT = {"十": 10, "百": 100, "千": 1_000}

_MONTH = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))
# Year, month and day in the orders that people write them; a month may be a word.
_DATES = (
    re.compile(r"(?<!\d)(?P<y>(?:19|20)\d\d)[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)(?P<y>(?:19|20)\d\d)-(?P<m>\d{2})(?![\d-])"),
    re.compile(r"(?:(?P<y>\d{4})年)?(?P<m>\d{1,2})月(?:(?P<d>\d{1,2})[日号])?"),
    re.compile(
        rf"(?<!\w)(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.|er|º)?\s(?:of\s|de\s)?(?P<n>{_MONTH})\w{{0,4}}\.?"
        r"(?:,?\s(?:de\s)?(?P<y>\d{4}))?(?!\w)"
    ),
    re.compile(
        rf"(?<!\w)(?P<n>{_MONTH})\w{{0,4}}\.?\s(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,?\s(?P<y>\d{{4}}))?(?!\w)"
    ),
    re.compile(rf"(?<!\w)(?P<n>{_MONTH})\w{{0,4}}\.?,?\s(?:de\s)?(?P<y>\d{{4}})(?!\w)"),
)
_CLOCK_TIME = re.compile(r"(?<!\d)(\d{1,2})[:：]([0-5]\d)(?:[:：][0-5]\d)?(?!\d)")
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<digits>\d+(?:[.,']\d+)*(?: \d{3}(?!\d))*)\s?(?P<scale>万|萬|亿|億|(?:k|mio|m)(?![a-z0-9]))?"
    r"|(?P<bare>\d+(?:[.,]\d+)*)"
)
_HAN_NUMBER = re.compile(rf"(?<![周期拜第])[{_NUMERALS}]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")
_COUNT = "|".join(sorted((word for word in _WORDS if not _HAN_NUMBER.search(word)), key=len, reverse=True))
_MANY = "|".join(sorted((word for word, value in _WORDS.items() if value >= 100), key=len, reverse=True))
# "twelve hundred", "deux cents", "two thousand five hundred".
_RUNS = re.compile(rf"(?<!\w)((?:(?:{_COUNT})[\s-]){{1,4}}(?:{_MANY})(?:[\s-](?:{_COUNT})){{0,4}})(?!\w)")
_AND = re.compile(r"[,，、;；&]|\b(?:and|y|e|und|et|и|plus)\b|和|与|跟|と|や")
_CLOCK = re.compile(r"\d:\d|(?<![a-z])[ap]\.?m\b|o'clock|uhr|heures?|час|点|時|时|\bh\b")
_MULTIPLES = (7, 12, 24, 30, 60)
_LONGEST_LIST = 5
_OLDEST = 120
_NOON = 12
_MOST_COUNTED = 24


@dataclass(frozen=True)
class Quantities:
    """Numbers of a text in one spelling, and its dates as (year, month, day), with None where unsaid."""

    numbers: frozenset[str]
    dates: tuple[tuple[int | None, int, int | None], ...]


def of(text: str) -> Quantities:
    """The dates of a text, and the numbers that are not part of one."""
    rest = fold(text)
    dates: list[tuple[int | None, int, int | None]] = []
    for pattern in _DATES:
        rest = pattern.sub(lambda found: _extracted(found, dates), rest)
    return Quantities(frozenset(_numbers(rest)), tuple(dates))


def _extracted(found: re.Match[str], dates: list[tuple[int | None, int, int | None]]) -> str:
    """What replaces the match in the text: a blank if it is a date, which goes to `dates`."""
    parts = found.groupdict()
    month = _MONTHS[parts["n"]] if parts.get("n") else int(parts["m"])
    if not 1 <= month <= 12:
        return found[0]
    dates.append((int(parts["y"]) if parts.get("y") else None, month, int(parts["d"]) if parts.get("d") else None))
    return " "


@dataclass(frozen=True)
class Counted:
    """What somebody said, with the day of each text: the numbers and dates that follow from it."""

    texts: tuple[tuple[str, date | None], ...]
    _cache: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(number for text, _ in self.texts for number in _numbers(fold(text))) | frozenset(
            str(part) for text, _ in self.texts for found in of(text).dates for part in found if part is not None
        )

    def has_number(self, number: str) -> bool:
        """Whether it was said or follows: an age from a year, days from weeks, 20 h from 8 pm, a count from a list."""
        if number not in self._cache:
            self._cache[number] = number in self.numbers or number == "1" or self._follows(number)
        return self._cache[number]

    def has_date(self, found: tuple[int | None, int, int | None]) -> bool:
        """Whether its parts were said, or it is as near a text's day as "tomorrow" or "next month" in that text."""
        year, month, day = found
        named = month in self._months or str(month) in self.numbers
        parts = named and (day is None or str(day) in self.numbers)
        if parts and (year is None or str(year) in self.numbers or self._is_current(year)):
            return True
        return any(_is_within(found, at, days) for at, days in self._horizons)

    def _follows(self, number: str) -> bool:
        if not number.isdigit():
            return False
        value = int(number)
        counts = [int(one) for one in self.numbers if one.isdigit() and len(one) <= 9]
        return bool(
            (self._horizons and any(one * many == value for one in [*counts, 1] for many in _MULTIPLES))
            or any(self._is_age(value, one) or self._is_age(one, value) for one in counts)
            or (self._is_current(value) and any(days > 16 for _, days in self._horizons))
            or (self._has_time and any(abs(one - value) == _NOON and max(one, value) <= 2 * _NOON for one in counts))
            or (2 <= value <= _LONGEST_LIST and self._listed >= value - 1)
        )

    def _is_age(self, age: int, year: int) -> bool:
        return age <= _OLDEST and any(abs(at.year - year - age) <= 1 for _, at in self.texts if at)

    def _is_current(self, year: int) -> bool:
        return any(abs(at.year - year) <= 1 for _, at in self.texts if at)

    @cached_property
    def _months(self) -> frozenset[int]:
        words = (word for text, _ in self.texts for word in _WORD.findall(fold(text)))
        return frozenset(month for word in words if (month := _month(word)))

    @cached_property
    def _has_time(self) -> bool:
        return any(_CLOCK.search(fold(text)) for text, _ in self.texts)

    @cached_property
    def _listed(self) -> int:
        return max((len(_AND.findall(fold(text))) for text, _ in self.texts), default=0)

    @cached_property
    def _horizons(self) -> list[tuple[date, int]]:
        return [(at, days) for text, at in self.texts if at and (days := _horizon(fold(text)))]


def _horizon(text: str) -> int:
    """How many days ahead or back the text can mean; "in three weeks" three times as many as "next week"."""
    words = set(_WORD.findall(text))
    base = max(
        (days for word, days in _DAYS.items() if word in words or (not word.isascii() and word in text)), default=0
    )
    counted = (int(one) for one in _numbers(text) if one.isdigit() and int(one) <= _MOST_COUNTED) if base > 3 else ()
    return int(base * max([1, *counted]))


def _is_within(found: tuple[int | None, int, int | None], at: date, days: int) -> bool:
    year, month, day = found
    for one in [year] if year else [at.year - 1, at.year, at.year + 1]:
        try:
            distance = abs(date(one, month, day or 15) - at)
        except ValueError:
            continue
        if distance <= timedelta(days=days if day else days + 16):
            return True
    return False


def _month(word: str) -> int | None:
    return _MONTHS.get(word) or next((_MONTHS[word[:size]] for size in (6, 5) if word[:size] in _MONTHS), None)


def _numbers(text: str) -> Iterator[str]:
    for hours, minutes in _CLOCK_TIME.findall(text):
        yield str(int(hours))
        yield from [] if minutes == "00" else [str(int(minutes))]
    text = _CLOCK_TIME.sub(" ", text)
    for found in _NUMBER.finditer(text):
        yield from _written(found["digits"] or found["bare"], _SCALES.get(found["scale"] or "", 1))
    for run in _HAN_NUMBER.findall(text):
        value = _han(run)
        if value != 1 or len(run) > 1:
            yield str(value)
    for word in _WORD.findall(text):
        yield from _in_words(word)
    for run in _RUNS.findall(text):
        yield str(_multiplied(run))


def _multiplied(run: str) -> int:
    """The value of number words with a hundred or a thousand among them: twelve hundred, zwei tausend."""
    total = part = 0
    for word in re.split(r"[\s-]+", run):
        value = _WORDS.get(word, 0)
        if value == 100:
            part = max(part, 1) * value
        elif value >= 1_000:
            total, part = total + max(part, 1) * value, 0
        else:
            part += value
    return total + part


def _in_words(word: str) -> Iterator[str]:
    value = _WORDS.get(word, _ORDINALS.get(word))
    if value is not None:
        yield str(value)
    elif "-" in word:
        tens, ones = (_WORDS.get(part) for part in word.split("-", 1))
        if tens is not None and ones is not None:
            yield str(tens + ones)


def _written(digits: str, scale: int) -> Iterator[str]:
    """The numbers that it can mean: 10.000 is ten thousand as well as ten, "3704 0044" also two numbers."""
    plain = re.sub(r"[.,' ](?=\d{3}(?:\D|\Z))", "", digits)
    parts = digits.split() if plain == digits and " " in digits else [plain]
    for part in parts:
        try:
            value = Decimal(part.replace(" ", "").replace("'", "").replace(",", ".")) * scale
        except InvalidOperation:
            yield from re.findall(r"\d+", part)
            continue
        written = format(value, "f")
        written = written.rstrip("0").rstrip(".") if "." in written else written
        yield written.lstrip("0") or "0"


def _han(run: str) -> int:
    """二十 is 20, 二〇二六 is 2026, 一万二千 is 12000."""
    if not any(character in _UNIT or character == "万" for character in run):
        return int("".join(str(_DIGIT[character]) for character in run))
    total = part = digit = 0
    for character in run:
        if character in _DIGIT:
            digit = _DIGIT[character]
        elif character == "万":
            total, part, digit = total + (part + digit or 1) * 10_000, 0, 0
        else:
            part, digit = part + (digit or 1) * _UNIT[character], 0
    return total + part + digit


def is_number_word(word: str) -> bool:
    """Whether a folded word means a number, a month or a day, which are compared as such."""
    return word in _WORDS or word in _ORDINALS or word in _MONTHS or word in _DAYS


def normalised(text: str) -> str:
    """NFKC, in which numbers and codes are searched."""
    return unicodedata.normalize("NFKC", text)
