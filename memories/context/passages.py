"""Passages: the sentences of a text that say most about a query, where there is no room for all of it; pure."""

import re
from collections.abc import Sequence
from itertools import pairwise

GAP = "…"
# A word of the query is worth as much as a few words more: bytes of UTF-8, in which a text of any script is about as
# long as what it says.
QUERY_WORD = 40
# Passages that are shorter are made of clauses.
SHORT = 60
# Each pattern begins with the set of characters that it can begin with: to these a search jumps, and most are none.
_END = r"""(?<=[.!?…])[.!?…]*["”’')\]]*\s+|(?<=[。！？])[。！？]*["”’」』）]*\s*|(?<=\n)\n*"""
_SENTENCE = re.compile(rf"[.!?…。！？\n](?:{_END})")
_CLAUSE = re.compile(rf"[.!?…。！？\n,;:\s—，；：](?:{_END}|(?<=[,;:])\s+|(?<=\s)[–—-]\s+|(?<=—)|(?<=[，；：])\s*)")


def passage(text: str, words: Sequence[str], length: int) -> str:
    """The text up to `length` bytes, or its best sentences, with a mark where one is left out; at least one stays.

    `words`: those of the query, as `scoring.terms` has them: a stem is found in any of its forms.
    """
    size = len(text) if text.isascii() else len(text.encode())
    if size <= length:
        return text
    pieces = _pieces(text, _SENTENCE if length > SHORT else _CLAUSE)
    lengths = list(map(len, pieces if size == len(text) else map(str.encode, pieces)))
    kept = _best(pieces, lengths, words, length)
    shown = [""]
    for place, piece in enumerate(pieces):
        part = piece if place in kept else GAP
        # One mark for all that is left out in one place.
        if part != shown[-1]:
            shown.append(part)
    return "".join(shown).strip()


def _best(pieces: Sequence[str], lengths: Sequence[int], words: Sequence[str], length: int) -> set[int]:
    """The places of the pieces that are worth most and fit; at least one."""
    lowered, worth = [piece.lower() for piece in pieces], list(lengths)
    for word in words:
        for place, piece in enumerate(lowered):
            if word in piece:
                worth[place] += QUERY_WORD
    best, *others = sorted(range(len(pieces)), key=lambda place: -worth[place])
    kept, left = {best}, length - lengths[best]
    for place in others:
        if lengths[place] <= left:
            kept.add(place)
            left -= lengths[place]
    return kept


def _pieces(text: str, ends: re.Pattern[str]) -> list[str]:
    """Parts that make up the text, each with the blanks behind it."""
    cuts = [0, *[end.end() for end in ends.finditer(text)], len(text)]
    return [text[start:end] for start, end in pairwise(cuts) if start < end] or [text]
