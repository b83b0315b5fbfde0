"""The parts of a text by which it is known again: long enough to be somebody's own, short enough to survive a cut."""

import re
from collections.abc import Iterator, Sequence

# In letters; a Chinese character says as much as two.
SHORTEST, LONGEST = 16, 48
_WIDE = 0x2E80
# What JSON and COPY write differently from how it was said.
_BREAKS = re.compile(r'[\x00-\x1f\x7f-\x9f"\\]+')


def windows(text: str) -> list[str]:
    """All of the text in parts of at most LONGEST, those of most different pairs of letters first."""
    found = [window for segment in _BREAKS.split(text) for window in _cut(segment.strip())]
    return sorted(found, key=_variety, reverse=True)


def sample(texts: Sequence[str], most: int) -> list[str]:
    """Windows of the texts: all when there are few, else the most distinctive of texts at even distances."""
    by_text = [found for found in map(windows, dict.fromkeys(texts)) if found]
    if sum(map(len, by_text)) <= most:
        return [window for found in by_text for window in found]
    step = max(1, len(by_text) / most)
    chosen = [by_text[int(place * step)] for place in range(min(most, len(by_text)))]
    return [window for found in chosen for window in found[: most // len(chosen)]]


def weight(text: str) -> int:
    return sum(2 if ord(letter) >= _WIDE else 1 for letter in text)


def _cut(segment: str) -> Iterator[str]:
    """Parts of LONGEST; the last one reaches back into the one before it, so that none is too short."""
    rest = weight(segment)
    while rest >= SHORTEST:
        size = _letters(segment)
        yield segment[:size].strip()
        segment, before = segment[size:], segment
        rest = weight(segment)
        if 0 < rest < SHORTEST:
            yield before[-_letters(before[::-1]) :].strip()


def _letters(segment: str) -> int:
    """How many letters make a window."""
    total = 0
    for count, letter in enumerate(segment):
        total += 2 if ord(letter) >= _WIDE else 1
        if total > LONGEST:
            return count
    return len(segment)


def _variety(window: str) -> int:
    return len({window[place : place + 2] for place in range(len(window) - 1)})
