"""Text as marked segments that a template renders with autoescape: word diffs, and a quote within its turn."""

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from memories.text.claims import shared_ends

# Ideographs, kana, hangul and their punctuation are one piece each, so Chinese is compared by character.
_PIECES = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef\U00020000-\U0003ffff]|\w+|\s+|[^\w\s]")
_COMPARED = 400_000
_ALIKE = 0.5
CONTEXT = 400
Spans = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Segment:
    """A piece of text; `mark` is "", "added", "removed", "quote", "cut", or "foreign": not the author's own words."""

    text: str
    mark: str = ""


def diff(old: str, new: str) -> list[Segment]:
    """The change from `old` to `new` by word. The unmarked and removed segments together are `old`."""
    before, after = _PIECES.findall(old), _PIECES.findall(new)
    head, tail = shared_ends(before, after)
    middle = _compare(before[head : len(before) - tail], after[head : len(after) - tail])
    pieces = [Segment("".join(before[:head])), *middle, Segment("".join(before[len(before) - tail :]))]
    groups = groupby((piece for piece in pieces if piece.text), key=lambda piece: piece.mark)
    return _from_line_starts([Segment("".join(piece.text for piece in group), mark) for mark, group in groups])


def _from_line_starts(segments: list[Segment]) -> list[Segment]:
    """The same change, with the line marked that came or went: not from its middle to the middle of the next one, which
    begins alike."""
    for place in range(1, len(segments) - 1):
        before, changed, after = segments[place - 1 : place + 2]
        begun = changed.text[changed.text.rfind("\n") + 1 :]
        is_alike = begun not in ("", changed.text) and f"\n{before.text}".endswith(f"\n{begun}")
        if changed.mark and not (before.mark or after.mark) and is_alike:
            segments[place - 1] = Segment(before.text.removesuffix(begun))
            segments[place] = Segment(begun + changed.text.removesuffix(begun), changed.mark)
            segments[place + 1] = Segment(begun + after.text)
    return [segment for segment in segments if segment.text]


def highlight(content: str, quote: str, own: Spans | None = None) -> list[Segment]:
    """The text of a turn around the quote; the search ignores width, case, space and punctuation.

    `own` as in segments_of().
    """
    start, end = _find(content, quote)
    first, last = max(0, start - CONTEXT), min(len(content), end + CONTEXT)
    pieces = [
        Segment("…" if first else "", "cut"),
        *segments_of(content[first:start], own, offset=first),
        Segment(content[start:end], "quote"),
        *segments_of(content[end:last], own, offset=end),
        Segment("…" if last < len(content) else "", "cut"),
    ]
    return [piece for piece in pieces if piece.text]


def segments_of(text: str, own: Spans | None, *, offset: int = 0) -> list[Segment]:
    """A piece of a turn's text, which begins at `offset` in it, by whose words it is. `own` has the start and end of
    each part that is its author's, in order; None: all of it."""
    pieces, at = [], 0
    for start, end in [(0, offset + len(text))] if own is None else own:
        first, last = (min(max(place - offset, at), len(text)) for place in (start, end))
        pieces += [Segment(text[at:first], "foreign"), Segment(text[first:last])]
        at = max(at, last)
    return [piece for piece in [*pieces, Segment(text[at:], "foreign")] if piece.text]


def _compare(before: list[str], after: list[str]) -> Iterator[Segment]:
    # The comparison is quadratic, and anybody may post long texts. A mosaic of chance matches would not help either.
    if len(before) * len(after) > _COMPARED or _likeness(before, after) < _ALIKE:
        yield from _replaced(before, after)
        return
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            yield Segment("".join(before[i:j]))
        else:
            yield from _replaced(before[i:j], after[k:m])


def _likeness(before: Sequence[str], after: Sequence[str]) -> float:
    """0..1 without spaces, which any two texts share."""
    old = [piece for piece in before if not piece.isspace()]
    new = [piece for piece in after if not piece.isspace()]
    return difflib.SequenceMatcher(None, old, new, autojunk=False).ratio()


def _replaced(before: Sequence[str], after: Sequence[str]) -> Iterator[Segment]:
    yield Segment("".join(before), "removed")
    yield Segment("".join(after), "added")


def _find(content: str, quote: str) -> tuple[int, int]:
    """Start and end of the quote in the content; (0, 0) if it is not there."""
    at = content.find(quote)
    if quote and at >= 0:
        return at, at + len(quote)
    folded, places = _folded(content)
    wanted, _ = _folded(quote)
    at = folded.find(wanted)
    if not wanted or at < 0:
        return 0, 0
    return places[at], places[at + len(wanted) - 1] + 1


def _folded(text: str) -> tuple[str, list[int]]:
    """Only letters and digits, NFKC and case folded, each with its position in the text."""
    letters, places = [], []
    for place, character in enumerate(text):
        for letter in unicodedata.normalize("NFKC", character).casefold():
            if letter.isalnum():
                letters.append(letter)
                places.append(place)
    return "".join(letters), places
