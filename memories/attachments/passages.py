"""Cuts the text of a file into passages: long enough to say something, short enough to be found. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from memories.attachments.sandbox import Block
from memories.invisible import strip_invisible
from memories.models.memories.attachments import LONGEST_PLACE
from memories.text.secrets.redaction import redact_parts

LONGEST, MOST = 1_200, 1_500
SEPARATOR = " › "
# Where a long text is cut best: between paragraphs, lines, sentences, words.
_CUTS = (re.compile(r"\n[ \t]*\n"), re.compile(r"\n"), re.compile(r"[.!?…](?=\s)|[。！？]"), re.compile(r"\s"))
# Halves of surrogate pairs cannot be stored.
_LONE = re.compile("[\ud800-\udfff]")


class TextPassage(NamedTuple):
    """A passage and its place: `start` counts characters of the whole text."""

    text: str
    place: str
    page: int | None
    start: int


def clean(blocks: Sequence[Block]) -> list[Block]:
    """The blocks as they are kept: without secrets, also those that stand in several blocks, and what nobody sees.

    Errors: TooManySecrets.
    """
    # A heading stands above many blocks.
    headings = list(dict.fromkeys(name for one in blocks for name in one.headings))
    names = dict(zip(headings, redact_parts(list(map(_storable, headings))), strict=True))
    texts = redact_parts([_storable(one.text) for one in blocks])
    return [
        Block(text, tuple(map(names.__getitem__, one.headings)), one.page)
        for text, one in zip(texts, blocks, strict=True)
    ]


def _storable(text: str) -> str:
    return strip_invisible(_LONE.sub("\ufffd", text).replace("\x00", ""))


def passages_of(blocks: Iterable[Block]) -> Iterator[TextPassage]:
    """The passages of these blocks, which are clean: those of one place go together while they are short."""
    parts: list[str] = []
    page: int | None = None
    place, start, length, at = "", 0, 0, 0
    for block in blocks:
        where = _place(block.headings)
        if parts and ((where, block.page) != (place, page) or length + len(block.text) > LONGEST):
            yield from _cut("\n\n".join(parts), place, page, start)
            parts, length = [], 0
        if not parts:
            place, page, start = where, block.page, at
        parts.append(block.text)
        length += len(block.text) + 2
        at += len(block.text) + 2
    if parts:
        yield from _cut("\n\n".join(parts), place, page, start)


def _place(headings: Iterable[str]) -> str:
    """The headings, outermost first; of too many or too long ones the innermost."""
    # A page's title is often its first heading again.
    names = [name for name, _same in groupby(" ".join(one.split()) for one in headings) if name]
    while names and len(SEPARATOR.join(names)) > LONGEST_PLACE:
        names = names[1:] if len(names) > 1 else [f"{names[0][: LONGEST_PLACE - 1]}…"]
    return SEPARATOR.join(names)


def _cut(text: str, place: str, page: int | None, start: int) -> Iterator[TextPassage]:
    while text.strip():
        end = _end(text)
        if text[:end].strip():
            lead = len(text[:end]) - len(text[:end].lstrip())
            yield TextPassage(text[:end].strip(), place, page, start + lead)
        text, start = text[end:], start + end


def _end(text: str) -> int:
    """Where the first passage of the text ends: at the last good place in its second half."""
    if len(text) <= LONGEST:
        return len(text)
    for pattern in _CUTS:
        places = [found.end() for found in pattern.finditer(text, LONGEST // 2, LONGEST)]
        if places:
            return places[-1]
    return LONGEST
