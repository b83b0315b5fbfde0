"""Quality of a summary, as far as code can judge it; pure (rules.md, 6.3)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from memories.llm.prompts.framing import shorten
from memories.llm.prompts.memory_update_text import is_example
from memories.scoring import language, terms
from memories.text.keywords import HAN, content
from memories.text.transcript import TranscriptTurn

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
class SummaryFlaw:
    """The highest quality of a summary with this flaw, and the objection to it in plain words."""

    quality: float
    objection: str


FLAWS = {
    EMPTY: SummaryFlaw(0.0, "it said nothing (what tells of uploaded files is left out)"),
    SHORT: SummaryFlaw(0.2, f"it had fewer than {SHORTEST} characters"),
    BOILERPLATE: SummaryFlaw(0.1, "it would fit any conversation: name what this one was about"),
    COPY: SummaryFlaw(0.3, "it repeated the conversation word for word instead of summing it up"),
    LANGUAGE: SummaryFlaw(0.3, "it was not in the language that the user writes in"),
    INVENTED: SummaryFlaw(0.2, "it had none of the words of the conversation: tell only what was said"),
}

# A summary is a copy when this share of it, by weight, is in single turns word for word, in runs of at least the weight
# below. Shorter runs are allowed: a short conversation has to be summed up in its own words.
_COPIED_SHARE = 0.8
_LEAST_RUN = 10.0
_TIMES_LONGER = 3.0
# A summary shares at least this part of its content words with the turns. LoCoMo's sessions share 0.33 and more with
# their own summaries, and usually 0.15 with those of others.
_LEAST_SHARED = 0.1
# In words: most Chinese words have two characters.
_WEIGHT_OF_CHARACTER = 0.5
_MOST_OF_TURNS = 0.75

_UNIT = re.compile(rf"[{HAN}]|[^\W_{HAN}]+")
_IS_HAN = re.compile(rf"[{HAN}]")


@dataclass(frozen=True)
class SummaryQuality:
    """0 to 1, and the codes of its flaws."""

    quality: float
    flaws: tuple[str, ...]


def judge(summary: str, turns: Sequence[TranscriptTurn], *, is_quoted: bool = False) -> SummaryQuality:
    """Judge a summary of `turns`. `is_quoted`: it is made of their sentences, so copying is no flaw."""
    flaws = tuple(_flaws(summary, turns, is_quoted=is_quoted))
    return SummaryQuality(min((FLAWS[flaw].quality for flaw in flaws), default=1.0), flaws)


def _flaws(summary: str, turns: Sequence[TranscriptTurn], *, is_quoted: bool) -> Iterator[str]:
    if not summary:
        yield EMPTY
        return
    if len(summary) < SHORTEST:
        yield SHORT
    words = content(summary)
    if not words:
        yield BOILERPLATE
    if is_quoted:
        return
    if _is_copy(summary, turns):
        yield COPY
    if _is_in_other_language(summary, turns):
        yield LANGUAGE
    elif words and _is_invented(summary, words, turns):
        yield INVENTED


def _is_invented(summary: str, words: set[str], turns: Sequence[TranscriptTurn]) -> bool:
    """Hardly any of its words are from the turns, or it is an example of the prompt."""
    dialogue = "\n".join(shorten(turn.text) for turn in turns)
    is_alien = len(words & content(dialogue)) < _LEAST_SHARED * len(words)
    return is_alien or (is_example(summary) and not is_example(dialogue))


def _is_copy(summary: str, turns: Sequence[TranscriptTurn]) -> bool:
    whole = _FoldedUnits(summary)
    spoken = [_FoldedUnits(shorten(turn.text)) for turn in turns]
    if not whole.units or sum(turn.weight for turn in spoken) < _TIMES_LONGER * whole.weight:
        return False
    # The weight of the longest runs that a turn contains, from left to right.
    copied, start = 0.0, 0
    while start < len(whole.units):
        end = max(_end_of_run(whole.units, start, turn) for turn in spoken)
        weight = sum(map(_weight, whole.units[start:end]))
        copied += weight if weight >= _LEAST_RUN else 0.0
        start = end if weight >= _LEAST_RUN else start + 1
    return copied >= _COPIED_SHARE * whole.weight


def _end_of_run(units: Sequence[str], start: int, turn: "_FoldedUnits") -> int:
    end = start
    while end < len(units) and _joined(units[start : end + 1]) in turn.joined:
        end += 1
    return end


class _FoldedUnits:
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


def _is_in_other_language(summary: str, turns: Sequence[TranscriptTurn]) -> bool:
    """Chinese where three of four of the user's turns are English, or the reverse; mixed ones may be either."""
    texts = [shorten(turn.text) for turn in turns if turn.is_user]
    languages = [language.of(text) for text in texts if any(map(str.isalpha, text))]
    others = sum(one != language.of(summary) for one in languages)
    return bool(languages) and others >= _MOST_OF_TURNS * len(languages)
