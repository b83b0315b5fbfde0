"""The words of a text that say what it is about, and the topics of a conversation, in English and Chinese; pure.

data/plain_talk.toml lists the words that fit any conversation.
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from memories.scoring import terms

HAN = r"\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3"


# How many topics a conversation has at most.
MOST = 5
# A word is a topic if so many sentences have it; a name always is.
_LEAST_SENTENCES = 2
_TAIL = rf"(?:['’-]?[^\W_{HAN}'’-]){{1,39}}"
# Up to three words that begin with capitals make one name.
_WORDS = re.compile(rf"[A-Z]{_TAIL}(?: [A-Z]{_TAIL}){{0,2}}|[^\W\d_{HAN}]{_TAIL}")
_POSSESSIVE = re.compile(r"['’]s\Z")
_HAN_RUN = re.compile(rf"[{HAN}]{{2,}}")
_LONGEST_HAN = 6


class _StopWords:
    """English stems and Chinese words that say nothing about the subject."""

    def __init__(self, *lists: Mapping[str, str]) -> None:
        self.stems = frozenset(stem for words in lists for stem in terms.tokens(words["english"]))
        chinese = sorted({word for words in lists for word in words["chinese"].split()}, key=len, reverse=True)
        self.chinese = re.compile("|".join(map(re.escape, chinese)))

    def removed(self, text: str) -> set[str]:
        tokens = terms.tokens(self.chinese.sub(" ", terms.fold(text)))
        return {token for token in tokens if len(token) > 1 and not token.isdigit() and token not in self.stems}


_DATA = tomllib.loads((Path(__file__).parent / "data" / "plain_talk.toml").read_text(encoding="utf-8"))
_REPORTING = _StopWords(_DATA["reporting"])
_SMALL_TALK = _StopWords(_DATA["reporting"], _DATA["small_talk"])


def content(text: str) -> set[str]:
    """Stems of words and pairs of Chinese characters, without those that fit any conversation."""
    return _REPORTING.removed(text)


def distinctive(text: str) -> set[str]:
    """The same, without small talk as well."""
    return _SMALL_TALK.removed(text)


def topics(sentences: Sequence[str]) -> list[str]:
    """What most of the sentences are about, at most MOST topics as they were written, the most frequent first."""
    counts: Counter[str] = Counter()
    names: set[str] = set()
    written: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for topic, words, is_name in _topics(sentence):
            counts[topic] += 1
            written[topic][words] += 1
            names |= {topic} if is_name else set()
    frequent = {topic: count for topic, count in counts.items() if count >= _LEAST_SENTENCES or topic in names}
    ranked = sorted({**frequent, **_han(sentences)}.items(), key=lambda item: -item[1])
    return [max(written[topic], key=written[topic].__getitem__, default=topic) for topic, _ in ranked[:MOST]]


def _topics(sentence: str) -> Iterator[tuple[str, str, bool]]:
    """(stems, words as written, whether it is a name), each once. A capital at the beginning does not make a name."""
    found: dict[str, tuple[str, bool]] = {}
    for match in _WORDS.finditer(sentence):
        kept = [_POSSESSIVE.sub("", word) for word in match[0].split() if distinctive(word)]
        stems = " ".join(stem for word in kept for stem in sorted(distinctive(word)))
        found.setdefault(stems, (" ".join(kept), match.start() > 0 and match[0][0].isupper()))
    found.pop("", None)
    yield from ((stems, words, is_name) for stems, (words, is_name) in found.items())


def _han(sentences: Sequence[str]) -> dict[str, int]:
    """Runs of two to six characters and how many sentences have them; none that overlaps a better one."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        parts = _HAN_RUN.findall(_SMALL_TALK.chinese.sub(" ", terms.fold(sentence)))
        sizes = range(2, _LONGEST_HAN + 1)
        counts.update({part[at : at + size] for part in parts for size in sizes for at in range(len(part) - size + 1)})
    frequent = {run: count for run, count in counts.items() if count >= _LEAST_SENTENCES}
    kept: dict[str, int] = {}
    for run in sorted(frequent, key=lambda run: (-frequent[run] * (len(run) - 1), -len(run), run)):
        if not any(_overlap(run, other) for other in kept):
            kept[run] = frequent[run]
    return kept


def _overlap(one: str, other: str) -> bool:
    """Whether one contains the other, or ends as the other begins: they can be pieces of the same words."""
    if one in other or other in one:
        return True
    return any(one.endswith(other[:size]) or other.endswith(one[:size]) for size in range(1, len(other)))
