"""Whether a summary says what happened in the turns it is of: what code can tell of that; pure (rules.md, 6.3)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from memories.llm.prompts.framing import shorten
from memories.llm.prompts.memory_update_text import is_example
from memories.pipeline.feed import FedTurn
from memories.pipeline.telling import HAN, content
from memories.scoring import language, terms

EMPTY, SHORT, BOILERPLATE, COPY, LANGUAGE, INVENTED = (
    "empty",
    "too_short",
    "boilerplate",
    "copy",
    "wrong_language",
    "invented",
)
SHORTEST = 10


@dataclass(frozen=True)
class Flaw:
    """The quality that a summary with it has at most, and the objection to it in plain words."""

    quality: float
    objection: str


FLAWS = {
    EMPTY: Flaw(0.0, "it said nothing (what tells of uploaded files is left out)"),
    SHORT: Flaw(0.2, f"it had fewer than {SHORTEST} characters"),
    BOILERPLATE: Flaw(0.1, "it would fit any conversation: name what this one was about"),
    COPY: Flaw(0.3, "it repeated the conversation word for word instead of summing it up"),
    LANGUAGE: Flaw(0.3, "it was not in the language that the user writes in"),
    INVENTED: Flaw(0.2, "it had none of the words of the conversation: tell only what was said"),
}

# A copy: this share of the summary, by weight, stands word for word in single turns, in runs of at least so much. Below
# that a short conversation could not be told with its own words.
_COPIED_SHARE = 0.8
_LEAST_RUN = 10.0
_TIMES_LONGER = 3.0
# The turns have at least this share of what a summary is about: LoCoMo's sessions have 0.33 and more of their own, and
# 0.15 as a rule of another's.
_LEAST_KNOWN = 0.1
# Of a word; a Chinese word is written with two characters as a rule.
_WEIGHT_OF_CHARACTER = 0.5
_MOST_OF_TURNS = 0.75

_UNIT = re.compile(rf"[{HAN}]|[^\W_{HAN}]+")
_IS_HAN = re.compile(rf"[{HAN}]")


@dataclass(frozen=True)
class Judgement:
    """0 to 1, and the codes of what speaks against it."""

    quality: float
    flaws: tuple[str, ...]


def judge(summary: str, turns: Sequence[FedTurn], *, is_quoted: bool = False) -> Judgement:
    """Of a summary of `turns`; `is_quoted`: it is made of their sentences, and none the worse for it."""
    flaws = tuple(_flaws(summary, turns, is_quoted=is_quoted))
    return Judgement(min((FLAWS[flaw].quality for flaw in flaws), default=1.0), flaws)


def objections(flaws: Iterable[str]) -> list[str]:
    """What to tell who is to write it anew."""
    return [FLAWS[flaw].objection for flaw in flaws if flaw in FLAWS]


def _flaws(summary: str, turns: Sequence[FedTurn], *, is_quoted: bool) -> Iterator[str]:
    if not summary:
        yield EMPTY
        return
    if len(summary) < SHORTEST:
        yield SHORT
    said = content(summary)
    if not said:
        yield BOILERPLATE
    if is_quoted:
        return
    if _is_copy(summary, turns):
        yield COPY
    if _is_in_other_language(summary, turns):
        yield LANGUAGE
    elif said and _is_invented(summary, said, turns):
        yield INVENTED


def _is_invented(summary: str, said: set[str], turns: Sequence[FedTurn]) -> bool:
    """Hardly a word of it is of the turns, or it comes from the examples of the prompt."""
    dialogue = "\n".join(shorten(turn.text) for turn in turns)
    is_alien = len(said & content(dialogue)) < _LEAST_KNOWN * len(said)
    return is_alien or (is_example(summary) and not is_example(dialogue))


def _is_copy(summary: str, turns: Sequence[FedTurn]) -> bool:
    told = _Units(summary)
    heard = [_Units(shorten(turn.text)) for turn in turns]
    if not told.units or sum(turn.weight for turn in heard) < _TIMES_LONGER * told.weight:
        return False
    return _copied(told, heard) >= _COPIED_SHARE * told.weight


def _copied(told: "_Units", heard: Sequence["_Units"]) -> float:
    """The weight of the longest runs that stand in a turn, from left to right."""
    copied, start = 0.0, 0
    while start < len(told.units):
        end = max(_end_of_run(told.units, start, turn) for turn in heard)
        weight = sum(map(_weight, told.units[start:end]))
        copied += weight if weight >= _LEAST_RUN else 0.0
        start = end if weight >= _LEAST_RUN else start + 1
    return copied


def _end_of_run(units: Sequence[str], start: int, turn: "_Units") -> int:
    end = start
    while end < len(units) and _joined(units[start : end + 1]) in turn.joined:
        end += 1
    return end


class _Units:
    """A text as folded words and single Chinese characters."""

    def __init__(self, text: str) -> None:
        self.units: list[str] = _UNIT.findall(terms.fold(text))

    @cached_property
    def joined(self) -> str:
        return _joined(self.units)

    @cached_property
    def weight(self) -> float:
        """In words."""
        return sum(map(_weight, self.units))


def _joined(units: Sequence[str]) -> str:
    return "\x1f" + "\x1f".join(units) + "\x1f"


def _weight(unit: str) -> float:
    return _WEIGHT_OF_CHARACTER if _IS_HAN.match(unit) else 1.0


def _is_in_other_language(summary: str, turns: Sequence[FedTurn]) -> bool:
    """Chinese of what is English by three of four of the user's turns, or the reverse; mixed ones may be either."""
    said = [shorten(turn.text) for turn in turns if turn.is_user]
    spoken = [language.of(text) for text in said if any(map(str.isalpha, text))]
    others = sum(one != language.of(summary) for one in spoken)
    return bool(spoken) and others >= _MOST_OF_TURNS * len(spoken)
