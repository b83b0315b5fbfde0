"""An episode without a model: what the person said first and what is most central, word for word; pure."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from memories.models.episodes import LONGEST_SUMMARY
from memories.pipeline import sentences, signals, suspicion, topics, uploads
from memories.pipeline.episode_texts import cleaned, cut
from memories.pipeline.feed import FedTurn
from memories.pipeline.signals import Patterns
from memories.pipeline.telling import telling

EXTRACTOR = "extractive-v1"

# A longer turn is a document; what it is about stands at its beginning.
_READ_OF_TURN = 1_000
# As many as a stretch of sensible turns has.
_MOST_SENTENCES = 1_000
# A greeting has fewer telling words; a sentence that repeats most of another's adds nothing.
_LEAST_TERMS = 3
_MOST_SHARED = 0.6
# Central is what many turns speak of; long sentences hold more words, but not for that.
_LENGTH_OF_NONE = 4
_LONGEST_SENTENCE = 400
_LEAST_IMPORTANCE, _PER_SIGNAL, _MOST_IMPORTANCE = 0.4, 0.1, 0.8
_NOTHING = "…"
# Of a secret that was cut.
_MARK = "[redacted:"


@dataclass(frozen=True)
class Extract:
    """A summary of at most 200 characters in the person's words, topics as written there, and the importance."""

    summary: str
    key_topics: list[str]
    importance: float


@dataclass(frozen=True)
class _Sentence:
    place: int
    text: str

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(telling(self.text))

    def repeats(self, other: "_Sentence") -> bool:
        return len(self.terms & other.terms) > _MOST_SHARED * len(self.terms)

    def centrality(self, spread: Counter[str]) -> float:
        """By how many turns speak of what it speaks of."""
        return sum(math.log(max(1, spread[term])) for term in self.terms) / math.sqrt(len(self.terms) + _LENGTH_OF_NONE)


def extract(turns: Sequence[FedTurn], patterns: Patterns | None = None) -> Extract:
    """The same for the same turns, at least one; signs by `patterns`, the hub's own unless given.

    What the assistant said is taken only where the person said nothing.
    """
    said = [_beginning(turn) for turn in turns if turn.is_user] or [_beginning(turn) for turn in turns]
    spread = Counter(term for turn in turns for term in telling(_beginning(turn)))
    told = [sentence for sentence in islice(_sentences(said), _MOST_SENTENCES) if _is_fit(sentence.text)]
    summary = cleaned(_joined(_chosen(told, spread)), longest=LONGEST_SUMMARY) or _first_words(said)
    kinds = signals.find(said, patterns)
    importance = min(_MOST_IMPORTANCE, round(_LEAST_IMPORTANCE + _PER_SIGNAL * len(kinds), 2))
    return Extract(summary, topics.of([sentence.text for sentence in told]), importance)


def _beginning(turn: FedTurn) -> str:
    return cut(turn.text[: _READ_OF_TURN + 1], _READ_OF_TURN)


def _sentences(said: Sequence[str]) -> Iterator[_Sentence]:
    """Those that are the person's own words."""
    place = 0
    for text in said:
        own = sentences.own_words(text)
        for start, end in sentences.spans(own):
            if sentences.BLANK not in own[start:end]:
                yield _Sentence(place, " ".join(text[start:end].split()))
                place += 1


def _is_fit(sentence: str) -> bool:
    if len(sentence) > _LONGEST_SENTENCE or _MARK in sentence or uploads.mentioned(sentence):
        return False
    return not suspicion.flags(sentence, "", "")


def _chosen(told: Sequence[_Sentence], spread: Counter[str]) -> list[_Sentence]:
    """The first that tells something and the most central of those that add to it, in their order."""
    apt = [sentence for sentence in told if len(sentence.terms) >= _LEAST_TERMS] or list(told)
    others = [sentence for sentence in apt[1:] if not sentence.repeats(apt[0])]
    central = sorted(others, key=lambda sentence: (-sentence.centrality(spread), sentence.place))
    return apt[:1] + central[:1]


def _joined(chosen: Sequence[_Sentence]) -> str:
    """Both within the bound: the shorter one whole if it fills no more than half of it."""
    texts = [sentence.text for sentence in chosen]
    if len(texts) < 2 or len(_parted(texts)) <= LONGEST_SUMMARY:
        return _parted(texts)
    half = LONGEST_SUMMARY // 2 - 1
    room = max(half, LONGEST_SUMMARY - 1 - min(map(len, texts)))
    return _parted([cut(text, room if len(text) > half else half) for text in texts])


def _parted(texts: Sequence[str]) -> str:
    """After a full-width mark no space is written."""
    return "".join(text if text.endswith(("。", "！", "？")) else f"{text} " for text in texts).strip()


def _first_words(said: Sequence[str]) -> str:
    """Of text that is all code, quotations or one endless sentence; a stretch of nothing legible still has a mark."""
    found = (cleaned(text, longest=LONGEST_SUMMARY) for text in said)
    return next(filter(None, found), _NOTHING)
