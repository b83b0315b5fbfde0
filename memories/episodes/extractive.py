"""Episodes and running summaries without a model: the person's most central sentences, word for word; pure."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from memories.episodes.texts import cleaned, cut
from memories.models.memories.episodes import EXTRACTIVE, LONGEST_SUMMARY
from memories.text import keywords, sentences, signals, uploads
from memories.text.injection import detection
from memories.text.signals import Patterns
from memories.text.transcript import TranscriptTurn

EXTRACTOR = EXTRACTIVE

# A longer turn is a document, whose beginning says what it is about.
_READ_OF_TURN = 1_000
# A segment of ordinary turns has fewer.
_MOST_SENTENCES = 1_000
# A greeting has fewer keywords. A sentence that shares more of them with another adds nothing.
_LEAST_TERMS = 3
_MOST_SHARED = 0.6
# A sentence is central when many turns share its keywords. Its length must not count for that.
_LENGTH_OF_NONE = 4
_LONGEST_SENTENCE = 400
_LEAST_IMPORTANCE, _PER_SIGNAL, _MOST_IMPORTANCE = 0.4, 0.1, 0.8
_NOTHING = "…"
# The running summary: a sentence for so many turns of the person, and its bounds in characters.
_TURNS_PER_SENTENCE, _MOST_FOLDED = 2, 5
_LONGEST_RUNNING, _LONGEST_FOLDED = 1_200, 240
# In the place of a redacted secret.
_MARK = "[redacted:"


@dataclass(frozen=True)
class Extract:
    """A summary of at most 200 characters in the person's words, topics as written there, and the importance."""

    summary: str
    key_topics: list[str]
    importance: float


@dataclass(frozen=True)
class _CentralSentence:
    place: int
    text: str

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(keywords.distinctive(self.text))

    def repeats(self, other: "_CentralSentence") -> bool:
        return len(self.terms & other.terms) > _MOST_SHARED * len(self.terms)

    def centrality(self, spread: Counter[str]) -> float:
        """By how many turns share its keywords."""
        return sum(math.log(max(1, spread[term])) for term in self.terms) / math.sqrt(len(self.terms) + _LENGTH_OF_NONE)


def extract(turns: Sequence[TranscriptTurn], patterns: Patterns | None = None) -> Extract:
    """The extract of `turns`, at least one. Signals are found by `patterns`, the hub's own unless given.

    It quotes the assistant only where the person said nothing.
    """
    texts = [_beginning(turn) for turn in turns if turn.is_user] or [_beginning(turn) for turn in turns]
    spread = Counter(term for turn in turns for term in keywords.distinctive(_beginning(turn)))
    fit = [sentence for sentence in islice(_sentences(texts), _MOST_SENTENCES) if _is_fit(sentence.text)]
    summary = cleaned(_joined(_chosen(fit, spread, 2)), longest=LONGEST_SUMMARY) or _first_words(texts)
    kinds = signals.find(texts, patterns)
    importance = min(_MOST_IMPORTANCE, round(_LEAST_IMPORTANCE + _PER_SIGNAL * len(kinds), 2))
    return Extract(summary, keywords.topics([sentence.text for sentence in fit]), importance)


def fold(earlier: str, turns: Sequence[TranscriptTurn]) -> str:
    """The running summary after `turns` have left the window, too: what the person said is added, word for word;
    beyond 1,200 characters the oldest sentences go. Empty only if the person never said anything legible.
    """
    texts = [_beginning(turn) for turn in turns if turn.is_user]
    spread = Counter(term for text in texts for term in keywords.distinctive(text))
    fit = [sentence for sentence in islice(_sentences(texts), _MOST_SENTENCES) if _is_fit(sentence.text)]
    count = min(_MOST_FOLDED, 1 + len(texts) // _TURNS_PER_SENTENCE)
    chosen = sorted(_chosen(fit, spread, count), key=lambda sentence: sentence.place)
    added = [cleaned(sentence.text, longest=_LONGEST_FOLDED) for sentence in chosen]
    if not any(added) and not earlier:
        added = [text for text in [_first_words(texts)] if not detection.are_meant_for_model(text)]
    kept = [earlier[start:end] for start, end in sentences.spans(earlier)]
    parts = list(dict.fromkeys(filter(None, [*kept, *added])))
    while len(_spaced(parts)) > _LONGEST_RUNNING:
        parts.pop(0)
    return _spaced(parts)


def _beginning(turn: TranscriptTurn) -> str:
    return cut(turn.text[: _READ_OF_TURN + 1], _READ_OF_TURN)


def _sentences(texts: Sequence[str]) -> Iterator[_CentralSentence]:
    """The sentences that are the person's own words, without quotations and code."""
    place = 0
    for text in texts:
        own = sentences.own_words(text)
        for start, end in sentences.spans(own):
            if sentences.BLANK not in own[start:end]:
                yield _CentralSentence(place, " ".join(text[start:end].split()))
                place += 1


def _is_fit(sentence: str) -> bool:
    if len(sentence) > _LONGEST_SENTENCE or _MARK in sentence or uploads.mentioned(sentence):
        return False
    return not detection.flags(sentence, "", "")


def _chosen(fit: Sequence[_CentralSentence], spread: Counter[str], count: int) -> list[_CentralSentence]:
    """The first with enough keywords, and the most central of those that add to it: `count` in all."""
    apt = [sentence for sentence in fit if len(sentence.terms) >= _LEAST_TERMS] or list(fit)
    chosen = apt[:1]
    for sentence in sorted(apt[1:], key=lambda sentence: (-sentence.centrality(spread), sentence.place)):
        if len(chosen) < count and not any(map(sentence.repeats, chosen)):
            chosen.append(sentence)
    return chosen


def _joined(chosen: Sequence[_CentralSentence]) -> str:
    """Both within the bound: the shorter one whole if it fills no more than half of it."""
    texts = [sentence.text for sentence in chosen]
    if len(texts) < 2 or len(_spaced(texts)) <= LONGEST_SUMMARY:
        return _spaced(texts)
    half = LONGEST_SUMMARY // 2 - 1
    left = max(half, LONGEST_SUMMARY - 1 - min(map(len, texts)))
    return _spaced([cut(text, left if len(text) > half else half) for text in texts])


def _spaced(texts: Sequence[str]) -> str:
    """No space follows a full-width mark."""
    return "".join(text if text.endswith(("。", "！", "？")) else f"{text} " for text in texts).strip()


def _first_words(texts: Sequence[str]) -> str:
    """For texts of only code, quotations or one endless sentence; an ellipsis for nothing legible."""
    found = (cleaned(text, longest=LONGEST_SUMMARY) for text in texts)
    return next(filter(None, found), _NOTHING)
