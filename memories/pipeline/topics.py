"""What a person spoke of, in the words that it was written with; pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from memories.pipeline.telling import HAN, telling, without_small_talk

MOST = 5
# A word is a topic when so many sentences have it; a name when it is said at all.
_LEAST_SENTENCES = 2
_TAIL = rf"(?:['’-]?[^\W_{HAN}'’-]){{1,39}}"
# Up to three words that begin with capitals make one name.
_WORDS = re.compile(rf"[A-Z]{_TAIL}(?: [A-Z]{_TAIL}){{0,2}}|[^\W\d_{HAN}]{_TAIL}")
_POSSESSIVE = re.compile(r"['’]s\Z")
_HAN_RUN = re.compile(rf"[{HAN}]{{2,}}")
_LONGEST_HAN = 6


def of(sentences: Sequence[str]) -> list[str]:
    """What most of the sentences speak of, at most five, the most frequent first."""
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
    return [_usual(written[topic]) or topic for topic, _ in ranked[:MOST]]


def _usual(written: Counter[str]) -> str:
    return written.most_common(1)[0][0] if written else ""


def _topics(sentence: str) -> Iterator[tuple[str, str, bool]]:
    """(stems, words as written, whether it is a name), each once; at its beginning a capital says nothing."""
    found: dict[str, tuple[str, bool]] = {}
    for match in _WORDS.finditer(sentence):
        kept = [_POSSESSIVE.sub("", word) for word in match[0].split() if telling(word)]
        stems = " ".join(stem for word in kept for stem in sorted(telling(word)))
        found.setdefault(stems, (" ".join(kept), match.start() > 0 and match[0][0].isupper()))
    found.pop("", None)
    yield from ((stems, words, is_name) for stems, (words, is_name) in found.items())


def _han(sentences: Sequence[str]) -> dict[str, int]:
    """Runs of two to six characters that stand in several sentences, how many; none that touches a better one."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(set(_runs(sentence)))
    frequent = {run: count for run, count in counts.items() if count >= _LEAST_SENTENCES}
    kept: dict[str, int] = {}
    for run in sorted(frequent, key=lambda run: (-frequent[run] * (len(run) - 1), -len(run), run)):
        if not any(_touch(run, other) for other in kept):
            kept[run] = frequent[run]
    return kept


def _runs(sentence: str) -> Iterator[str]:
    for part in _HAN_RUN.findall(without_small_talk(sentence)):
        for length in range(2, _LONGEST_HAN + 1):
            yield from (part[start : start + length] for start in range(len(part) - length + 1))


def _touch(one: str, other: str) -> bool:
    """Whether they are, or may be, pieces of the same words."""
    overlaps = (one.endswith(other[:size]) or other.endswith(one[:size]) for size in range(1, len(other)))
    return one in other or other in one or any(overlaps)
