"""Secrets that their form identifies: keys of providers, private keys, tokens, passwords in addresses, cards; pure."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from memories.text.secrets import cards, effort

_MOST_ALIKE = 4
_LONGEST = 400


class Span(NamedTuple):
    """The position of a secret, its kind, and the quotes that its mark needs."""

    start: int
    end: int
    kind: str
    quote: str = ""


@dataclass(frozen=True)
class _Format:
    kind: str
    markers: tuple[str, ...]
    reach: int
    pattern: re.Pattern[str]
    group: str | int


def _format(entry: dict[str, Any]) -> _Format:
    pattern = re.compile(f"(?<![A-Za-z0-9_])(?:{entry['pattern']})(?![A-Za-z0-9_])")
    group = "secret" if "secret" in pattern.groupindex else 0
    return _Format(entry["kind"], tuple(entry["marker"]), entry.get("reach", 0), pattern, group)


DATA = tomllib.loads((Path(__file__).parent / "data" / "secrets.toml").read_text(encoding="utf-8"))
_FORMATS = [_format(entry) for entry in DATA["format"]]
_BY_MARKER = [(marker, place) for place, form in enumerate(_FORMATS) for marker in form.markers]

_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    # Up to the next five hyphens; a truncated block ends with its last whole line.
    r"(?:(?P<body>(?:[^-]|-(?!----)){1,20000}+)-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"|(?P<cut>(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{16,128}){1,200}))"
)
# Distinguishes a key, or the beginning of one (they begin alike), from words about keys.
_KEY_TEXT = re.compile(r"[A-Za-z0-9+/=]{32}|(?:\A|\s|\\[nr])(?:MI[A-Z]|MHcC|b3Bl|[A-Za-z0-9+/=]{16})")
# name:password@ of an address; what looks like a port is no password.
_IN_ADDRESS = re.compile(
    r"""://(?P<name>[^\s/?#@:"'`<>\\\[]{0,100}):(?!\d{1,5}(?:[/?#]|$))(?P<password>[^\s/"'`<>\\]{1,200})@(?=[\w\[.-])"""
)
_NO_PASSWORD = re.compile(
    r"(?:[*xX.•_]+|[$%]?[{<(\[].*|\$\w+|%\w+%|pass(?:word|wd)?|pwd|pw|secret|token|your\W.*|your_.*)\Z"
)


def find(text: str) -> Iterator[Span]:
    """Every secret that its form identifies; spans can overlap, the more exact kind comes first."""
    yield from _private_keys(text)
    # All markers in one pass: nearly every text has none of them.
    for place in sorted({place for marker, place in _BY_MARKER if marker in text}):
        yield from _matches(_FORMATS[place], text)
    yield from _in_addresses(text)
    yield from (Span(start, end, "card") for start, end in cards.find(text))


def count_places(text: str) -> int:
    """In how many places find() would look."""
    return sum(text.count(marker) for marker, _ in _BY_MARKER) + text.count("://") + cards.count_places(text)


def places(text: str, words: Iterable[str]) -> list[int]:
    """Where any of `words` begins in `text`, in order; far faster than a regular expression.

    Errors: TooManySecrets.
    """
    found = set()
    for word in words:
        place = text.find(word)
        while place >= 0:
            found.add(place)
            place = text.find(word, place + 1)
    effort.spend(len(found))
    return sorted(found)


def _matches(form: _Format, text: str) -> Iterator[Span]:
    done = 0
    marked = places(text, form.markers)
    effort.start_clock()
    for place in marked:
        effort.examine()
        if place < done:
            # Inside the previous match. Searching it again for each marker would take quadratic time.
            continue
        if form.reach:
            found = form.pattern.search(text, max(0, place - form.reach), place + _LONGEST)
        else:
            found = form.pattern.match(text, place)
        # sk-xxxxxxxxxxxxxxxxxxxxxxxx shows what a key looks like.
        if found and len(set(found[form.group][-16:])) > _MOST_ALIKE:
            done = found.end()
            yield Span(*found.span(form.group), form.kind)


def _private_keys(text: str) -> Iterator[Span]:
    if "PRIVATE KEY" not in text:
        return
    for found in _PEM.finditer(text):
        if found["cut"] or _KEY_TEXT.search(found["body"]):
            yield Span(*found.span(), "private_key")


def _in_addresses(text: str) -> Iterator[Span]:
    if "://" not in text:
        return
    for found in _IN_ADDRESS.finditer(text):
        if not _NO_PASSWORD.match(found["password"]):
            yield Span(found.start("name"), found.end("password"), "url_credentials")
