"""Replace secrets in a message by [redacted:<kind>] before anything stores or reads it; pure.

Only what is certain is replaced (rules.md, 1.2). What looks_secret() finds only holds a fact for review.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from memories.text.secrets import cards, effort, fields, formats, phrases
from memories.text.secrets.formats import Span
from memories.text.secrets.values import Announced, announces, can_be_value

# Replacing one secret can expose another. Only text that was made for it needs more passes.
_MOST_PASSES = 4
# Full-width letters, digits and signs to their ASCII form, curly quotes to straight ones, one for one: positions stay.
# The full-width comma and stop are not in it, because they end a value.
_WIDTHS = {0xFF01 + offset: 0x21 + offset for offset in range(94) if chr(0x21 + offset) not in "!(),.;?"} | {
    ord(quote): '"' for quote in "“”„‟「」『』"
}
_WIDTHS |= {ord("‘"): "'", ord("’"): "'", 0x3000: " ", 0xA0: " "}

_RUN = re.compile(r"[A-Za-z0-9+/=_.~-]{20,}")
_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z])")
_CHANGES = re.compile(r"[A-Za-z][0-9]|[0-9][A-Za-z]|[a-z][A-Z]")
# orderId, order_id
_WORDS_IN_KEY = re.compile(r"[_.-]|(?<=[a-z])(?=[A-Z])")
_REST = re.compile(r"[A-Za-z0-9+/=_.~%-]*+")
_LEAST_BITS = 3.0
_LEAST_CHANGES = 4


@dataclass(frozen=True)
class Redacted:
    """A message's fields without secrets, and how many secrets they had."""

    content: str
    parts: list[Any] | None
    tool_calls: list[Any] | None
    tool_call_id: str
    metadata: dict[str, Any]
    name: str
    count: int


def redact_text(text: str) -> tuple[str, int]:
    """`text` with a mark in place of each secret, and how many there were. A second call changes nothing.

    Time is linear in the length of the text, and bounded for a request, however many texts it has: see effort.py.
    Errors: TooManySecrets.
    """
    # Many small texts cost as well.
    effort.spend(1)
    total = 0
    for _ in range(_MOST_PASSES):
        marks = _marks(text)
        if not marks:
            break
        text, total = _marked(text, marks), total + len(marks)
    return text, total


def redact_parts(texts: Sequence[str], between: str = "\n\n") -> list[str]:
    """`texts` redacted as the one text that they make: a secret may begin in one of them and end in another, as a key
    does whose lines are paragraphs. Its mark stands where it begins.

    Errors: TooManySecrets.
    """
    effort.spend(1)
    text = between.join(texts)
    edges: list[int] = []
    at = 0
    for one in texts:
        edges += (at, at + len(one))
        at += len(one) + len(between)
    for _ in range(_MOST_PASSES):
        marks = _marks(text)
        if not marks:
            break
        text, edges = _marked(text, marks), _moved(edges, marks)
    return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def foresee(texts: Iterable[str]) -> None:
    """Take from the budget what redacting these texts will need at least, without doing it: a tenth of the time, or
    less. Errors: TooManySecrets."""
    for text in texts:
        # What has a secret is looked through again.
        effort.begin(2 * len(text))
        effort.spend(2 * (phrases.count_places(text) + formats.count_places(text)) + 1)


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
    redactor = _Redactor()
    redacted = redactor.text(content)
    return Redacted(
        content=redacted,
        parts=None if parts is None else _parts(parts, redacted, redactor),
        tool_calls=None if tool_calls is None else redactor.value(tool_calls),
        tool_call_id=redactor.text(tool_call_id) if tool_call_id else "",
        metadata=redactor.value(dict(metadata or {})),
        name=redactor.text(name) if name else "",
        count=redactor.count,
    )


def looks_secret(text: str) -> bool:
    """Whether `text` has an unbroken run of 20 characters or more that seems random, such as a hash.

    Long words, numbers, paths of words and UUIDs, which are names of things, do not count.
    """
    return any(_seems_random(run) for run in _RUN.findall(_UUID.sub(" ", text)))


@dataclass
class _Redactor:
    """Redacts JSON at any depth, and counts secrets."""

    count: int = 0

    def text(self, text: str) -> str:
        redacted, count = redact_text(text)
        self.count += count
        return redacted

    def value(self, value: Any, announced_by: str = "") -> Any:
        """`value` redacted; `announced_by` is its key."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.value(item, announced_by) for item in value]
        if isinstance(value, bool) or not isinstance(value, str | int):
            return value
        if (named := _named(value, announced_by)) is not None:
            self.count += 1
            return named
        if cards.is_number(value):
            # Its key says whether it is a card's or an order's.
            return self._number(value, announced_by)
        return self.text(value) if isinstance(value, str) else value

    def _number(self, value: str | int, announced_by: str) -> str | int:
        key = _WORDS_IN_KEY.sub(" ", announced_by)
        if not any(cards.find(f"{key}: {value}")):
            return value
        self.count += 1
        return "[redacted:card]"

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        redacted: dict[str, Any] = {}
        for key, item in value.items():
            name = self.text(key)
            # Two keys that were secrets must not become the same key.
            while name != key and name in redacted:
                name += "+"
            redacted[name] = self.value(item, key)
        return redacted


def _named(value: str | int, key: str) -> str | None:
    """The value without the secret that its key names; None if it names none. "Bearer" stays before a token."""
    word = phrases.names_secret(key)
    if word is None:
        return None
    scheme = phrases.SCHEME.match(value) if isinstance(value, str) else None
    before = scheme[0] if scheme else ""
    found = Announced(str(value).removeprefix(before), "sign", quoted=isinstance(value, str))
    is_named = can_be_value(found.value) and (
        announces(word.rule, found)
        or fields.is_value("json", word.rule, found, name=phrases.before_word(key), sign=":")
    )
    return f"{before}[redacted:{word.kind}]" if is_named else None


def _parts(parts: Sequence[Any], content: str, redactor: _Redactor) -> list[Any]:
    """Parts redacted one by one. If a secret spans two of them, the first takes the whole redacted content."""
    # The secrets of these texts were counted with the content, which consists of them.
    uncounted = _Redactor()
    redacted: list[Any] = []
    texts: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            rest = redactor.value({name: value for name, value in part.items() if name != "text"})
            texts.append({**part, **rest, "text": uncounted.text(part["text"])})
            redacted.append(texts[-1])
        else:
            redacted.append(redactor.value(part))
    if texts and "\n\n".join(part["text"] for part in texts) != content:
        for place, part in enumerate(texts):
            part["text"] = "" if place else content
    return redacted


def _marks(text: str) -> list[tuple[int, int, str]]:
    """Where each secret begins and ends, in their order, and the mark that takes its place."""
    effort.begin(len(text))
    same_places = text if text.isascii() else text.translate(_WIDTHS)
    spans = _whole(_joined(chain(formats.find(same_places), phrases.find(same_places))), same_places)
    effort.spend(len(spans))
    return [(start, end, f"{quote}[redacted:{kind}]{quote}") for start, end, kind, quote in spans]


def _marked(text: str, marks: Iterable[tuple[int, int, str]]) -> str:
    kept: list[str] = []
    place = 0
    for start, end, mark in marks:
        kept += [text[place:start], mark]
        place = end
    return "".join([*kept, text[place:]])


def _moved(edges: Iterable[int], marks: Sequence[tuple[int, int, str]]) -> list[int]:
    """These places of a text, in their order, in the marked one: what is inside of a secret is behind its mark."""
    moved = []
    at = shift = 0
    for edge in edges:
        while at < len(marks) and marks[at][1] <= edge:
            start, end, mark = marks[at]
            shift += len(mark) - (end - start)
            at += 1
        is_inside = at < len(marks) and marks[at][0] < edge
        moved.append(marks[at][0] + len(marks[at][2]) + shift if is_inside else edge + shift)
    return moved


def _joined(spans: Iterable[Span]) -> list[Span]:
    """In order of their start. Spans that overlap become one, of the kind that was found first."""
    joined: list[tuple[int, Span]] = []
    for order, span in sorted(enumerate(spans), key=lambda entry: entry[1].start):
        if not joined or span.start >= joined[-1][1].end:
            joined.append((order, span))
            continue
        last = joined[-1][1]
        first, kept = min(joined[-1], (order, span))
        joined[-1] = first, kept._replace(start=last.start, end=max(last.end, span.end))
    return [span for _, span in joined]


def _whole(spans: list[Span], text: str) -> list[Span]:
    """Spans that ended at the longest value that is read, up to the end of their run."""
    whole: list[Span] = []
    for span in spans:
        if whole and span.start < whole[-1].end:
            continue
        is_cut = span.end - span.start >= fields.LONGEST
        whole.append(span._replace(end=_REST.match(text, span.end).end()) if is_cut else span)  # type: ignore[union-attr]
    return whole


def _seems_random(run: str) -> bool:
    """By entropy (bits a character, Shannon 1948) and by how often letters, digits and capitals alternate."""
    counts = Counter(run)
    bits = -sum(count / len(run) * math.log2(count / len(run)) for count in counts.values())
    has_digit = any(map(str.isdigit, run))
    return has_digit and bits >= _LEAST_BITS and len(_CHANGES.findall(run)) >= max(_LEAST_CHANGES, len(run) // 8)
