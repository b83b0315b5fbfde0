"""A claim that was corrected: whether a text still says it, by its distinctive words, and the text in new words; pure.

What counts is what the correction took away: of "Lives in Leiden" and "Lives in Utrecht" the word "Leiden", in any of
its forms. Chinese is compared by pairs of characters, and by single ones where only one changed.
"""

import re
from collections.abc import Sequence
from functools import cached_property

from memories.models.folding import fold
from memories.text import quantities, words
from memories.text.words import SpokenWords, StatementWord

_HAN = r"\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3\U00020000-\U0003ffff"
_PIECES = re.compile(rf"[{_HAN}]|(?:(?![{_HAN}])\w)+|\s+|[^\w\s]")
_LETTER = re.compile(rf"(?![{_HAN}])\w")
_EAST = re.compile(rf"[{_HAN}]")
# The end of a clause.
_ENDS = r"(?=\s*(?:[^\w\s'’\"-]|\Z))"


class OldClaim:
    """What `old` said and `new`, which took its place, does not say."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new
        self._statement, kept = words.of(old), SpokenWords([new])
        self._codes = [code for code in self._statement.codes if not kept.has_code(code)]
        gone = [piece for piece in self._statement.pieces if not kept.says(piece)]
        self._shared = [piece for piece in self._statement.pieces if not piece.is_plain and kept.says(piece)]
        spelled = [piece for piece in gone if not piece.is_east and not piece.is_plain]
        # Names say more than other words, and those more than everyday words.
        self._words = (
            [piece for piece in spelled if piece.is_name]
            or [piece for piece in spelled if piece.is_distinctive]
            or spelled
        )
        # The pairs that are gone, without those that lie across a character which stays.
        self._pairs = [
            piece for piece in gone if piece.is_east and len(piece.text) > 1 and not set(piece.text) & set(fold(new))
        ]
        characters = [character for character in dict.fromkeys(_EAST.findall(old)) if character not in new]
        # Of several characters that a correction took away none is telling.
        self._character = characters[0] if len(characters) == 1 and not self._pairs else ""
        then, now = self._statement.quantities, quantities.of(new)
        self._numbers, self._dates = then.numbers - now.numbers, set(then.dates) - set(now.dates)

    def is_in(self, text: str, voice: SpokenWords | None = None) -> bool:
        """Whether the text still says it. `voice`: its words, if the caller asks of many claims."""
        if not text.strip():
            return False
        voice = voice or SpokenWords([text])
        if any(voice.has_code(code) for code in self._codes):
            return True
        if _has_half(self._words, voice) or _has_half(self._pairs, voice):
            return True
        if self._words or self._pairs or self._codes:
            return False
        if self._character:
            return self._character in text
        return self._says_number(text, voice) or self._says_phrase(text)

    def reworded(self, text: str) -> str:
        """The text with what was corrected in its new words; as it is where the old ones are not found whole, or where
        the rest would say it still."""
        for was, now in self._replacements:
            # Where the verb itself changed, what goes on behind the old statement was said of that: "… since 2019".
            ends = _ENDS if was == self._whole else ""
            found = re.sub(_pattern(was) + ends, lambda old: _in_place_of(old[0], was, now), text, flags=re.IGNORECASE)  # noqa: B023
            if found != text:
                return text if self.is_in(found) else found
        return text

    def _says_number(self, text: str, voice: SpokenWords) -> bool:
        """A number alone says nothing: the text must have a word of what it was the number of."""
        if not any(voice.says(piece) for piece in self._shared):
            return False
        found = quantities.of(text)
        return bool(self._numbers & found.numbers or self._dates & set(found.dates))

    def _says_phrase(self, text: str) -> bool:
        """Of a claim that was only added to, or denied: the old words, where the new ones do not hold them."""
        folded, old, new = fold(text), fold(self.old), fold(self.new)
        return bool(old) and old in (folded.replace(new, " ") if new else folded)

    @property
    def _whole(self) -> str:
        return self.old.strip(" .。")

    @cached_property
    def _replacements(self) -> list[tuple[str, str]]:
        """What changed, as a whole, and the whole texts: the old words and the new ones.

        A part of what changed is never put in by itself: "Data manager at a start-up" is nobody's word.
        """
        before, after = _PIECES.findall(self.old), _PIECES.findall(self.new)
        head, tail = shared_ends(before, after)
        changed = _joined(before[head : len(before) - tail]), _joined(after[head : len(after) - tail])
        parts = [changed, (self._whole, self.new.strip(" .。"))]
        return [(was, now) for was, now in parts if was and now and self.is_in(was)]


def shared_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """How many pieces the two begin with alike, and how many of the rest they end with alike."""
    head = _shared_length(before, after)
    return head, _shared_length(before[head:][::-1], after[head:][::-1])


def _shared_length(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _has_half(pieces: list[StatementWord], voice: SpokenWords) -> bool:
    return bool(pieces) and 2 * sum(map(voice.says, pieces)) >= len(pieces)


def _in_place_of(found: str, was: str, now: str) -> str:
    """The new words, which begin or go on a sentence as the old ones did; a name keeps its capital."""
    if was[0].islower() and found[0].isupper():
        return f"{now[0].upper()}{now[1:]}"
    first = next(iter(words.of(now).pieces), None)
    goes_on = was[0].isupper() and found[0].islower() and first is not None and not first.is_distinctive
    return f"{now[0].lower()}{now[1:]}" if goes_on else now


def _joined(pieces: list[str]) -> str:
    return "".join(pieces).strip()


def _pattern(was: str) -> str:
    """The words however they are spaced; letters and digits as whole words."""
    spaced = r"\s+".join(map(re.escape, was.split()))
    before = r"(?<!\w)" if _LETTER.match(was[0]) else ""
    after = r"(?!\w)" if _LETTER.match(was[-1]) else ""
    # A Chinese character beside it belongs to another word.
    return rf"(?:{before}|(?<=[{_HAN}])){spaced}(?:{after}|(?=[{_HAN}]))"
