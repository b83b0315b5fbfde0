"""A tenant's own signals: plain phrases that replace the hub's patterns of a kind (rules.md, 1.4); pure.

They are not regular expressions, because they run on hostile text: no phrase can take long.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from memories.text import signals
from memories.text.signals import KINDS, Patterns

Phrases = Mapping[str, Sequence[str]]

MOST_PHRASES = 100
SHORTEST, LONGEST = 2, 80
GAP = "…"
# The pattern for GAP: some words of the same clause.
_ANY_WORDS = r"[^,.;:!?，。；：！？]{0,40}?"


def patterns_of(phrases: Phrases) -> Patterns:
    """The patterns for a tenant: those of its phrases for kinds that have some, those of the hub for the others."""
    return _patterns(tuple((kind, tuple(texts)) for kind, texts in sorted(phrases.items()) if texts))


@lru_cache(maxsize=256)
def _patterns(phrases: tuple[tuple[str, tuple[str, ...]], ...]) -> Patterns:
    hubs = signals.default_patterns()
    own = {kind.name: kind for kind in signals.load({"kind": [_entry(*entry) for entry in phrases]}).kinds}
    return replace(hubs, kinds=tuple(own.get(kind.name, kind) for kind in hubs.kinds))


def _entry(kind: str, phrases: Sequence[str]) -> dict[str, object]:
    """The phrases of a kind as an entry of signals.toml: a Latin phrase matches whole words, others match anywhere."""
    written = [signals.normalise_apostrophes(phrase) for phrase in phrases]
    spaced = {phrase: phrase.replace(GAP, "").isascii() for phrase in written}
    return {
        "name": kind,
        "english": [_pattern(phrase) for phrase in written if spaced[phrase]],
        "chinese": [_pattern(phrase) for phrase in written if not spaced[phrase]],
    }


def _pattern(phrase: str) -> str:
    return _ANY_WORDS.join(r"\s{1,3}".join(map(re.escape, part.split())) for part in phrase.split(GAP))


def parse(text: str) -> dict[str, list[str]]:
    """Phrases by kind from lines like `goal: our target is … this year`. Errors: ValueError, naming the line."""
    return _gathered((line, f"Line {number}") for number, line in enumerate(text.splitlines(), start=1) if line.strip())


def checked(phrases: Phrases) -> dict[str, list[str]]:
    """The same from phrases by kind. Errors: ValueError, naming the kind's phrase by its number."""
    return _gathered(
        (f"{kind}: {phrase}", f"{kind} {number}")
        for kind, texts in phrases.items()
        for number, phrase in enumerate(texts, start=1)
    )


def _gathered(lines: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    phrases: dict[str, list[str]] = {}
    for line, where in lines:
        kind, colon, phrase = line.replace("：", ":", 1).partition(":")
        kind, phrase = kind.strip().lower(), " ".join(phrase.replace("...", GAP).split())
        if not colon or kind not in KINDS:
            raise ValueError(f"{where}: begin with one of {', '.join(KINDS)}, and a colon.")
        if not SHORTEST <= len(phrase) <= LONGEST:
            raise ValueError(f"{where}: a phrase has {SHORTEST} to {LONGEST} characters.")
        before, _, after = phrase.partition(GAP)
        if GAP in phrase and (GAP in after or not before.strip() or not after.strip()):
            raise ValueError(f"{where}: {GAP} may stand once, between words.")
        phrases.setdefault(kind, []).extend([phrase] if phrase not in phrases.get(kind, []) else [])
    if sum(map(len, phrases.values())) > MOST_PHRASES:
        raise ValueError(f"There may be at most {MOST_PHRASES} phrases.")
    return phrases


def shown(phrases: Phrases) -> str:
    """The lines that parse() reads as these phrases."""
    return "\n".join(f"{kind}: {phrase}" for kind in KINDS for phrase in phrases.get(kind, []))
