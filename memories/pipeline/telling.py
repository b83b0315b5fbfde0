"""Which words of a text tell what it is about, in English and Chinese; pure. The others: data/plain_talk.toml."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memories.scoring import terms

HAN = r"\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3"


@dataclass(frozen=True)
class _Plain:
    """Stems, and a pattern of Chinese words, that tell nothing."""

    stems: frozenset[str]
    chinese: re.Pattern[str]

    @classmethod
    def of(cls, *lists: Mapping[str, str]) -> "_Plain":
        stems = frozenset(stem for words in lists for stem in terms.tokens(words["english"]))
        chinese = sorted({word for words in lists for word in words["chinese"].split()}, key=len, reverse=True)
        return cls(stems, re.compile("|".join(map(re.escape, chinese))))

    def without(self, text: str) -> str:
        return self.chinese.sub(" ", terms.fold(text))

    def left(self, text: str) -> set[str]:
        told = terms.tokens(self.without(text))
        return {token for token in told if len(token) > 1 and not token.isdigit() and token not in self.stems}


_DATA = tomllib.loads((Path(__file__).parent / "data" / "plain_talk.toml").read_text(encoding="utf-8"))
_REPORTING = _Plain.of(_DATA["reporting"])
_SMALL_TALK = _Plain.of(_DATA["reporting"], _DATA["small_talk"])


def content(text: str) -> set[str]:
    """Stems of words and pairs of Chinese characters, without those that fit any conversation."""
    return _REPORTING.left(text)


def telling(text: str) -> set[str]:
    """The same, without small talk as well."""
    return _SMALL_TALK.left(text)


def without_small_talk(text: str) -> str:
    """`text` folded, with blanks in the place of Chinese words that tell nothing."""
    return _SMALL_TALK.without(text)
