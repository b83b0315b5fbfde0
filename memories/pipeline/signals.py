"""Signs of what a person means, found in its words without a model (rules.md, 1.4); pure.

The patterns are those of data/signals.toml, or of whoever replaces it.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from memories.pipeline import sentences

KINDS = ("correction", "reinforcement", "preference", "identity", "goal", "decision")

DEFAULT = Path(__file__).parent / "data" / "signals.toml"
# A longer turn is a document: its author speaks at its beginning and its end.
_LONGEST = 10_000
_LONGEST_SENTENCE = 1_000
_APOSTROPHES = str.maketrans("’‘ʼ＇", "''''")
# What may stand before a clause that opens a sentence.
_OPENING = re.compile(
    r"(?:\A|[,;:，；：—–-]\s{0,2}|\b(?:and|but|so|because|since|as|btw|by the way|well|ok(?:ay)?|honestly|actually|also"
    r"|please|hi|hello|hey|yes|no|oh)[,!]?\s)[\"'(*\s]{0,3}\Z",
    re.IGNORECASE,
)
_END = "(?:(?<![A-Za-z])|(?![A-Za-z]))"
_CLAUSE_FOLLOWS = re.compile(r"[^?？]*[,，;；]")


@dataclass(frozen=True)
class SignalMatch:
    """A sign and its place in the text."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class _Kind:
    name: str
    hints: tuple[str, ...]
    english: re.Pattern[str] | None
    chinese: re.Pattern[str] | None
    opening: re.Pattern[str] | None


@dataclass(frozen=True)
class Patterns:
    """What is looked for, of each kind, and what takes a match back."""

    kinds: tuple[_Kind, ...]
    guards: tuple[re.Pattern[str], ...]


def find(texts: Sequence[str], patterns: Patterns | None = None) -> list[str]:
    """The kinds of signs in any of `texts`, sorted, each once."""
    return sorted({found.kind for text in texts for found in matches(text, patterns)})


def matches(text: str, patterns: Patterns | None = None) -> list[SignalMatch]:
    """Every sign in `text`, in order; of the kinds in KINDS unless `patterns` has others.

    Of a text beyond 10,000 characters the first and last 5,000 are read.
    """
    patterns = patterns or default_patterns()
    found: list[SignalMatch] = []
    for offset, part in _read(text):
        own = sentences.own_words(part).translate(_APOSTROPHES)
        for start, end in sentences.spans(own):
            sentence = own[start : min(end, start + _LONGEST_SENTENCE)]
            found += (_moved(match, offset + start) for match in _in_sentence(sentence, patterns))
    return sorted(found, key=lambda match: (match.start, match.kind))


def straight(text: str) -> str:
    """`text` with the apostrophes that patterns are written with."""
    return text.translate(_APOSTROPHES)


def load(source: Path | Mapping[str, Any]) -> Patterns:
    """Patterns from a file or a mapping like data/signals.toml; ValueError or KeyError when it is none.

    They run on what anybody writes: whoever replaces them keeps quantifiers bounded.
    """
    given = tomllib.loads(source.read_text(encoding="utf-8")) if isinstance(source, Path) else source
    try:
        kinds = tuple(_kind(entry) for entry in given["kind"])
        guards = tuple(re.compile(pattern, re.IGNORECASE) for pattern in given.get("guards", {}).get("before", []))
    except re.error as error:
        raise ValueError(f"Not a regular expression: {error}") from error
    return Patterns(kinds, guards)


@cache
def default_patterns() -> Patterns:
    """Those that come with the hub."""
    return load(DEFAULT)


def _kind(entry: Mapping[str, Any]) -> _Kind:
    return _Kind(
        name=entry["name"],
        hints=tuple(entry.get("hints", [""])),
        english=_one_of(entry.get("english", []), before="(?<![A-Za-z0-9'])"),
        chinese=_one_of(entry.get("chinese", []), end=""),
        opening=_one_of(entry.get("english_opening", [])),
    )


def _one_of(patterns: Sequence[str], *, before: str = "", end: str = _END) -> re.Pattern[str] | None:
    """One pattern for all: trying them one by one takes several times as long."""
    for pattern in patterns:
        re.compile(pattern)
    return re.compile(f"{before}(?:{'|'.join(patterns)}){end}", re.IGNORECASE) if patterns else None


def _read(text: str) -> Iterator[tuple[int, str]]:
    if len(text) <= _LONGEST:
        yield 0, text
    else:
        yield 0, text[: _LONGEST // 2]
        yield len(text) - _LONGEST // 2, text[-_LONGEST // 2 :]


def _in_sentence(sentence: str, patterns: Patterns) -> Iterator[SignalMatch]:
    """At most one of each kind."""
    question, lower = sentences.is_question(sentence), sentence.lower()
    for kind in patterns.kinds:
        if not any(hint in lower for hint in kind.hints):
            continue
        stated = (span for span in _stated(sentence, kind) if not question or _is_clause(sentence, *span))
        candidates = chain(stated, _opening(sentence, kind))
        meant = (span for span in candidates if not _is_guarded(sentence[: span[0]], patterns.guards))
        yield from (SignalMatch(kind.name, *span) for span in islice(meant, 1))


def _stated(sentence: str, kind: _Kind) -> Iterator[tuple[int, int]]:
    chinese = None if sentence.isascii() else kind.chinese
    for pattern in filter(None, (kind.english, chinese)):
        yield from (found.span() for found in pattern.finditer(sentence))


def _opening(sentence: str, kind: _Kind) -> Iterator[tuple[int, int]]:
    places = kind.opening.finditer(sentence) if kind.opening else ()
    yield from (found.span() for found in places if _opens(sentence[: found.start()]))


def _opens(before: str) -> bool:
    return _OPENING.search(before) is not None


def _is_clause(sentence: str, start: int, end: int) -> bool:
    """In a question: it opens the sentence and another clause asks."""
    return _opens(sentence[:start]) and _CLAUSE_FOLLOWS.match(sentence, end) is not None


def _is_guarded(before: str, guards: Iterable[re.Pattern[str]]) -> bool:
    return any(guard.search(before) for guard in guards)


def _moved(match: SignalMatch, offset: int) -> SignalMatch:
    return SignalMatch(match.kind, match.start + offset, match.end + offset)
