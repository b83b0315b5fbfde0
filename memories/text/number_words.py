"""Numbers that are written as words, in eight languages and in Chinese and Japanese characters; pure.

data/quantities.toml has the words.
"""

import re
import tomllib
from pathlib import Path

from memories.scoring.terms import fold

DATA = tomllib.loads((Path(__file__).parent / "data" / "quantities.toml").read_text(encoding="utf-8"))
NUMERALS = "〇零一二三四五六七八九十百千万两俩"
_DIGIT = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "俩": 2}
_UNIT = {"十": 10, "百": 100, "千": 1_000}
_EIGHTY = "quatre-vingt"
_IS_HAN = re.compile(rf"[{NUMERALS}]")


def by_word(table: dict[str, str]) -> dict[str, int]:
    """The number of each folded word."""
    return {fold(word): int(number) for number, words in table.items() for word in words.split()}


WORDS, ORDINALS, MONTHS = by_word(DATA["words"]), by_word(DATA["ordinals"]), by_word(DATA["months"])
# Longest first, for patterns.
SPELLED = sorted((word for word in WORDS if not _IS_HAN.search(word)), key=len, reverse=True)


def value_of(word: str) -> int | None:
    """Of a number word, an ordinal, or two number words with a hyphen between them."""
    value = WORDS.get(word, ORDINALS.get(word))
    if value is None and word.startswith(_EIGHTY):
        # quatre-vingts, quatre-vingt-douze
        rest = word.removeprefix(_EIGHTY).removeprefix("s").removeprefix("-")
        ones = (1 if rest in ("un", "une") else value_of(rest)) if rest else 0
        return None if ones is None else 80 + ones
    if value is None and "-" in word:
        first, second = word.replace("-et-", "-").split("-", 1)
        tens, ones = WORDS.get(first), 1 if second in ("one", "un", "une") else WORDS.get(second)
        value = tens + ones if tens is not None and ones is not None else None
    return value


def han(run: str) -> int:
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
