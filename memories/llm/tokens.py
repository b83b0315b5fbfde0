"""Counting tokens; the only module that imports tiktoken, whose files memoryhub.tokenizer_cache puts in place."""

import re
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b

import tiktoken

DEFAULT_TOKENIZER = "o200k_base"
TOKENIZERS = (DEFAULT_TOKENIZER, "cl100k_base")

# tiktoken panics, with something that is no Exception, on a million blanks in a row; a message may hold them.
_BLANKS_AT_ONCE = 250_000
_BLANKS = re.compile(r"\s+")
# About 10 MB when full; then it begins anew.
_MOST_CACHED = 65_536
_cached: dict[tuple[str, bytes], int] = {}


def warm() -> None:
    """Load the default encoding now (0.2-0.5 s), so that no request waits for it."""
    _encoder(DEFAULT_TOKENIZER)


def count(text: str, encoding: str = DEFAULT_TOKENIZER) -> int:
    """How many tokens `text` has; what looks like a special token counts as the plain text that it is.

    Exact, but for runs of more than 250,000 blanks, counted in parts (off by a token or two per part).
    `encoding` is one of TOKENIZERS (KeyError otherwise). Thread-safe. About 1 s per MB at worst, 0.1 s as a rule.
    """
    encoder = _encoder(encoding)
    return sum(len(encoder.encode_ordinary(part)) for part in _parts(text))


def count_once(text: str, encoding: str = DEFAULT_TOKENIZER) -> int:
    """The same, remembered: for lines that are told again and again. Kept is a digest, not the text."""
    key = (encoding, blake2b(text.encode(), digest_size=16).digest())
    found = _cached.get(key)
    if found is None:
        if len(_cached) >= _MOST_CACHED:
            _cached.clear()
        found = _cached[key] = count(text, encoding)
    return found


def _parts(text: str) -> Iterator[str]:
    start = 0
    if len(text) > _BLANKS_AT_ONCE:
        for blanks in _BLANKS.finditer(text):
            for cut in range(blanks.start() + _BLANKS_AT_ONCE, blanks.end(), _BLANKS_AT_ONCE):
                yield text[start:cut]
                start = cut
    yield text[start:]


@cache
def _encoder(encoding: str) -> tiktoken.Encoding:
    if encoding not in TOKENIZERS:
        raise KeyError(encoding)
    found = tiktoken.get_encoding(encoding)
    # 25 MB that only describe and copy an encoding: counting uses the table of the library's own language.
    found._mergeable_ranks = {}
    return found
