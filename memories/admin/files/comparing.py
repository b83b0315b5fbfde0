"""Two versions of a text side by side, by line, and by word within a changed line. Pure.

Agents write these texts. Matching is quadratic at best, so that each step of it has a limit: what is beyond is shown as
it is, removed on one side and added on the other.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from memories.admin.site.segments import Segment, diff

# Lines on either side of a change.
CONTEXT = 3
# Changed lines that are matched with each other.
MOST_MATCHED = 1_000
# Characters of one line times those of the other, of all pairs whose words are compared.
MOST_COMPARED = 300_000
ROWS_SHOWN = 400
LONGEST_LINE = 1_000
_BEFORE_CHANGE = 80


@dataclass(frozen=True)
class Side:
    """A line of one version; number 0: it has none there."""

    number: int
    segments: Sequence[Segment] = ()


@dataclass(frozen=True)
class ComparedLine:
    """Two lines that stand beside each other; `same` counts lines that are left out here, and then there is neither."""

    left: Side | None = None
    right: Side | None = None
    mark: str = ""
    same: int = 0


@dataclass(frozen=True)
class VersionComparison:
    rows: Sequence[ComparedLine]
    # There is more than what is shown.
    is_cut: bool = False


def compare(old: str, new: str) -> VersionComparison:
    """The rows that differ, each with a few lines around it; none if only the ends of lines differ."""
    before, after = old.splitlines(), new.splitlines()
    rows = _rows(before, after)
    shown: list[ComparedLine] = []
    for row in rows:
        if len(shown) == ROWS_SHOWN:
            return VersionComparison(shown, is_cut=True)
        shown.append(row)
    return VersionComparison(shown)


def _rows(before: list[str], after: list[str]) -> Iterator[ComparedLine]:
    rest = MOST_COMPARED
    done = 0
    blocks = list(_blocks(before, after))
    for place, (i, j, k, m) in enumerate(blocks):
        start = max(done, i - CONTEXT)
        if start == done + 1:
            # One line takes no more room than saying that it is left out.
            start = done
        if start > done:
            yield ComparedLine(same=start - done)
        # The same lines stand on both sides: the shift between the two numbers is that of the change.
        yield from (_same(before, line, line + k - i) for line in range(start, i))
        for left, right in zip_longest(range(i, j), range(k, m)):
            row, cost = _changed(before, after, left, right, rest)
            rest -= cost
            yield row
        next_start = blocks[place + 1][0] if place + 1 < len(blocks) else len(before)
        done = min(j + CONTEXT, next_start)
        yield from (_same(before, line, line + m - j) for line in range(j, done))
    if blocks and done < len(before):
        yield ComparedLine(same=len(before) - done)


def _blocks(before: list[str], after: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """The stretches that differ: lines i to j of the one are lines k to m of the other."""
    head = _shared(before, after)
    tail = _shared(before[head:][::-1], after[head:][::-1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if not old and not new:
        return
    if max(len(old), len(new)) > MOST_MATCHED:
        yield head, head + len(old), head, head + len(new)
        return
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            yield head + i, head + j, head + k, head + m


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def _same(before: list[str], left: int, right: int) -> ComparedLine:
    segments = [Segment(_clipped(before[left], 0))]
    return ComparedLine(Side(left + 1, segments), Side(right + 1, segments))


def _changed(
    before: list[str], after: list[str], left: int | None, right: int | None, rest: int
) -> tuple[ComparedLine, int]:
    """The row, and what comparing its words cost; by word only if the cost is within the rest."""
    if left is None or right is None:
        old = Side(left + 1, _whole(before[left], "removed")) if left is not None else Side(0)
        new = Side(right + 1, _whole(after[right], "added")) if right is not None else Side(0)
        return ComparedLine(old, new, "removed" if right is None else "added"), 0
    was, now = before[left], after[right]
    if max(len(was), len(now)) > LONGEST_LINE:
        start = max(0, _shared(was, now) - _BEFORE_CHANGE)
        was, now = _clipped(was, start), _clipped(now, start)
    cost = len(was) * len(now)
    if cost > rest:
        return ComparedLine(Side(left + 1, _whole(was, "removed")), Side(right + 1, _whole(now, "added")), "changed"), 0
    segments = diff(was, now)
    old = Side(left + 1, [piece for piece in segments if piece.mark != "added"])
    new = Side(right + 1, [piece for piece in segments if piece.mark != "removed"])
    return ComparedLine(old, new, "changed"), cost


def _whole(text: str, mark: str) -> Sequence[Segment]:
    return [Segment(_clipped(text, 0), mark)]


def _clipped(text: str, start: int) -> str:
    if start == 0 and len(text) <= LONGEST_LINE:
        return text
    end = start + LONGEST_LINE
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
