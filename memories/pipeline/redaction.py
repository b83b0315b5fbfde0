"""Secrets are cut out of a message before anything stores or reads it: each becomes [redacted:<kind>]; pure.

Only what is certain is cut (rules.md, 1.2). looks_secret() is the suspicion that merely holds a fact for review.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from memories.pipeline import secret_formats, secret_phrases
from memories.pipeline.secret_formats import Span
from memories.pipeline.secret_values import Announced, is_secret

# Cutting one secret can lay bare another; text that goes on like this is made for it.
_MOST_PASSES = 4
# Full-width letters, digits and signs to their ASCII form, curly quotes to straight ones: one for one, so that places
# stay. The full-width comma and stop stay as they are: they end a value.
_WIDTHS = {0xFF01 + offset: 0x21 + offset for offset in range(94) if chr(0x21 + offset) not in "!(),.;?"} | {
    ord(quote): '"' for quote in "“”„‟「」『』"
}
_WIDTHS |= {ord("‘"): "'", ord("’"): "'", 0x3000: " ", 0xA0: " "}

_RUN = re.compile(r"[A-Za-z0-9+/=_.~-]{20,}")
_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])")
_CHANGES = re.compile(r"[A-Za-z][0-9]|[0-9][A-Za-z]|[a-z][A-Z]")
_LEAST_BITS = 3.0
_LEAST_CHANGES = 4


@dataclass(frozen=True)
class Redacted:
    """A message's fields without secrets, and how many were cut."""

    content: str
    parts: list[Any] | None
    tool_calls: list[Any] | None
    tool_call_id: str
    metadata: dict[str, Any]
    name: str
    count: int


def redact_text(text: str) -> tuple[str, int]:
    """`text` with a mark in the place of each secret, and how many there were; all else stays as it is.

    Time is linear in the length of the text (about 1 s per MB at worst). Doing it twice changes nothing more.
    """
    total = 0
    for _ in range(_MOST_PASSES):
        text, count = _cut(text)
        total += count
        if not count:
            break
    return text, total


def redact_message(
    *,
    content: str,
    parts: list[Any] | None = None,
    tool_calls: list[Any] | None = None,
    tool_call_id: str = "",
    metadata: Mapping[str, Any] | None = None,
    name: str = "",
) -> Redacted:
    """Redact every text of a message, JSON keys and values at any depth; `content` is the text of `parts`, if any."""
    desk = _Desk()
    said = desk.text(content)
    return Redacted(
        content=said,
        parts=None if parts is None else _parts(parts, said, desk),
        tool_calls=None if tool_calls is None else desk.value(tool_calls),
        tool_call_id=desk.text(tool_call_id) if tool_call_id else "",
        metadata=desk.value(dict(metadata or {})),
        name=desk.text(name),
        count=desk.count,
    )


def looks_secret(text: str) -> bool:
    """Whether `text` holds an unbroken run of 20 characters or more that seems random: reason to hold a fact back,
    never to cut anything. Long words, numbers, paths of words and UUIDs (names of things, by their form) do not;
    hashes do."""
    return any(_seems_random(run) for run in _RUN.findall(_UUID.sub(" ", text)))


@dataclass
class _Desk:
    """Walks through JSON and counts."""

    count: int = 0

    def text(self, text: str) -> str:
        redacted, count = redact_text(text)
        self.count += count
        return redacted

    def value(self, value: Any, announced_by: str = "") -> Any:
        """`value` redacted; `announced_by` is the key under which it stands."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.value(item, announced_by) for item in value]
        if isinstance(value, bool) or not isinstance(value, str | int):
            return value
        word = secret_phrases.names_secret(announced_by)
        if word and is_secret(word.rule, Announced(str(value), "sign", quoted=isinstance(value, str))):
            self.count += 1
            return f"[redacted:{word.kind}]"
        return self.text(value) if isinstance(value, str) else value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        redacted: dict[str, Any] = {}
        for key, item in value.items():
            name = self.text(key)
            # Two keys that were secrets must not become one.
            while name != key and name in redacted:
                name += "+"
            redacted[name] = self.value(item, key)
        return redacted


def _parts(parts: Sequence[Any], said: str, desk: _Desk) -> list[Any]:
    """Parts redacted one by one; where a secret reaches over two, the first takes the whole redacted text.

    What is cut from the text of parts was counted with the content, which is that text.
    """
    counted = _Desk()
    redacted = [_part(part, desk, counted) for part in parts]
    texts = [part for part in redacted if _is_text(part)]
    if texts and " ".join(part["text"] for part in texts) != said:
        for place, part in enumerate(texts):
            part["text"] = "" if place else said
    return redacted


def _part(part: Any, desk: _Desk, counted: _Desk) -> Any:
    if not _is_text(part):
        return desk.value(part)
    rest = desk.value({name: value for name, value in part.items() if name != "text"})
    return {**part, **rest, "text": counted.text(part["text"])}


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _cut(text: str) -> tuple[str, int]:
    """One pass over `text`."""
    same_places = text if text.isascii() else text.translate(_WIDTHS)
    spans = _joined(chain(secret_formats.find(same_places), secret_phrases.find(same_places)))
    kept: list[str] = []
    place = count = 0
    for start, end, kind, quote in spans:
        kept += [text[place:start], f"{quote}[redacted:{kind}]{quote}"]
        place, count = end, count + 1
    return "".join([*kept, text[place:]]), count


def _joined(spans: Iterable[Span]) -> list[Span]:
    """In order of place; those that overlap as one, of the kind that was found first."""
    joined: list[tuple[int, Span]] = []
    for rank, span in sorted(enumerate(spans), key=lambda entry: entry[1].start):
        if joined and span.start < joined[-1][1].end:
            joined.append(_union(joined.pop(), (rank, span)))
        else:
            joined.append((rank, span))
    return [span for _, span in joined]


def _union(one: tuple[int, Span], other: tuple[int, Span]) -> tuple[int, Span]:
    rank, first = min(one, other)
    start, end = min(one[1].start, other[1].start), max(one[1].end, other[1].end)
    return rank, first._replace(start=start, end=end)


def _seems_random(run: str) -> bool:
    """By entropy (bits a character, Shannon 1948) and by how often letters, digits and capitals take turns."""
    counts = Counter(run)
    bits = -sum(count / len(run) * math.log2(count / len(run)) for count in counts.values())
    has_digit = any(map(str.isdigit, run))
    return has_digit and bits >= _LEAST_BITS and len(_CHANGES.findall(run)) >= max(_LEAST_CHANGES, len(run) // 8)
