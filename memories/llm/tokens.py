"""Counting tokens by a tokenizer, one of memories.llm.tokenizers.TOKENIZERS (KeyError for another one).

Exact, but for runs of more than 250,000 blanks, which are counted in parts (off by a token or two per part). What looks
like a special token counts as the plain text that it is. Thread-safe. About 1 s per MB at worst, 0.1 s as a rule.
"""

import re
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from operator import add
from threading import Thread

from memories.llm import vocabularies
from memories.llm.tokenizers import CONSERVATIVE, DEFAULT_TOKENIZER, TEMPLATE_TOKENS, VOCABULARIES
from memories.llm.vocabularies import DIGITS_APART

# How many tokens a text has in each of the vocabularies behind a tokenizer: one number, or several for `conservative`.
Counts = tuple[int, ...]

# tiktoken panics, with something that is no Exception, on a million blanks in a row; a message may hold them.
_BLANKS_AT_ONCE = 250_000
_BLANKS = re.compile(r"\s+")
# About 10 MB when full; then it begins anew.
_MOST_CACHED = 65_536
_cached: dict[tuple[str, bytes], Counts] = {}
# Tokenizers that a thread loads, or has loaded.
_begun: set[str] = set()


def preload() -> None:
    """Load the default tokenizer now (0.2-0.5 s), so that no request waits for it."""
    vocabularies.counter(DEFAULT_TOKENIZER)


def is_loaded(tokenizer: str) -> bool:
    """Whether a text can be counted at once; if not, its vocabularies are loaded by another thread from now on."""
    if all(map(vocabularies.is_loaded, _behind(tokenizer))):
        return True
    if tokenizer not in _begun:
        _begun.add(tokenizer)
        Thread(target=count, args=("", tokenizer), name="tokenizer", daemon=True).start()
    return False


def count(text: str, tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """How many tokens `text` has; for `conservative` the most that it has in any vocabulary, and a template's."""
    return max(counts(text, tokenizer)) + template(tokenizer)


def count_once(text: str, tokenizer: str = DEFAULT_TOKENIZER) -> int:
    """The same, remembered: for texts that are told again and again."""
    return max(counts_once(text, tokenizer)) + template(tokenizer)


def counts(text: str, tokenizer: str = DEFAULT_TOKENIZER) -> Counts:
    """The text in each vocabulary behind the tokenizer."""
    counters = [vocabularies.counter(name) for name in _behind(tokenizer)]
    parts = list(_parts(text))
    return tuple(sum(map(one, parts)) for one in counters)


def counts_once(text: str, tokenizer: str = DEFAULT_TOKENIZER) -> Counts:
    """The same, remembered: for lines that are told again and again. Kept is a digest, not the text."""
    key = (tokenizer, blake2b(text.encode(), digest_size=16).digest())
    found = _cached.get(key)
    if found is None:
        if len(_cached) >= _MOST_CACHED:
            _cached.clear()
        found = _cached[key] = counts(text, tokenizer)
    return found


def together(one: Counts, other: Counts) -> Counts:
    """Two texts, where no token continues from one into the other."""
    if len(one) == 1:
        return (one[0] + other[0],)
    return tuple(map(add, one, other))


def template(tokenizer: str) -> int:
    """Tokens that `conservative` adds for what a chat template puts around a message; 0 for the others."""
    return TEMPLATE_TOKENS if tokenizer == CONSERVATIVE else 0


@cache
def _behind(tokenizer: str) -> tuple[str, ...]:
    """The vocabularies that decide. Which are installed does not change while a process lives."""
    if tokenizer != CONSERVATIVE:
        return (tokenizer,)
    present = [one for one in VOCABULARIES.values() if one.is_installed]
    others = any(one.package for one in present)
    return (*(one.name for one in present), *(() if others else (DIGITS_APART,)))


def _parts(text: str) -> Iterator[str]:
    start = 0
    if len(text) > _BLANKS_AT_ONCE:
        for blanks in _BLANKS.finditer(text):
            for cut in range(blanks.start() + _BLANKS_AT_ONCE, blanks.end(), _BLANKS_AT_ONCE):
                yield text[start:cut]
                start = cut
    yield text[start:]
