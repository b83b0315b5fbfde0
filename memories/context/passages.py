"""Passages: the sentences of a text that say most about a query, where there is no room for all of it; pure."""

import re
from collections.abc import Sequence
from itertools import groupby, pairwise

GAP = "…"
# A word of the query is worth as much as a few words more: bytes of UTF-8, in which a text of any script is about as
# long as what it says.
QUERY_WORD = 40
# Passages that are shorter are made of clauses.
SHORT = 60
_END = r"""[.!?…]+["”’')\]]*\s+|[。！？]+["”’」』）]*\s*|\n+"""
_SENTENCE = re.compile(_END)
_CLAUSE = re.compile(rf"""{_END}|[,;:]\s+|\s[–—-]\s+|—|[，；：]\s*""")


def passage(text: str, words: Sequence[str], length: int) -> str:
    """The text up to `length` bytes, or its best sentences, with a mark where one is left out; at least one stays.

    `words`: those of the query, as `scoring.terms` has them: a stem is found in any of its forms.
    """
    if len(text.encode()) <= length:
        return text
    pieces = _pieces(text, _SENTENCE if length > SHORT else _CLAUSE)
    lengths = [len(piece.encode()) for piece in pieces]
    lowered = text.lower()
    here = [word for word in words if word in lowered]
    worth = [
        size + QUERY_WORD * sum(word in piece for word in here)
        for size, piece in zip(lengths, map(str.lower, pieces), strict=True)
    ]
    best, *others = sorted(range(len(pieces)), key=lambda place: -worth[place])
    kept, left = {best}, length - lengths[best]
    for place in others:
        if lengths[place] <= left:
            kept.add(place)
            left -= lengths[place]
    shown = (piece if place in kept else GAP for place, piece in enumerate(pieces))
    # One mark for all that is left out in one place.
    return "".join(part for part, _ in groupby(shown)).strip()


def _pieces(text: str, ends: re.Pattern[str]) -> list[str]:
    """Parts that make up the text, each with the blanks behind it."""
    cuts = [0, *(end.end() for end in ends.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts) if start < end] or [text]
