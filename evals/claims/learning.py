"""A line between sentences that speak to a model and those that do not: logistic regression over sentence vectors."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memories.text.injection import meaning

Numbers = npt.NDArray[np.float64]

HERE = Path(__file__).parent
TABLES = HERE.parents[1] / "tests" / "tables"
DIALOGUES = HERE.parent / "extraction"
# Log odds. What a benign text may reach: most wishes that look like orders lie below.
THRESHOLD = 1.25
# Of turns: of 4,724 of assistants' in public sets hardly one of 300 lies above (docs/what-is-kept.md).
TURNS_THRESHOLD = 1.5
# How much the squares of the weights cost: chosen by leaving out languages and sources.
_COST = 0.1
_MOST_STEPS = 40


class LabelledText(NamedTuple):
    """A sentence, where it is from, and whether it speaks to a model."""

    text: str
    source: str
    language: str
    speaks: bool


def sentences() -> list[LabelledText]:
    """All that is learned from of memories, each once."""
    return list({one.text: one for one in _labelled()}.values())


def sentences_of_turns() -> list[LabelledText]:
    """All that is learned from of turns: those of memories, and what assistants ordinarily say."""
    return list({one.text: one for one in (*_labelled(), *_of_assistants())}.values())


def _labelled() -> Iterator[LabelledText]:
    for name, speaks in (("attacks", True), ("wishes", False)):
        for line in lines(TABLES / f"{name}.txt"):
            language, _, text = line.partition("\t")
            yield LabelledText(text, "tables", language, speaks)
        yield from (LabelledText(text, "later", "", speaks) for text in lines(TABLES / f"{name}_later.txt"))
    for name, speaks in (("attacks", True), ("benign", False)):
        for line in lines(HERE / f"{name}.txt"):
            language, _, text = line.partition("\t")
            yield LabelledText(text, "claims", language, speaks)
    # Not of harmless_fields.txt: a field of data is no sentence, and addresses nobody.
    for name in ("harmless", "signals", "no_signals", "requests", "no_requests"):
        yield from (LabelledText(line.split("\t")[-1], "others", "", False) for line in lines(TABLES / f"{name}.txt"))
    yield from (
        LabelledText(line[2:], "supported", "", False)
        for line in lines(TABLES / "supported.txt")
        if line.startswith(("= ", "! "))
    )


def _of_assistants() -> Iterator[LabelledText]:
    for line in lines(HERE / "assistants.txt"):
        language, _, text = line.partition("\t")
        yield LabelledText(text, "assistants", language, False)
    for name in ("english", "chinese"):
        dialogues = (json.loads(line) for line in lines(DIALOGUES / f"{name}.jsonl"))
        texts = (text for one in dialogues for role, text in one["turns"] if role == "assistant")
        yield from (LabelledText(piece, "dialogues", "", False) for text in texts for piece in meaning.pieces(text))


def lines(path: Path) -> Iterable[str]:
    """Those that say something."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def fitted(vectors: Numbers, speaks: Sequence[bool]) -> Numbers:
    """The weights, the bias last: Newton's method, the same whenever it is asked."""
    given = np.c_[vectors, np.ones(len(vectors))].astype(np.float64)
    wanted = np.asarray(speaks, dtype=np.float64)
    weights = np.zeros(given.shape[1])
    costs = np.full(given.shape[1], _COST)
    costs[-1] = 1e-6
    for _ in range(_MOST_STEPS):
        odds = 1 / (1 + np.exp(-given @ weights))
        slope = given.T @ (odds - wanted) + costs * weights
        bend = (given * (odds * (1 - odds))[:, None]).T @ given + np.diag(costs)
        step = np.linalg.solve(bend, slope)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def left_out(vectors: Numbers, texts: Sequence[LabelledText], parts: Sequence[str]) -> Numbers:
    """The scores of each sentence by a line that saw none of its part."""
    found = np.zeros(len(texts))
    speaks = np.array([one.speaks for one in texts])
    for part in sorted(set(parts)):
        is_out = np.array([one == part for one in parts])
        weights = fitted(vectors[~is_out], list(speaks[~is_out]))
        found[is_out] = vectors[is_out] @ weights[:-1] + weights[-1]
    return found


def area(found: Numbers, speaks: Sequence[bool]) -> float:
    """How often one that speaks to a model scores higher than one that does not (AUC)."""
    is_attack = np.asarray(speaks)
    benign = np.sort(found[~is_attack])
    return float((np.searchsorted(benign, found[is_attack]) / len(benign)).mean())
