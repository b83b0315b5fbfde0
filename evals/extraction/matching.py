"""Whether a fact says what a label asks for: by words, the same answer every time, in English and Chinese; pure.

Both sides are folded (NFKC, case, spaces). A word in Latin letters is found at the beginning of a word ("vegetarian" in
"vegetarians"), a number only whole, Chinese anywhere: nothing has to be segmented.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from memories.models.folding import fold

_NEGATIONS = re.compile(
    r"\b(?:not|no|never|none|nothing|without|cannot|neither|nor|avoid\w*|dislik\w*|hat(?:e|es|ed)|refus\w*|stopped|quit"
    r"|gave up|except|excluding|anything but|intoleran\w*)\b|n['’]t\b"
    r"|不(?!错)|没|无(?!论)|未(?!来)|勿|(?<![特分个性级区])别(?!人|的)|戒|忌|避免|讨厌|拒绝|停止|禁|以外|之外"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[a-z]")
_LETTERS = {"en": _LATIN, "zh": _HAN}


@dataclass(frozen=True)
class Found:
    """A fact that would be served: category and key as stored, days after which it ends (None: never)."""

    content: str
    category: str = "other"
    key: str = ""
    expires: float | None = None


@dataclass(frozen=True)
class Label:
    """What a fact has to say: a word of each group of `all`, none of `none`; with a negation (negated true), without
    one (false) or either way (None); to end within `expires`, (least, most) days.

    `categories` and `keys` are those that suit; they are counted apart and make no fact wrong.
    """

    all: tuple[tuple[str, ...], ...]
    none: tuple[str, ...] = ()
    negated: bool | None = None
    expires: tuple[int, int] | None = None
    categories: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "Label":
        """A label as the files have it."""
        return cls(
            all=tuple(tuple(group) for group in entry["all"]),
            none=tuple(entry.get("none", [])),
            negated=entry.get("negated"),
            expires=tuple(entry["expires"]) if "expires" in entry else None,
            categories=frozenset(entry.get("category", [])),
            keys=frozenset(entry.get("key", [])),
        )

    def fits(self, found: Found) -> bool:
        """Whether the fact says it, whole and not its opposite."""
        text = fold(found.content)
        return (
            all(any(_holds(text, word) for word in group) for group in self.all)
            and not any(_holds(text, word) for word in self.none)
            and self.negated in (None, _NEGATIONS.search(text) is not None)
            and self._ends_in_time(found.expires)
        )

    def _ends_in_time(self, days: float | None) -> bool:
        if self.expires is None:
            return True
        least, most = self.expires
        return days is not None and least <= days <= most


def is_in(language: str, content: str) -> bool:
    """Whether a text has letters of the language: a Chinese dialogue is not to be told in English, nor the other way
    round."""
    return _LETTERS[language].search(fold(content)) is not None


def pairs(labels: Sequence[Label], found: Sequence[Found]) -> dict[int, int]:
    """Places of facts by places of the labels they satisfy: as many as can be, each fact and each label once."""
    label_of: dict[int, int] = {}
    for place in range(len(labels)):
        _assign(place, labels, found, label_of, set())
    return {label: fact for fact, label in sorted(label_of.items())}


def _assign(
    place: int, labels: Sequence[Label], found: Sequence[Found], label_of: dict[int, int], seen: set[int]
) -> bool:
    """Give label `place` a fact, moving others where that helps (augmenting paths)."""
    for fact, one in enumerate(found):
        if fact in seen or not labels[place].fits(one):
            continue
        seen.add(fact)
        if fact not in label_of or _assign(label_of[fact], labels, found, label_of, seen):
            label_of[fact] = place
            return True
    return False


def _holds(text: str, word: str) -> bool:
    return _pattern(word).search(text) is not None


@cache
def _pattern(word: str) -> re.Pattern[str]:
    folded = fold(word)
    before = "(?<![a-z0-9])" if re.match("[a-z0-9]", folded) else ""
    after = "(?![0-9])" if folded[-1].isdigit() else ""
    return re.compile(f"{before}{re.escape(folded)}{after}")
