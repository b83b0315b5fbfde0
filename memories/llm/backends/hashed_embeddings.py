"""Vectors of hashed words, for tests that are not about the model: texts with words in common lie near each other."""

import hashlib
from collections.abc import Sequence

import numpy as np

from memories.llm.embeddings import Kind, Vectors, checked

DIMENSIONS = 16


def embed(texts: Sequence[str], _kind: Kind, _model: str) -> Vectors:
    """A unit vector per text, [len(texts), 16]."""
    rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
    for place, text in enumerate(texts):
        for word in text.casefold().split() or [""]:
            digest = hashlib.sha256(word.encode()).digest()
            rows[place] += np.frombuffer(digest[:DIMENSIONS], dtype=np.int8).astype(np.float32) + 0.5
    return checked(rows, count=len(texts))


def preload(_model: str) -> None:
    """There is nothing to load."""
