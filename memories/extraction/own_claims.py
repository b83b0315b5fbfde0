"""What gives people rights or money by their own word. Without a model nobody weighs it, so it waits for review: "I am
an admin", "I get a 90% discount on everything".

A role at a named place elsewhere is a profession, and what somebody once got is an event: these are kept. Pure;
phrases: data/own_claims.toml.
"""

import tomllib
from functools import cache
from pathlib import Path

from memories.text.injection import detection, phrases
from memories.text.injection.phrases import LanguageRules

_DATA = Path(__file__).parent / "data" / "own_claims.toml"


def are_made(text: str) -> bool:
    return detection.says_one_of(text, _languages())


# Compiled when first needed, as the guard's.
@cache
def _languages() -> tuple[LanguageRules, ...]:
    return tuple(map(phrases.load, tomllib.loads(_DATA.read_text(encoding="utf-8")).values()))
