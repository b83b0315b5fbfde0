"""Passages: the sentences of a text that say most about a query, where there is no room for all of it; pure."""

import re
from collections.abc import Sequence
from itertools import groupby, pairwise

GAP = "…"
# In bytes of UTF-8, in which a text of any script is about as long as what it says: 30 tokens of English, 40 Chinese
# characters. Longer sentences say more, and a word of the query is worth as much as a few words more.
LENGTH, QUERY_WORD = 120, 40
_END = re.compile(r"""[.!?…]+["”’')\]]*\s+|[。！？]+["”’」』）]*\s*|\n+""")


def passage(text: str, words: Sequence[str]) -> str:
    """The text up to LENGTH bytes, or its best sentences, with a mark where one is left out; at least one stays.

    `words`: those of the query, as `scoring.terms` has them: a stem is found in any of its forms.
    """
    if len(text.encode()) <= LENGTH:
        return text
    sentences = _sentences(text)
    lengths = [len(sentence.encode()) for sentence in sentences]
    worth = [
        length + QUERY_WORD * sum(word in sentence for word in words)
        for length, sentence in zip(lengths, map(str.lower, sentences), strict=True)
    ]
    best, *others = sorted(range(len(sentences)), key=lambda place: -worth[place])
    kept, left = {best}, LENGTH - lengths[best]
    for place in others:
        if lengths[place] <= left:
            kept.add(place)
            left -= lengths[place]
    pieces = (sentence if place in kept else GAP for place, sentence in enumerate(sentences))
    # One mark for all that is left out in one place.
    return "".join(part for part, _ in groupby(pieces)).strip()


def _sentences(text: str) -> list[str]:
    """Parts that make up the text, each with the blanks behind it."""
    cuts = [0, *(end.end() for end in _END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts) if start < end] or [text]
