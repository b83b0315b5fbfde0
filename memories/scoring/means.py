"""Frozen means: what everyday statements, and questions, have in common as one model sees them; pure.

They are made of the sentences in data/ by `freeze`, once for each model and language, and ship in data/means.npz. With
them ship the vectors of questions that have nothing to do with anybody, by which evidence is calibrated.
"""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring.language import LANGUAGES, Language

Floats = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Floats]
DATA = Path(__file__).parent / "data"
FROZEN = DATA / "means.npz"


class Means(NamedTuple):
    """Means of unit vectors, not scaled to length 1 themselves."""

    statement: Floats
    question: Floats


def frozen(model: str, language: Language) -> Means | None:
    """The means of a model; None for one that they were never made for."""
    stored, key = _stored(), f"{model}/{language}/"
    if key + "statement" not in stored:
        return None
    return Means(stored[key + "statement"], stored[key + "question"])


def unrelated(model: str, language: Language) -> Floats | None:
    """The unit vectors of questions about the world, not about a person, [n, d]; None for a model without means."""
    return _stored().get(f"{model}/{language}/unrelated")


def freeze(model: str, statements: Embed, questions: Embed, path: Path = FROZEN) -> None:
    """Make the means of a model anew and keep those of the others.

    The two functions give unit vectors, float32[n, d]; they differ for models that embed queries in another way.
    """
    kept = dict(_read(path)) if path.exists() else {}
    for language in LANGUAGES:
        for kind, embed in (("statement", statements), ("question", questions)):
            mean = embed(sentences(kind, language)).mean(axis=0)
            kept[f"{model}/{language}/{kind}"] = mean.astype(np.float32)
        kept[f"{model}/{language}/unrelated"] = questions(sentences("unrelated", language)).astype(np.float32)
    np.savez(path, allow_pickle=False, **kept)
    _stored.cache_clear()


def sentences(kind: str, language: Language) -> list[str]:
    """The sentences of a kind, `statement`, `question` or `unrelated` (questions about the world): a line each."""
    plural = kind if kind == "unrelated" else f"{kind}s"
    return (DATA / f"{plural}_{language}.txt").read_text(encoding="utf-8").splitlines()


@cache
def _stored() -> dict[str, Floats]:
    return _read(FROZEN)


def _read(path: Path) -> dict[str, Floats]:
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name].astype(np.float32) for name in stored.files}
