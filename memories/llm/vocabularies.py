"""Vocabularies of tokenizers, loaded when something is first counted by them; the only module that imports tiktoken and
splintr.

Packages that contain a vocabulary as a file are not imported, only read.
"""

import base64
import re
import threading
import unicodedata
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path

import tiktoken
from tiktoken_ext.openai_public import cl100k_base

from memories.llm.tokenizers import VOCABULARIES

# Counts the tokens of a text as plain text; what looks like a special token is text, too.
Counter = Callable[[str], int]

# Stands for the vocabularies of open models where none of them is installed.
DIGITS_APART = "cl100k_base with each digit apart"

_loaded: dict[str, Counter] = {}
_loading = threading.Lock()


def counter(name: str) -> Counter:
    """The counter of a vocabulary, thread-safe. The first call takes 0.05 to 1 s and 20 to 70 MB for it.

    `name` is one of VOCABULARIES or DIGITS_APART (KeyError otherwise), installed (PackageNotFoundError otherwise).
    """
    found = _loaded.get(name)
    if found is None:
        # One loads while the others wait: together they would take the memory several times.
        with _loading:
            found = _loaded.get(name)
            if found is None:
                found = _loaded[name] = _load(name)
    return found


def is_loaded(name: str) -> bool:
    return name in _loaded


def _load(name: str) -> Counter:
    if name == DIGITS_APART:
        return _counts_of(_digits_apart())
    vocabulary = VOCABULARIES[name]
    if vocabulary.file:
        path = Path(str(metadata.distribution(vocabulary.package).locate_file(vocabulary.file)))
        lines = (line.split() for line in path.read_bytes().splitlines() if line)
        ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        encoding = tiktoken.Encoding(
            vocabulary.name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={}
        )
        count = _counts_of(_slim(encoding))
    elif vocabulary.bundled:
        count = _of_splintr(vocabulary.bundled)
    else:
        count = _counts_of(_slim(tiktoken.get_encoding(name)))
    if vocabulary.composed:
        return lambda text: count(unicodedata.normalize("NFC", text))
    if not vocabulary.apart:
        return count
    # What matches counts by itself, and what stands between.
    between = re.compile(f"({vocabulary.apart})")
    return lambda text: sum(map(count, filter(None, between.split(text))))


def _counts_of(encoding: tiktoken.Encoding) -> Counter:
    return lambda text: len(encoding.encode_ordinary(text))


def _digits_apart() -> tiktoken.Encoding:
    """cl100k_base, but each digit is a token, as in the vocabularies of most open models."""
    given = cl100k_base()
    pattern = given["pat_str"].replace(r"\p{N}{1,3}+", r"\p{N}")
    return _slim(
        tiktoken.Encoding(DIGITS_APART, pat_str=pattern, mergeable_ranks=given["mergeable_ranks"], special_tokens={})
    )


def _slim(encoding: tiktoken.Encoding) -> tiktoken.Encoding:
    # 20 to 40 MB that only describe and copy an encoding: counting uses the table of the library's own language.
    encoding._mergeable_ranks = {}
    return encoding


def _of_splintr(bundled: str) -> Counter:
    # An extra, which nothing needs but these tokenizers.
    encode: Callable[[str], list[int]] = import_module("splintr").Tokenizer.from_pretrained(bundled).encode_ordinary

    def count(text: str) -> int:
        try:
            return len(encode(text))
        except UnicodeEncodeError:
            # Half a pair of surrogates, which tiktoken reads in this way, too.
            return len(encode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))

    return count
