"""A linear classifier of sentences: whether their meaning speaks to a model, in words that no phrase foresees.

It works on the hub's own sentence vectors, whichever embedding the hub uses. There are two classifiers, one for
memories, one for what assistants and tools say: they advise and explain what nobody would remember of a person.
`python -m evals.claims` learns both from the sentences of evals/claims and of the tables of tests/tables, and writes
data/meaning.json. They take 1 to 2 ms a sentence, and 1 s and 120 MB once in a process.
"""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from memories.exceptions import EmbeddingError
from memories.invisible import strip_invisible
from memories.llm import embeddings
from memories.text import sentences
from memories.text.injection import reports
from memories.text.injection.verdicts import cached_verdict

WEIGHTS = Path(__file__).parent / "data" / "meaning.json"

# What a classifier was learned for.
Kind = Literal["memories", "turns"]

# How far above the threshold what the person said themselves must lie (log odds): they wish what they like.
OWN_MARGIN = 1.5

# Of a longer text, or one with more sentences, the beginning and the end are read.
MOST_SENTENCES = 40
_MOST_READ = 8_000
# A longer sentence is read in pieces that overlap: the vector of a long text says little about a part.
_LONGEST = 300
_OVERLAP = 60
# Fewest bytes of a sentence: names and single words address nobody.
_LEAST = 14
# Fewest different characters: "wwwww" and a drawn line are no words, whatever their vectors resemble.
_LEAST_DIFFERENT = 4
_CACHED = 2_048


class LinearClassifier(NamedTuple):
    """A sentence speaks to a model if vector · weights + bias is above the threshold (log odds)."""

    weights: npt.NDArray[np.float32]
    bias: float
    threshold: float


def speak_to_model(texts: Sequence[str], *, is_own: bool = False) -> bool:
    """Whether a sentence of one of the texts speaks to a model; False without an embedding.

    `is_own`: the person said it themselves. Then it must lie further above the threshold.
    """
    try:
        return (_judged_own if is_own else _judged)(*texts)
    except EmbeddingError:
        return False


def each_speaks(spoken: Sequence[str], *, is_own: bool = False) -> list[bool]:
    """Of each sentence whether it speaks to a model, as speak_to_model(); all are embedded at once."""
    margin = OWN_MARGIN if is_own else 0.0
    parts = [pieces(sentence) for sentence in spoken]
    every = list(dict.fromkeys(piece for own in parts for piece in own))
    try:
        found = dict(zip(every, (_judged_scores(every) > margin).tolist(), strict=True))
    except EmbeddingError:
        return [False] * len(spoken)
    return [any(found[piece] for piece in own) for own in parts]


def scores(spoken: Sequence[str], line: LinearClassifier | None = None) -> npt.NDArray[np.float32]:
    """How far each sentence is above the threshold; above 0 it speaks to a model. Errors: EmbeddingError."""
    line = line or learned()
    if not spoken:
        return np.empty(0, dtype=np.float32)
    vectors = embeddings.embed(spoken, model=embeddings.USE)
    found: npt.NDArray[np.float32] = vectors @ line.weights + np.float32(line.bias - line.threshold)
    return found


@cache
def learned(kind: Kind = "memories") -> LinearClassifier:
    data = json.loads(WEIGHTS.read_text(encoding="utf-8"))[kind]
    return LinearClassifier(np.array(data["weights"], dtype=np.float32), data["bias"], data["threshold"])


def pieces(text: str) -> list[str]:
    """The sentences that are judged: at most MOST_SENTENCES of the beginning and the end, as people see them."""
    if len(text) > 2 * _MOST_READ:
        text = f"{text[:_MOST_READ]}\n{text[-_MOST_READ:]}"
    plain = unicodedata.normalize("NFKC", strip_invisible(text))
    spoken = [part for start, end in sentences.spans(plain) for part in _parts(plain[start:end])]
    spoken = [part for part in spoken if len(part.encode()) >= _LEAST and len(set(part)) >= _LEAST_DIFFERENT]
    half = MOST_SENTENCES // 2
    return spoken if len(spoken) <= MOST_SENTENCES else [*spoken[:half], *spoken[-half:]]


@cached_verdict(_CACHED)
def _judged(*texts: str) -> bool:
    return _highest(texts) > 0


@cached_verdict(_CACHED)
def _judged_own(*texts: str) -> bool:
    return _highest(texts) > OWN_MARGIN


def _highest(texts: Sequence[str]) -> float:
    spoken = list(dict.fromkeys(piece for text in texts for piece in pieces(text)))
    return float(_judged_scores(spoken).max(initial=-np.inf))


def _judged_scores(spoken: Sequence[str]) -> npt.NDArray[np.float32]:
    """scores(), in which the meaning of reports counts less."""
    found = scores(spoken)
    for place in np.flatnonzero(found > 0).tolist():
        if reports.is_report(spoken[place]):
            found[place] -= reports.MARGIN
    return found


def _parts(sentence: str) -> Iterator[str]:
    for start in range(0, max(len(sentence) - _OVERLAP, 1), _LONGEST - _OVERLAP):
        yield sentence[start : start + _LONGEST]
