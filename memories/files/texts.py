"""Windows of lines, replacements and literal matches in the text of a file. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class TextWindow:
    """Lines of a text, with their line ends as `\\n`. Lines are numbered from 1; None where no line is in the window.

    `next_offset` counts from 0: where the rest begins, None at the end.
    """

    content: str
    total_lines: int
    start_line: int | None = None
    end_line: int | None = None
    next_offset: int | None = None


@dataclass(frozen=True)
class Replaced:
    """A text after a replacement, and how many places it had."""

    content: str
    occurrences: int


@dataclass(frozen=True)
class NotReplaced:
    """Why nothing was replaced: the places that the old text has, and what it would have without its last newline.

    `newline_only`: it ends with a newline and the file does not; but for that its end is there.
    """

    occurrences: int
    newline_only: bool = False
    without_newline: int = 0


def window(text: str, *, offset: int, limit: int) -> TextWindow:
    """`limit` lines after the first `offset` ones. A newline at the end begins no line."""
    lines = text.splitlines(keepends=True)
    shown = lines[offset : offset + limit]
    if not shown:
        return TextWindow("", len(lines))
    end = offset + len(shown)
    content = "".join(shown).replace("\r\n", "\n").replace("\r", "\n")
    return TextWindow(content, len(lines), offset + 1, end, end if end < len(lines) else None)


def replace(text: str, old: str, new: str, *, every: bool) -> Replaced | NotReplaced:
    """`text` with `new` in the place of `old`, which must stand there once, or `every` time."""
    found = text.count(old)
    if found == 1 or (found and every):
        return Replaced(text.replace(old, new), found)
    if found:
        return NotReplaced(found)
    stem = old.removesuffix("\n")
    if stem != old and stem and text.endswith(stem):
        return NotReplaced(0, newline_only=True, without_newline=text.count(stem))
    return NotReplaced(0)


def with_end(text: str, new: str) -> str:
    """`text` with `new` at its end, on a line of its own."""
    return f"{text}\n{new}" if text and not text.endswith("\n") else f"{text}{new}"


def matching_lines(text: str, pattern: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that contains the pattern as it is."""
    for number, line in enumerate(text.split("\n"), 1):
        if pattern in line:
            yield number, line
