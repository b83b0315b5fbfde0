"""What a guard must read again when a text was changed: the passages that did not stand in the old text; pure.

The result is judged, not what was added: an order comes about as well where lines between its parts are taken away, or
where lines change places. What stood in the old text word for word, between the same ends of sentences, is not new.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from memories.text import sentences

# A claim is looked for in so many sentences or lines together, or in so many characters if they are long, in two at
# least: orders with one word a line are found, too.
_TOGETHER, _LONGEST_TOGETHER = 16, 1_200
# A longer sentence, or text without ends of sentences, is taken in pieces of it.
_LONGEST_UNIT = 600
# What is given to the guard at once.
_LONGEST_PASSAGE = 4_000

Judge = Callable[[str], bool]


class Place(NamedTuple):
    """Where a passage stands in a text."""

    start: int
    end: int

    def lines_in(self, text: str) -> tuple[int, int]:
        """Its first and its last line; the first of a text is 1."""
        first = text.count("\n", 0, self.start) + 1
        return first, first + text.count("\n", self.start, self.end)


class ChangedText:
    """A text that was changed, and what of it is new."""

    def __init__(self, before: str, after: str) -> None:
        self.before, self.after = before, after
        self._old = _Units(before)
        self._new = _Units(after)

    @cached_property
    def sentences(self) -> list[Place]:
        """Those that are new. A sentence that has only another place is none of them."""
        known = {self.before[start:end] for start, end in self._old.sentences}
        return [place for place in self._new.sentences if self.after[place.start : place.end] not in known]

    @cached_property
    def effort(self) -> int:
        """Characters of new sentences, and a tenth of those that only stand beside others now."""
        new = sum(end - start for start, end in self.sentences)
        read, done = 0, 0
        for first, end in self._pieces:
            read += self._new.length(max(first, done), end) if end > done else 0
            done = max(end, done)
        return new + max(read - new, 0) // 10

    def findings(self, speaks: Judge) -> Iterator[Place]:
        """The shortest passages that speak to a model, as `speaks` says of a text, and did not stand there before."""
        for first, end in self._pieces:
            if not speaks(self._text(first, end)):
                continue
            shortest = list(self._shortest(first, end, speaks))
            # Said by more than is looked at together: then it is all of the piece that says it.
            places = shortest or [self._new.place(first, end)]
            yield from (place for place in places if not self._stood(place))

    @cached_property
    def _pieces(self) -> list[tuple[int, int]]:
        """All that stands together in another way than before: from and up to which unit, in pieces that overlap."""
        old, new = self._old, self._new
        stood = {hash(self.before[slice(*old.together(unit))]) for unit in range(len(old.units))}
        changed = (unit for unit in range(len(new.units)) if hash(self.after[slice(*new.together(unit))]) not in stood)
        pieces: list[tuple[int, int]] = []
        for unit in changed:
            end = new.end_together(unit)
            first, last = pieces[-1] if pieces else (0, -1)
            if unit <= last and new.length(first, end) <= _LONGEST_PASSAGE:
                pieces[-1] = first, max(last, end)
            else:
                pieces.append((unit, end))
        return pieces

    def _shortest(self, first: int, end: int, speaks: Judge) -> Iterator[Place]:
        for unit in range(first, end):
            last = min(self._new.end_together(unit), end)
            if not speaks(self._text(unit, last)):
                continue
            up_to = next((up_to for up_to in range(unit + 1, last) if speaks(self._text(unit, up_to))), last)
            # What begins later and says it as well comes by itself.
            if up_to == unit + 1 or not speaks(self._text(unit + 1, up_to)):
                yield self._new.place(unit, up_to)

    def _text(self, first: int, end: int) -> str:
        return self.after[slice(*self._new.place(first, end))]

    def _stood(self, place: Place) -> bool:
        text = self.after[place.start : place.end]
        found = self.before.find(text)
        while found >= 0:
            if found in self._old.starts and found + len(text) in self._old.ends:
                return True
            found = self.before.find(text, found + 1)
        return False


class _Units:
    """A text as sentences and lines, and as pieces of those that are long."""

    def __init__(self, text: str) -> None:
        self.sentences = [Place(*span) for span in sentences.spans(text)]
        self.units = [
            Place(start, end)
            for sentence in self.sentences
            for start, end in pairwise([*range(sentence.start, sentence.end, _LONGEST_UNIT), sentence.end])
        ]
        self.starts = {unit.start for unit in self.units}
        self.ends = {unit.end for unit in self.units}

    def place(self, first: int, end: int) -> Place:
        return Place(self.units[first].start, self.units[end - 1].end)

    def length(self, first: int, end: int) -> int:
        start, last = self.place(first, end)
        return last - start

    def end_together(self, unit: int) -> int:
        """Up to which unit a claim is looked for that begins with this one."""
        most = min(unit + _TOGETHER, len(self.units))
        fits = (end for end in range(most, unit + 2, -1) if self.length(unit, end) <= _LONGEST_TOGETHER)
        return next(fits, min(unit + 2, most))

    def together(self, unit: int) -> Place:
        return self.place(unit, self.end_together(unit))
