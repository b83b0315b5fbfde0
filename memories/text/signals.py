"""Signals: kinds of statements found by patterns, without a model (rules.md, 1.4); pure.

data/signals.toml has the patterns of the hub. A tenant can replace those of a kind (signal_phrases.py).
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from memories.text import sentences

KINDS = ("correction", "reinforcement", "preference", "identity", "goal", "decision")

DEFAULT = Path(__file__).parent / "data" / "signals.toml"
# A longer turn is a document: its author speaks at its beginning and its end.
_LONGEST = 10_000
_LONGEST_SENTENCE = 1_000
_APOSTROPHES = str.maketrans("’‘ʼ＇", "''''")
# What can precede a clause that opens a sentence.
_OPENING = re.compile(
    r"(?:\A|[,;:，；：—–-]\s{0,2}|\b(?:and|but|so|because|since|as|btw|by the way|well|ok(?:ay)?|honestly|actually|also"
    r"|please|hi|hello|hey|yes|no|oh)[,!]?\s)[\"'(*\s]{0,3}\Z",
    re.IGNORECASE,
)
_END = "(?:(?<![A-Za-z])|(?![A-Za-z]))"
_CLAUSE_FOLLOWS = re.compile(r"[^?？]*[,，;；]")


@dataclass(frozen=True)
class SignalMatch:
    """A signal and its position in the text."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class _SignalKind:
    name: str
    hints: tuple[str, ...]
    english: re.Pattern[str] | None
    chinese: re.Pattern[str] | None
    opening: re.Pattern[str] | None


@dataclass(frozen=True)
class Patterns:
    """The patterns of each kind, and those that cancel a match when they precede it."""

    kinds: tuple[_SignalKind, ...]
    guards: tuple[re.Pattern[str], ...]


def find(texts: Sequence[str], patterns: Patterns | None = None) -> list[str]:
    """The kinds of signals in any of `texts`, sorted, each once."""
    return sorted({found.kind for text in texts for found in matches(text, patterns)})


def matches(text: str, patterns: Patterns | None = None) -> list[SignalMatch]:
    """Every signal in `text`, in order; at most one of each kind in a sentence.

    Of a text beyond 10,000 characters the first and last 5,000 are read.
    """
    patterns = patterns or default_patterns()
    signals: list[SignalMatch] = []
    half = _LONGEST // 2
    parts = [(0, text)] if len(text) <= _LONGEST else [(0, text[:half]), (len(text) - half, text[-half:])]
    for offset, part in parts:
        spoken = sentences.own_words(part).translate(_APOSTROPHES)
        for start, end in sentences.spans(spoken):
            sentence = spoken[start : min(end, start + _LONGEST_SENTENCE)]
            signals += _in_sentence(sentence, patterns, offset + start)
    return sorted(signals, key=lambda match: (match.start, match.kind))


def _in_sentence(sentence: str, patterns: Patterns, offset: int) -> Iterator[SignalMatch]:
    question, lower = sentences.is_question(sentence), sentence.lower()
    for kind in patterns.kinds:
        if not any(hint in lower for hint in kind.hints):
            continue
        for start, end in _candidates(sentence, kind, question=question):
            if not any(guard.search(sentence[:start]) for guard in patterns.guards):
                yield SignalMatch(kind.name, offset + start, offset + end)
                break


def _candidates(sentence: str, kind: _SignalKind, *, question: bool) -> Iterator[tuple[int, int]]:
    for pattern in filter(None, (kind.english, None if sentence.isascii() else kind.chinese)):
        for found in pattern.finditer(sentence):
            # In a question only a clause that opens the sentence counts, and only if another clause asks.
            if not question or (_opens(sentence, found.start()) and _CLAUSE_FOLLOWS.match(sentence, found.end())):
                yield found.span()
    if kind.opening:
        yield from (found.span() for found in kind.opening.finditer(sentence) if _opens(sentence, found.start()))


def _opens(sentence: str, start: int) -> bool:
    return _OPENING.search(sentence[:start]) is not None


def normalise_apostrophes(text: str) -> str:
    """`text` with the apostrophe that patterns use."""
    return text.translate(_APOSTROPHES)


def load(source: Path | Mapping[str, Any]) -> Patterns:
    """Patterns from a file or a mapping like data/signals.toml. Errors: ValueError, KeyError.

    Patterns run on hostile text: keep quantifiers bounded.
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
    return load(DEFAULT)


def _kind(entry: Mapping[str, Any]) -> _SignalKind:
    return _SignalKind(
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
