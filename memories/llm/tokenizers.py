"""Which tokenizers there are, and which one a model's name stands for: data/tokenizers.toml has both.

A name alone loads nothing; memories.llm.vocabularies does, when something is counted.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

DEFAULT_TOKENIZER = "o200k_base"
# The dearest of all that are installed.
CONSERVATIVE = "conservative"
# A longer name is no model's.
MOST_CHARACTERS = 200

_DATA = tomllib.loads((Path(__file__).parent / "data" / "tokenizers.toml").read_text(encoding="utf-8"))
# What a name of a model may follow: the start, or a sign after whoever serves or made the model.
_BEFORE = r"(?:^|[/.:-])"


class UnknownTokenizer(Exception):
    """Neither the name of a tokenizer nor of a model whose tokenizer is known; the message names what there is."""


class TokenizerNotInstalled(Exception):
    """The vocabulary is not installed; the message names the extra that brings it."""


@dataclass(frozen=True)
class Vocabulary:
    """Where the tokens of a tokenizer are; the fields are those of data/tokenizers.toml.

    Without a package it is one of tiktoken's own.
    """

    name: str
    package: str = ""
    file: str = ""
    pattern: str = ""
    bundled: str = ""
    composed: bool = False
    apart: str = ""

    @property
    def is_installed(self) -> bool:
        return not self.package or _is_installed(self.package)

    @property
    def extra(self) -> str:
        """What brings it, for pip."""
        return f"memory-hub[{_DATA['packages'][self.package]['extra']}]"


VOCABULARIES = {name: Vocabulary(name, **fields) for name, fields in _DATA["tokenizers"].items()}
# The names that the hub answers with.
TOKENIZERS = (*VOCABULARIES, CONSERVATIVE)
# Tokens that `conservative` adds for what a chat template puts around a message.
TEMPLATE_TOKENS: int = _DATA["conservative"]["template"]
_MODELS = tuple((re.compile(f"{_BEFORE}(?:{one['names']})"), one["tokenizer"]) for one in _DATA["models"])


def named(name: str) -> str:
    """The tokenizer of this name, or the one of the model of this name, one of TOKENIZERS.

    Names of models are as their makers, servers and gateways write them, in any case (`Qwen/Qwen3-8B`, `llama3.1:8b`).
    Errors: UnknownTokenizer; TokenizerNotInstalled.
    """
    tokenizer = _found(name)
    if tokenizer is None:
        raise UnknownTokenizer(f"Use one of: {', '.join(TOKENIZERS)}; or the name of a model that uses one of them.")
    if tokenizer != CONSERVATIVE and not VOCABULARIES[tokenizer].is_installed:
        extra = VOCABULARIES[tokenizer].extra
        raise TokenizerNotInstalled(
            f"The vocabulary of {tokenizer} is not installed: install the extra {extra} with the hub. "
            f"Installed are: {', '.join(installed())}."
        )
    return tokenizer


def of_model(model: str, *, unknown: str = DEFAULT_TOKENIZER) -> str:
    """The tokenizer to count by for this model: `conservative` if its own is not installed, `unknown` if the model is
    not known."""
    try:
        return named(model)
    except UnknownTokenizer:
        return unknown
    except TokenizerNotInstalled:
        return CONSERVATIVE


def installed() -> list[str]:
    """The names of TOKENIZERS that can be used in this environment."""
    return [name for name in TOKENIZERS if name == CONSERVATIVE or VOCABULARIES[name].is_installed]


def _found(name: str) -> str | None:
    if len(name) > MOST_CHARACTERS:
        return None
    if name in TOKENIZERS:
        return name
    plain = name.strip().lower().replace("_", "-")
    same = next((one for one in TOKENIZERS if one.replace("_", "-") == plain), None)
    return same or next((tokenizer for pattern, tokenizer in _MODELS if pattern.search(plain)), None)


@cache
def _is_installed(package: str) -> bool:
    """In a version that is known."""
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return version.startswith(f"{_DATA['packages'][package]['versions']}.")
