"""Finds any of many byte strings in much data: the time grows with the data, not with the number of strings."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

# Eight bytes of each string are looked up at every place of the data, as one number.
ANCHOR = 8
_BITS = 22
_ODD = np.uint64(0x9E37_79B9_7F4A_7C15)
Words = NDArray[np.uint64]


class Matcher:
    """Finds all of `strings`, each of which has at least ANCHOR bytes."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        self.strings = strings
        self._by_anchor: dict[bytes, list[tuple[int, int]]] = {}
        shared = Counter(word for one in strings for word in set(_words_of(one)))
        for index, one in enumerate(strings):
            # The eight bytes that fewest others share: texts that begin alike are not all compared at each place.
            offset = min(range(len(one) - ANCHOR + 1), key=lambda at: shared[one[at : at + ANCHOR]])
            self._by_anchor.setdefault(one[offset : offset + ANCHOR], []).append((index, offset))
        self._words = np.unique(np.frombuffer(b"".join(self._by_anchor), "<u8"))
        self._maybe = np.zeros(1 << _BITS, np.bool_)
        self._maybe[_slots(self._words)] = True

    def found(self, data: bytes) -> Iterator[tuple[int, int]]:
        """(place in the data, place in `strings`) of each occurrence, in no order."""
        for position in self._anchors(data):
            for index, offset in self._by_anchor[data[position : position + ANCHOR]]:
                start = position - offset
                if start >= 0 and data.startswith(self.strings[index], start):
                    yield start, index

    def _anchors(self, data: bytes) -> Iterator[int]:
        if not self.strings:
            return
        for shift in range(min(ANCHOR, len(data) - ANCHOR + 1)):
            words = np.frombuffer(data, "<u8", (len(data) - shift) // ANCHOR, shift)
            maybe = np.flatnonzero(self._maybe.take(_slots(words)))
            near = np.searchsorted(self._words, words[maybe]).clip(max=len(self._words) - 1)
            surely = maybe[self._words[near] == words[maybe]]
            yield from (surely * ANCHOR + shift).tolist()


def _words_of(one: bytes) -> Iterator[bytes]:
    return (one[at : at + ANCHOR] for at in range(len(one) - ANCHOR + 1))


def _slots(words: Words) -> NDArray[np.int64]:
    return ((words * _ODD) >> np.uint64(64 - _BITS)).view(np.int64)
