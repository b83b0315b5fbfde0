"""The words by which people count days from today, as patterns over folded texts; pure.

data/spoken_dates.toml has them.
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from memories.scoring.terms import fold
from memories.text.number_words import NUMERALS, SPELLED, han, value_of

_DATA = tomllib.loads((Path(__file__).parent / "data" / "spoken_dates.toml").read_text(encoding="utf-8"))
NEXT, LAST, THIS, SECOND_NEXT, SECOND_LAST = "next", "last", "this", "second_next", "second_last"
# Stands for what was read.
BLANK = "\x1a"
# From two to so many are "a few".
FEW = (2.0, 7.0)
_LONGEST_WHICH = 20


def _folded(words: Iterable[str]) -> list[str]:
    return sorted({fold(word).replace("_", " ") for word in words}, key=len, reverse=True)


def _one_of(words: Iterable[str]) -> str:
    """A pattern of the words, longest first; "*" stands for any ending."""
    return "|".join(re.escape(word).replace(r"\*", r"\w*").replace(r"\ ", r"\s") for word in _folded(words))


def _finding(words: Iterable[str], more: str = "") -> re.Pattern[str]:
    """Finds any of the words; letters of other scripts than Chinese and Japanese must be whole words."""
    words = list(words)
    east = _one_of(word for word in words if word[0] >= "\u2e80")
    others = _one_of(word for word in words if word[0] < "\u2e80")
    parts = [rf"(?<!\w)(?:{others})(?!\w)" if others else "", east, more]
    return re.compile("|".join(filter(None, parts)))


def _by_word(section: str) -> dict[str, str]:
    """The key of each folded word."""
    return {word: key for key, words in _DATA[section].items() for word in _folded(words.split())}


def _of(section: str, key: str) -> list[str]:
    words: str = _DATA[section][key]
    return words.split()


DAY_OF, UNIT_OF, EAST_UNIT_OF, SEASON_OF = map(_by_word, ("days", "units", "east_units", "seasons"))
_WEEKDAY_OF, _HOLIDAY_OF, _MOVING_OF = map(_by_word, ("weekdays", "holidays", "moving"))
EAST_UNIT_OF |= {"月": "month", "小时": "hour", "小時": "hour"}
_PERIODS = [word for word, unit in UNIT_OF.items() if unit in ("week", "month", "quarter", "year")]
_NOT_OF_TIME = {"fall", "mon", "ora", "ore", "hora", "horas", "quarter", "decade", "decades"}
# Single words that numbers and dates stand for.
WORDS = frozenset(
    word
    for word in (*DAY_OF, *UNIT_OF, *SEASON_OF, *_WEEKDAY_OF, *_by_word("weekend"))
    if " " not in word and word not in _NOT_OF_TIME
)
DAY, HOLIDAY = _finding(DAY_OF), _finding([*_HOLIDAY_OF, *_MOVING_OF])
PERIOD, WEEKEND, SEASON = _finding(_PERIODS), _finding(_by_word("weekend"), r"周末|週末"), _finding(SEASON_OF)
EDGES = {name: _finding(words.split()) for name, words in _DATA["edges"].items()}
OF_TIME = _finding([*DAY_OF, *_WEEKDAY_OF, *UNIT_OF, *EAST_UNIT_OF])

_WHICH: dict[str, str] = {name: _one_of(words.split()) for name, words in _DATA["which"].items()}
_WHICH_BEFORE = {
    name: re.compile(rf"(?<!\w)(?:{words})(?:\s|(?<='))(?:(?:of|de|di)\s)?\Z") for name, words in _WHICH.items()
}
_WHICH_BEHIND = {name: re.compile(rf"\s(?:{words})(?!\w)") for name, words in _WHICH.items()}

_ONE = {**dict.fromkeys(_folded(_of("one", "words")), 1), **dict.fromkeys(_folded(_of("one", "two")), 2)}
_ONE |= {word: number for number in (2, 6) for word in _of("one", str(number))}
_SINGLE, _HALF = _one_of(_of("one", "words")), _one_of(_of("one", "half"))
_FEW, _AND_A_HALF = _one_of(_of("one", "few")), _one_of(_of("one", "and_a_half"))
_COUNTED = {key: _one_of(_of("counted", key)) for key in _DATA["counted"]}
_BETWEEN = {key: _one_of(_of("between", key)) for key in _DATA["between"]}
_SPELLED, _TWO = "|".join(SPELLED), _one_of(word for word in _ONE if _ONE[word] > 1)
_NEXT_OR_LAST = f"{_WHICH[NEXT]}|{_WHICH[LAST]}"
_NUMBER = rf"\d{{1,3}}|(?:{_SPELLED})(?:-(?:one|{_SPELLED}))?|{_TWO}"
AMOUNT = re.compile(
    rf"(?<!\w)(?:(?:(?P<ahead>{_COUNTED['future_before']})|(?P<back>{_COUNTED['past_before']}))\s)?"
    rf"(?:(?:{_BETWEEN['words']}|{_SINGLE})\s){{0,2}}(?:(?P<which>{_NEXT_OR_LAST})\s)?"
    rf"(?:(?P<half>{_HALF})\s(?:(?:{_SINGLE})\s)?"
    rf"|(?:(?P<few>{_FEW})|(?P<one>{_SINGLE})|(?P<number>{_NUMBER}))(?P<more>\s(?:{_AND_A_HALF}))?\s"
    rf"(?:(?:{_BETWEEN['units']}|{_NEXT_OR_LAST})\s)?)"
    rf"(?P<unit>{_one_of(UNIT_OF)})(?!\w)(?P<rest>\s(?:{_AND_A_HALF}))?"
    rf"(?:\s(?:(?P<later>{_COUNTED['future_after']})|(?P<ago>{_COUNTED['past_after']}))(?!\w))?"
)
# What may stand between an amount and the day that it is counted from.
BESIDE = re.compile(rf"[\s的の,]*(?:{_BETWEEN['anchors']})?[\s的の]*")

_EAST_WHICH = {
    "下下": 2,
    "再来": 2,
    "下": 1,
    "来": 1,
    "这": 0,
    "這": 0,
    "本": 0,
    "今": 0,
    "上": -1,
    "先": -1,
    "上上": -2,
    "先々": -2,
    "先先": -2,
}
EAST_OFFSETS = _EAST_WHICH
EAST_YEARS = {
    "今": 0,
    "本": 0,
    "明": 1,
    "来": 1,
    "后": 2,
    "後": 2,
    "再来": 2,
    "去": -1,
    "昨": -1,
    "前": -2,
    "一昨": -2,
    "大前": -3,
}
_HAN_DAYS, _KANJI_DAYS = "一二三四五六日天", "月火水木金土日"
_NO_COUNT = rf"(?<![\d{NUMERALS}第周期拜星])"
EAST_AMOUNT = re.compile(
    rf"(?:(?P<ahead>再过|再過|还有|還有|未来|接下来的?|过)|(?P<back>最近|过去|過去|近))?{_NO_COUNT}"
    rf"(?P<number>\d{{1,3}}|[{NUMERALS}]{{1,4}}|半|好?[几幾]|数|若干)\s?"
    rf"(?:[个個]半(?P<half_unit>月|小时|小時|星期)|(?P<unit>{_one_of(EAST_UNIT_OF.keys() - {'月'})}))(?P<half>半)?多?"
    r"(?:(?P<later>[之以]?[后後]|[之以]?[内內])|(?P<ago>[之以]?前|来))?"
)
EAST_PERIOD = re.compile(
    rf"(?<![马早晚以])(?P<which>{'|'.join(sorted(_EAST_WHICH, key=len, reverse=True))})一?[个個]?"
    rf"(?:(?P<month>月)|(?:周|週|星期|礼拜|禮拜)(?:の)?(?P<weekday>[{_HAN_DAYS}末]|[{_KANJI_DAYS}]曜日?)?)"
)
EAST_YEAR = re.compile(rf"(?<![过以之从目])(?P<which>{'|'.join(sorted(EAST_YEARS, key=len, reverse=True))})年")
EAST_EDGE = re.compile(rf"(?<![\d{NUMERALS}])(?P<unit>月|年)[底末初终終]")
WEEKDAY = _finding(
    _WEEKDAY_OF, rf"{_NO_COUNT}(?:周|週|星期|礼拜|禮拜)(?P<han>[{_HAN_DAYS}])|(?P<kanji>[{_KANJI_DAYS}])曜日?"
)
DAY_OF_MONTH = re.compile(
    r"(?<![\d.])(?P<ordinal>\d{1,2})(?:st|nd|rd|th|-?го)(?!\w)"
    r"|(?<!\w)(?:am|zum|bis|ab|vom|den|dem)\s(?P<german>\d{1,2})\.(?!\d)"
    r"|(?<!\w)(?:le|el|il|al|dia|giorno|jour)\s(?P<roman>\d{1,2})(?![\w.,:]\d|\w)"
    rf"|(?<![月\d{NUMERALS}])(?P<east>\d{{1,2}}|[{NUMERALS}]{{1,3}})\s?[号號日](?![间間本元])"
)


def which(word: str) -> str | None:
    """Which one a word like "next" says."""
    found = (name for name, words in _WHICH.items() if word and re.fullmatch(words, word))
    return next(found, None)


def which_beside(text: str, match: re.Match[str]) -> str | None:
    """Which one the words before or after the match say."""
    before = text[max(0, match.start() - _LONGEST_WHICH) : match.start()]
    for name in _WHICH:
        if _WHICH_BEFORE[name].search(before) or _WHICH_BEHIND[name].match(text, match.end()):
            return name
    return None


def numbers(match: re.Match[str]) -> tuple[float, ...]:
    """Of a match of AMOUNT; FEW if it is not certain."""
    if match["few"]:
        return FEW
    if match["half"]:
        return (0.5,)
    word = match["number"] or ""
    value = 1 if match["one"] else _ONE.get(word) or value_of(word) or int(word)
    return (value + (0.5 if match["more"] or match["rest"] else 0),)


def east_numbers(text: str) -> tuple[float, ...]:
    """Of a match of EAST_AMOUNT: 两三天 are two or three."""
    if text == "半":
        return (0.5,)
    if text[-1] in "几幾数干":
        return FEW
    if text.isdigit():
        return (int(text),)
    if len(text) == 2 and not set(text) & set("〇零十百千万"):
        return tuple(float(han(one)) for one in text)
    return (han(text),)


def east_weekdays(text: str) -> tuple[int, ...]:
    """From Monday; 末 is Saturday and Sunday."""
    if text == "末":
        return (5, 6)
    return ((_KANJI_DAYS if "曜" in text else _HAN_DAYS.replace("天", "")).find(text[0]) % 7,)


def weekday(match: re.Match[str]) -> int:
    """Of a match of WEEKDAY."""
    if match["han"] or match["kanji"]:
        return east_weekdays(match["han"] or f"{match['kanji']}曜")[0]
    return int(_WEEKDAY_OF[match[0]])


def holiday(word: str) -> tuple[tuple[int, int], tuple[int, int], str]:
    """Month and day of its first and its last day, and which of them are meant."""
    days = _HOLIDAY_OF.get(word) or _MOVING_OF[word]
    first, _, last = days.partition("/")
    month, day = map(int, first.split("-"))
    to_month, to_day = map(int, (last or first).split("-"))
    return (month, day), (to_month, to_day), "any" if last else "ends"


def day_of_month(match: re.Match[str]) -> int:
    """Of a match of DAY_OF_MONTH."""
    text = match["ordinal"] or match["german"] or match["roman"] or match["east"]
    return int(text) if text.isdigit() else han(text)
