"""Turns what people wrote into data that a prompt can carry: escaped, cut to length, one element a line."""

import re
import unicodedata
from collections.abc import Iterable
from datetime import date, datetime
from typing import Literal, TypedDict

from memories.invisible import is_plain, strip_invisible

LONGEST_TEXT = 1_000
KEPT_AT_EACH_END = 500
TRUNCATED = "…[truncated]…"

# Every character that some reader takes for the end of a line.
_LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1f\x85\u2028\u2029]+")
_JOINER = "\u200d"
# Zero-width joiner and the skin tones belong to the character before them, and so do Unicode's marks (category M).
_CLINGING = re.compile("[\u200d\U0001f3fb-\U0001f3ff]")
# Nobody writes longer clusters; a text made of nothing but marks must not move the cut without end.
_LONGEST_CLUSTER = 32
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Message(TypedDict):
    """One message of a chat completion."""

    role: Literal["system", "user"]
    content: str


def one_line(text: str) -> str:
    """`text` on one line, without what nobody sees: each run of line breaks is one space (quotes are compared with
    spaces folded)."""
    if is_plain(text):
        return text
    return strip_invisible(_LINE_BREAKS.sub(" ", text))


def escape(text: str) -> str:
    """`text` on one line that can neither open nor close an element."""
    shown = one_line(text)
    return shown.translate(_ESCAPES) if "<" in shown or ">" in shown or "&" in shown else shown


def escape_attribute(text: str) -> str:
    """`text` as the value of an attribute in double quotes."""
    return escape(text).replace('"', "&quot;")


def shorten(text: str) -> str:
    """`text`, or its first and last 500 characters around the mark when it has more than 1,000.

    A character is not parted from its marks, joiners or skin tone: an end may be a few characters shorter.
    """
    if len(text) <= LONGEST_TEXT:
        return text
    head, tail = ends(text)
    return text[:head] + TRUNCATED + text[tail:]


def ends(text: str) -> tuple[int, int]:
    """Where the beginning of a text of more than 1,000 characters ends that is kept, and where its end begins."""
    return _cut_near(text, KEPT_AT_EACH_END, step=-1), _cut_near(text, len(text) - KEPT_AT_EACH_END, step=1)


def moment(at: datetime) -> str:
    """An aware moment in its own zone: 2026-11-03T09:12:00+08:00, with a Z for UTC."""
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def today_line(today: date, time_zone: str) -> str:
    """Names the day, and once the zone of all days and times of the prompt."""
    return f"Today: {today.isoformat()} ({today:%A}), {escape(time_zone)}"


def block(tag: str, lines: Iterable[str]) -> str:
    """A tagged block, one element a line; an empty one keeps its two lines."""
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


def guided(instructions: str, guidance: str) -> str:
    """The instructions, and below them the tenant's own guidance when there is any."""
    if not guidance.strip():
        return instructions
    lines = "\n".join(escape(line) for line in guidance.splitlines())
    return f"{instructions}\n\nThe application that uses this memory adds:\n{lines}"


def _cut_near(text: str, cut: int, *, step: int) -> int:
    for moved in range(_LONGEST_CLUSTER):
        place = cut + step * moved
        after = text[place]
        clings = _CLINGING.match(after) or unicodedata.category(after).startswith("M")
        if text[place - 1] != _JOINER and not clings:
            return place
    return cut
