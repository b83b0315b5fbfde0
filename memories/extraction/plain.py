"""Sentences that are kept without being asked for: wishes how to be addressed and answered, and what people plainly say
of themselves. Pure; patterns: data/plain.toml.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memories.text.reading import patterns

# A longer sentence tells a story, a longer turn is a document.
LONGEST_SENTENCE = 240
_DATA = tomllib.loads((Path(__file__).parent / "data" / "plain.toml").read_text(encoding="utf-8"))
_GREETINGS = re.compile(_DATA["greetings"], re.IGNORECASE)
_WORD = re.compile(r"\{([^\W\d]\w*)\}")


@dataclass(frozen=True)
class Plain:
    """A kind of sentence, and the category of its facts; none: the general rule decides. Of the facts with a `key` the
    person has one."""

    name: str
    category: str
    key: str
    begins: re.Pattern[str]
    holds: re.Pattern[str] | None
    unless: re.Pattern[str] | None


def after_greetings(own: str) -> int:
    """Where the sentence begins to say something."""
    greetings = _GREETINGS.match(own)
    return greetings.end() if greetings else 0


def kind_of(sentence: str) -> Plain | None:
    """The first kind that the sentence, without its greetings, is of."""
    if len(sentence) > LONGEST_SENTENCE:
        return None
    for kind in _KINDS:
        is_other = not kind.begins.match(sentence) or (kind.unless and kind.unless.search(sentence))
        if not is_other and (kind.holds is None or kind.holds.search(sentence)):
            return kind
    return None


def _loaded() -> tuple[Plain, ...]:
    # What doubts and supposes is read in one way, here and in what a model answers.
    words = _DATA["words"] | patterns.lists("doubtful", "supposed")
    return tuple(
        Plain(
            name=entry["name"],
            category=entry["category"],
            key=entry.get("key", ""),
            begins=_one_of(entry["begins"], words),
            holds=_one_of(entry["holds"], words) if "holds" in entry else None,
            unless=_one_of(entry["unless"], words) if "unless" in entry else None,
        )
        for entry in _DATA["kind"]
    )


def _one_of(patterns: list[str], words: dict[str, Any]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_filled(pattern, words)})" for pattern in patterns), re.IGNORECASE)


def _filled(pattern: str, words: dict[str, Any]) -> str:
    return _WORD.sub(lambda found: _filled(words[found[1]], words), pattern)


_KINDS = _loaded()
