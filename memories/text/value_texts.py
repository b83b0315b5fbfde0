"""The texts of a value that are embedded: all of it, or what paths name. Pure.

A path is names with periods between them: `title`, `author.name`. `items[0]` is an element of a list, `items[-1]` the
last one, `items[*]` and `*` all, `{title,author.name}` several; `$` and an empty path are the whole value.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

WHOLE = ("", "$")
# Of one item; further texts are not embedded.
MOST_TEXTS = 32
MOST_PATHS = 32
# Places of a value that the paths of one item may come upon: each step with braces can double them.
MOST_VISITS = 20_000
LONGEST_PATH = 200
# Of a text the first 1,000 characters are embedded: no more than this is collected.
_LONGEST = 2_000
_STEP = re.compile(r"\[(?P<index>[^\[\]]*)\]|\{(?P<several>[^{}]*)\}|(?P<name>[^.\[\]{}]+)|(?P<gap>\.)")


def of_value(value: Mapping[str, Any], paths: Sequence[str] | None) -> list[str]:
    """The texts of a value at these paths, each once; None: all of it as one text; no paths: none."""
    named = [""] if paths is None else paths
    visits = count()
    texts = [text for path in named for text in _at(value, path, visits)]
    return [text for text in dict.fromkeys(texts) if text.strip()][:MOST_TEXTS]


def digest(texts: Sequence[str]) -> bytes | None:
    """SHA-256 of the texts in their order; None without any."""
    return hashlib.sha256("\0".join(texts).encode()).digest() if texts else None


def _at(value: Any, path: str, visits: Iterator[int]) -> Iterator[str]:
    if path in WHOLE:
        yield _written(value)
        return
    steps = _steps(path)
    if steps is not None:
        yield from (text for found in _found(value, steps, visits) if (text := _text(found)) is not None)


def _steps(path: str) -> list[tuple[str, str]] | None:
    """(kind, text) of each step; None for a path that cannot be read."""
    steps, at = [], 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        at = step.end()
        if step.lastgroup and step.lastgroup != "gap":
            steps.append((step.lastgroup, step[step.lastgroup]))
    return steps


def _found(value: Any, steps: Sequence[tuple[str, str]], visits: Iterator[int]) -> Iterator[Any]:
    if next(visits) >= MOST_VISITS:
        return
    if not steps:
        yield value
        return
    (kind, text), rest = steps[0], steps[1:]
    if kind == "several":
        for path in text.split(","):
            inner = _steps(path.strip())
            for found in _found(value, inner, visits) if inner else ():
                yield from _found(found, rest, visits)
        return
    for found in _next(value, kind, text):
        yield from _found(found, rest, visits)


def _next(value: Any, kind: str, text: str) -> Iterator[Any]:
    if text == "*":
        yield from value.values() if isinstance(value, dict) and kind == "name" else ()
        yield from value if isinstance(value, list) else ()
    elif kind == "name":
        if isinstance(value, dict) and text in value:
            yield value[text]
    elif isinstance(value, list) and re.fullmatch(r"-?\d{1,9}", text) and -len(value) <= int(text) < len(value):
        yield value[int(text)]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _written(value: Any) -> str:
    """The value for reading: a line for each text or number with its name; one text alone stands without."""
    lines: list[tuple[str, str]] = []
    length = 0
    for name, text in _leaves(value, ""):
        lines.append((name, text))
        length += len(name) + len(text)
        if length > _LONGEST:
            break
    if len(lines) == 1:
        return lines[0][1]
    return "\n".join(f"{name}: {text}" if name else text for name, text in lines)


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _leaves(value[key], key)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one, name)
    elif value is not None and not isinstance(value, bool):
        yield name, str(value)


def strings(value: Any) -> Iterator[str]:
    """Every string of a value, names included."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, str):
        yield value
