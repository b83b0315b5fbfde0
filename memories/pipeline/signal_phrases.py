"""A tenant's own signs: plain phrases that replace the hub's patterns of a kind (rules.md, 1.4); pure.

Phrases and not regular expressions: they run on what anybody writes, and no phrase can take long.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from memories.pipeline import signals
from memories.pipeline.signals import KINDS, Patterns

Phrases = Mapping[str, Sequence[str]]

MOST_PHRASES = 100
SHORTEST, LONGEST = 2, 80
GAP = "…"
# What stands for some words of the same clause.
_ANY_WORDS = r"[^,.;:!?，。；：！？]{0,40}?"


def patterns_of(phrases: Phrases) -> Patterns:
    """The patterns for a tenant with these phrases: for kinds that have some only they count, else the hub's own."""
    return _patterns(tuple((kind, tuple(said)) for kind, said in sorted(phrases.items()) if said))


def parse(text: str) -> dict[str, list[str]]:
    """Phrases by kind from lines like `goal: our target is … this year`. Errors: ValueError, naming the line."""
    phrases: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            kind, phrase = _parsed(line, f"Line {number}")
            phrases.setdefault(kind, []).extend([phrase] if phrase not in phrases.get(kind, []) else [])
    if sum(map(len, phrases.values())) > MOST_PHRASES:
        raise ValueError(f"There may be at most {MOST_PHRASES} phrases.")
    return phrases


def shown(phrases: Phrases) -> str:
    """The lines that parse() reads as these phrases."""
    return "\n".join(f"{kind}: {phrase}" for kind in KINDS for phrase in phrases.get(kind, []))


def _parsed(line: str, where: str) -> tuple[str, str]:
    kind, colon, phrase = line.replace("：", ":", 1).partition(":")
    kind, phrase = kind.strip().lower(), " ".join(phrase.replace("...", GAP).split())
    if not colon or kind not in KINDS:
        raise ValueError(f"{where}: begin with one of {', '.join(KINDS)}, and a colon.")
    if not SHORTEST <= len(phrase) <= LONGEST:
        raise ValueError(f"{where}: a phrase has {SHORTEST} to {LONGEST} characters.")
    before, _, after = phrase.partition(GAP)
    if GAP in phrase and (GAP in after or not before.strip() or not after.strip()):
        raise ValueError(f"{where}: {GAP} may stand once, between words.")
    return kind, phrase


@lru_cache(maxsize=256)
def _patterns(phrases: tuple[tuple[str, tuple[str, ...]], ...]) -> Patterns:
    hubs = signals.default_patterns()
    own = {kind.name: kind for kind in signals.load({"kind": list(_entries(phrases))}).kinds}
    return replace(hubs, kinds=tuple(own.get(kind.name, kind) for kind in hubs.kinds))


def _entries(phrases: Sequence[tuple[str, Sequence[str]]]) -> Iterator[dict[str, object]]:
    for kind, said in phrases:
        yield {
            "name": kind,
            "english": [_pattern(phrase) for phrase in said if _has_spaces(phrase)],
            "chinese": [_pattern(phrase) for phrase in said if not _has_spaces(phrase)],
        }


def _has_spaces(phrase: str) -> bool:
    """Whether it is of a script that parts words: then it touches no letter on either side."""
    return signals.straight(phrase).replace(GAP, "").isascii()


def _pattern(phrase: str) -> str:
    words = (r"\s{1,3}".join(map(re.escape, signals.straight(part).split())) for part in phrase.split(GAP))
    return _ANY_WORDS.join(words)
