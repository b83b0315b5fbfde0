"""Numbers and dates in a text, however they are written, and which of them follow from other texts; pure.

data/quantities.toml has the words.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import NamedTuple

from memories.scoring.terms import fold
from memories.text import date_words, spoken_dates
from memories.text.number_words import MONTHS, NUMERALS, ORDINALS, SPELLED, WORDS, han, value_of
from memories.text.spoken_dates import Meant

_SCALES = {"k": 1_000, "m": 1_000_000, "mio": 1_000_000, "万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}

_MONTH = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
# Year, month and day in the orders that people write them; a month may be a word.
_DATES = (
    re.compile(r"(?<!\d)(?P<y>(?:19|20)\d\d)[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)(?P<y>(?:19|20)\d\d)-(?P<m>\d{2})(?![\d-])"),
    re.compile(r"(?<![\d.])(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>(?:19|20)\d\d)(?!\d)"),
    re.compile(r"(?<!\w)(?:am|zum|vom|bis|ab|den|dem|seit)\s(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.(?!\d)"),
    re.compile(r"(?<![\d/])(?P<a>\d{1,2})/(?P<b>\d{1,2})/(?P<y>(?:19|20)\d\d)(?![\d/])"),
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
    r"(?<![\w.,])(?P<digits>\d+(?:[.,']\d+)*(?: \d{3}(?!\d))*)"
    # "1,80 m" is a length, "$3m" is money.
    r"(?:\s?(?P<scale>万|萬|亿|億|(?:k|mio)(?![a-z0-9])|(?<=[$€£]\d)m(?![a-z0-9])|(?<=[$€£]\d\d)m(?![a-z0-9])"
    r"|(?<=[$€£]\d[.,]\d)m(?![a-z0-9])))?"
    r"|(?P<bare>\d+(?:[.,]\d+)*)"
)
_HAN_NUMBER = re.compile(rf"(?<![周期拜第])[{NUMERALS}]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+){0,3}")
_COUNT = "|".join(SPELLED)
_MANY = "|".join(sorted((word for word, value in WORDS.items() if value >= 100), key=len, reverse=True))
# "twelve hundred", "deux cents", "two thousand five hundred".
_RUNS = re.compile(rf"(?<!\w)((?:(?:{_COUNT})[\s-]){{1,4}}(?:{_MANY})(?:[\s-](?:{_COUNT})){{0,4}})(?!\w)")
_AND = re.compile(r"[,，、;；&]|\b(?:and|y|e|und|et|и|plus)\b|和|与|跟|と|や")
_CLOCK = re.compile(
    r"\d:\d|(?<![a-z])[ap]\.?m\b|o'clock|uhr|heures?|час|点|時|时|\bh\b"
    r"|\bd[ea]l? (?:la )?(?:manana|tarde|noche|noite|madrugada)\b"
    r"|\bdu (?:soir|matin)\b|\b(?:morgens|abends|nachmittags|nachts)\b"
    r"|\b(?:in the (?:evening|morning|afternoon)|at night)\b"
    r"|早上|上午|中午|下午|晚上|午前|午後"
)
_QUARTERS = (15, 45)
_QUARTER = re.compile(r"\b(?:quarters?|quarts?|viertel\w*|cuartos?)\b|刻")
_HALF = re.compile(r"\b(?:half|halb\w*|media|medio|demie?|meia|meio)\b|半|полов")
# A year of two digits.
_FIRST_YEAR, _LAST_YEAR = 1920, 2029
_OF_YEAR = re.compile(
    r"\b(?:born|baujahr|jahrgang|geboren|naci|nacid[oa]|nee?|class of|quinta|model year|since)\b|'\d\d|年|届|生まれ|生"
)
# "1,78 m" in other words.
_METRES = re.compile(
    r"(?<!\d)([12一二两])\s?(?:米|m|metres?|meters?|metros?)\s?(\d{2}|[一二三四五六七八九]{2}|[一二三四五六七八九](?![\d一二三四五六七八九]))"
)
_TEN = "|".join(one for one in SPELLED if WORDS[one] in range(20, 100, 10))
_ONES = "|".join(one for one in SPELLED if WORDS[one] < 20)
_TENS = re.compile(rf"(?<!\w)({_TEN})\s(?:y|e|et)\s({_ONES}|un[oae]?)(?!\w)")
# "halb sechs" is half an hour before six.
_BEFORE = re.compile(r"\bhalb (\w+)")
_MULTIPLES = (7, 12, 24, 30, 60)
_LONGEST_LIST = 5
_OLDEST = 120
_NOON = 12


class WrittenDate(NamedTuple):
    """A date with None where a part is unsaid. `is_either`: 3/4/2026 is in March or in April."""

    year: int | None
    month: int
    day: int | None
    is_either: bool = False


@dataclass(frozen=True)
class Quantities:
    """Numbers of a text in one spelling, and its dates."""

    numbers: frozenset[str]
    dates: tuple[WrittenDate, ...]


def of(text: str) -> Quantities:
    """The dates of a text, and the numbers that are not part of one."""
    dates, rest = _parted(text)
    return Quantities(frozenset(_numbers(rest)), tuple(dates))


def _parted(text: str) -> tuple[list[WrittenDate], str]:
    """The dates of a text, and the rest of it, folded."""
    rest = fold(text)
    dates: list[WrittenDate] = []
    for pattern in _DATES:
        rest = pattern.sub(lambda found: _extracted(found, dates), rest)
    return dates, rest


def _extracted(found: re.Match[str], dates: list[WrittenDate]) -> str:
    """What replaces the match in the text: a blank if it is a date, which goes to `dates`."""
    parts = found.groupdict()
    year = int(parts["y"]) if parts.get("y") else None
    if parts.get("a"):
        # Americans write the month first.
        first, second = int(parts["a"]), int(parts["b"])
        month, day = (second, first) if first > 12 else (first, second)
        written = WrittenDate(year, month, day, is_either=first != second and max(first, second) <= 12)
    else:
        month = MONTHS[parts["n"]] if parts.get("n") else int(parts["m"])
        written = WrittenDate(year, month, int(parts["d"]) if parts.get("d") else None)
    if not 1 <= written.month <= 12 or not 1 <= (written.day or 1) <= 31:
        return found[0]
    dates.append(written)
    return " "


@dataclass(frozen=True)
class Counted:
    """What somebody said, with the day of each text: the numbers and dates that follow from it."""

    texts: tuple[tuple[str, date | None], ...]
    _cache: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(number for text, _ in self.texts for number in _numbers(fold(text))) | frozenset(
            str(part) for text, _ in self.texts for found in of(text).dates for part in found[:3] if part is not None
        )

    def has_number(self, number: str) -> bool:
        """Whether it was said or follows: an age from a year, days from weeks, 20 h from 8 pm, a count from a list."""
        if number not in self._cache:
            self._cache[number] = number in self.numbers or number == "1" or self._follows(number)
        return self._cache[number]

    def has_date(self, found: WrittenDate) -> bool:
        """Whether its parts were said, or it is a day, or the month of a day, that a text means by "tomorrow" or "in
        three weeks"."""
        year, month, day, is_either = found
        if is_either and day and self.has_date(WrittenDate(year, day, month)):
            return True
        is_named = day is None or str(day) in self.numbers or self._is_edge(year, month, day)
        is_said = is_named and (month in self._months or str(month) in self.numbers)
        if is_said and (
            year is None or str(year) in self.numbers or any(abs(at.year - year) <= 1 for _, at in self.texts if at)
        ):
            return True
        if day is None:
            return any(meant.has_month(year, month) for meant in self._meant)
        return any(meant.has_day(year, month, day, is_named=is_named) for meant in self._meant)

    def _is_edge(self, year: int | None, month: int, day: int) -> bool:
        """Whether the day begins, halves or ends a month, and somebody said so."""
        if day in (1, 15):
            return ("first" if day == 1 else "middle") in self._edges
        return "last" in self._edges and spoken_dates.is_last(year, month, day)

    def _follows(self, number: str) -> bool:
        if number.endswith(".5") and number[:-2] in self.numbers and self._says(_HALF):
            return True
        if not number.isdigit():
            return False
        value = int(number)
        counts = [int(one) for one in self.numbers if one.isdigit() and len(one) <= 9]
        return bool(
            (self._speaks_of_time and any(one * many == value for one in [*counts, 1] for many in _MULTIPLES))
            or any(self._is_age(value, one) or self._is_age(one, value) for one in counts)
            or any(meant.first.year <= value <= meant.last.year for meant in self._meant)
            or (value in _QUARTERS and self._has_time and self._says(_QUARTER))
            or (_FIRST_YEAR <= value <= _LAST_YEAR and value % 100 in counts and self._says(_OF_YEAR))
            or (self._has_time and any(_is_hour(value, one) for one in [*counts, *self._hours_before]))
            or (2 <= value <= _LONGEST_LIST and self._listed >= value - 1)
        )

    def _is_age(self, age: int, year: int) -> bool:
        return age <= _OLDEST and any(abs(at.year - year - age) <= 1 for _, at in self.texts if at)

    @cached_property
    def _months(self) -> frozenset[int]:
        words = (word for text, _ in self.texts for word in _WORD.findall(fold(text)))
        return frozenset(month for word in words if (month := _month(word)))

    @cached_property
    def _has_time(self) -> bool:
        return any(_CLOCK.search(fold(text)) for text, _ in self.texts)

    def _says(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(fold(text)) for text, _ in self.texts)

    @cached_property
    def _hours_before(self) -> list[int]:
        words = (word for text, _ in self.texts for word in _BEFORE.findall(fold(text)))
        return [hour - 1 for word in words if (hour := int(word) if word.isdecimal() else value_of(word) or 0)]

    @cached_property
    def _listed(self) -> int:
        return max((len(_AND.findall(fold(text))) for text, _ in self.texts), default=0)

    @cached_property
    def _meant(self) -> list[Meant]:
        return [meant for text, at in self.texts if at for meant in spoken_dates.read(_parted(text)[1], at)]

    @cached_property
    def _edges(self) -> frozenset[str]:
        return frozenset(edge for text, _ in self.texts for edge in spoken_dates.edges(fold(text)))

    @cached_property
    def _speaks_of_time(self) -> bool:
        return any(at and spoken_dates.speaks_of_time(fold(text)) for text, at in self.texts)


def _is_hour(value: int, said: int) -> bool:
    """Whether an hour is the one that was said, in the one half of the day or the other."""
    return max(said, value) <= 2 * _NOON and abs(said - value) in (0, _NOON)


def _month(word: str) -> int | None:
    return MONTHS.get(word) or next((MONTHS[word[:size]] for size in (6, 5) if word[:size] in MONTHS), None)


def _numbers(text: str) -> Iterator[str]:
    for hours, minutes in _CLOCK_TIME.findall(text):
        yield str(int(hours))
        yield from [] if minutes == "00" else [str(int(minutes))]
    text = _CLOCK_TIME.sub(" ", text)
    for found in _NUMBER.finditer(text):
        yield from _written(found["digits"] or found["bare"], _SCALES.get(found["scale"] or "", 1))
    for run in _HAN_NUMBER.findall(text):
        value = han(run)
        if value != 1 or len(run) > 1:
            yield str(value)
    for word in _WORD.findall(text):
        if (number := value_of(word)) is not None:
            yield str(number)
    yield from _composed(text)


def _composed(text: str) -> Iterator[str]:
    """The numbers that several words make together."""
    for run in _RUNS.findall(text):
        yield str(_multiplied(run))
    for tens, ones in _TENS.findall(text):
        yield str(WORDS[tens] + WORDS.get(ones, 1))
    for metres, rest in _METRES.findall(text):
        whole, part = (one if one.isdigit() else str(han(one)) for one in (metres, rest))
        yield from (whole + part.ljust(2, "0"), f"{whole}.{part}")
    if re.search("[点时時]半", text):
        yield "30"


def _multiplied(run: str) -> int:
    """The value of number words with a hundred or a thousand among them: twelve hundred, zwei tausend."""
    total = part = 0
    for word in re.split(r"[\s-]+", run):
        value = WORDS.get(word, 0)
        if value == 100:
            part = max(part, 1) * value
        elif value >= 1_000:
            total, part = total + max(part, 1) * value, 0
        else:
            part += value
    return total + part


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


def is_number_word(word: str) -> bool:
    """Whether a folded word means a number, a month or a day, which are compared as such."""
    return word in WORDS or word in ORDINALS or word in MONTHS or word in date_words.WORDS


def normalised(text: str) -> str:
    """NFKC, in which numbers and codes are searched."""
    return unicodedata.normalize("NFKC", text)
