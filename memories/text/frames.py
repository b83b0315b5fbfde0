"""Frames: texts that a program makes by putting other words into the same template; pure."""

from collections.abc import Iterator, Sequence

from memories.text import sentences

# Two texts that begin, or end, with so many equal characters are made of one template.
SHORTEST = 40
_MARKS = frozenset(".!?。！？,;，；")
# A frame ends, and begins again, where a sentence, a line or a quotation may.
_BORDERS = frozenset('\n:：.!?。！？;；>"“”「」')


def slot_of(text: str, others: Sequence[str]) -> list[str]:
    """The passages of a text that are its frame, and what was put into earlier slots: only what stands last and varies
    may be the person's. [] where none of the other texts has a frame in common with it."""
    found: list[str] = []
    for other in others:
        passages = list(_framed(text, other))
        # Of several the one that leaves least is the closest relative.
        found = max(found, passages, key=lambda some: sum(map(len, some)))
    return found


def _framed(text: str, other: str) -> Iterator[str]:
    if text.split() == other.split():
        # The same, with other blanks.
        return
    head = _head(text, other)
    tail = _head(text[::-1], other[::-1])
    # The mark at the end of what was put in is no part of the frame.
    while tail > 0 and text[len(text) - tail] in _MARKS:
        tail -= 1
    tail = min(tail, len(text) - head)
    if max(head, tail) < SHORTEST:
        return
    start, end = (head if head >= SHORTEST else 0), len(text) - (tail if tail >= SHORTEST else 0)
    # Lines in between that both have are a part of the frame: the slot behind the last of them stands last.
    between = other[head : len(other) - tail]
    shared = {between[first:last].strip() for first, last in _spans(between, 0, len(between))}
    place = start
    for first, last in _spans(text, start, end):
        if text[first:last].strip() in shared:
            place = last
    if text[:place].strip():
        yield text[:place]
    if text[end:].strip():
        yield text[end:]


def _head(text: str, other: str) -> int:
    """How many characters both begin with, back to where what was put in may begin: words that two people's sentences
    begin with are theirs."""
    length = next((at for at, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), None)
    length = min(len(text), len(other)) if length is None else length
    if length == len(text):
        return length
    border = max((at + 1 for at in range(length) if text[at] in _BORDERS), default=0)
    return border if border >= SHORTEST else _word(text, length)


def _word(text: str, length: int) -> int:
    while 0 < length < len(text) and text[length - 1].isalnum() and text[length].isalnum():
        length -= 1
    return length


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for first, last in sentences.spans(text[start:end]):
        if last - first >= 8:
            yield start + first, start + last
