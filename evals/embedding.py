"""Vectors of the local embeddings for the evaluation, kept in a temporary folder between runs."""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# As the hub has it: e5's engine takes one core.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from memories.llm.backends import local_embeddings
from memories.llm.embeddings import USE, Kind
from memories.scoring import code, dense

MODEL = USE
# What the product embeds of a text, and how many at once.
READ_CHARACTERS = 1_000
_AT_ONCE = 64


class Embedding:
    """Texts to unit vectors of a model or of a sum of them; each set of texts is one file for each model."""

    def __init__(self, model: str = MODEL, folder: Path | None = None) -> None:
        self.model = model
        self.folder = folder or Path(tempfile.gettempdir()) / "memory-hub-eval"
        self.dimensions = sum(dense.MODELS[name].dimensions for name in model.split("+"))

    @property
    def blocks(self) -> tuple[dense.VectorBlock, ...]:
        return dense.blocks(self.model, self.dimensions)

    def of(self, texts: Sequence[str], kind: Kind = "passage") -> NDArray[np.float32]:
        """float32[n, dimensions]."""
        read = [text[:READ_CHARACTERS] for text in texts]
        if kind == "passage":
            read = [code.prose(text) for text in read]
        return np.concatenate([self._part(name, read, kind) for name in self.model.split("+")], axis=1)

    def _part(self, model: str, read: Sequence[str], kind: Kind) -> NDArray[np.float32]:
        # USE sees queries as it sees passages.
        form = "query: " if model != USE and kind == "query" else ""
        digest = hashlib.blake2b((form + "\0".join(read)).encode("utf-8", "surrogatepass"), digest_size=16)
        path = self.folder / model / f"{digest.hexdigest()}.npy"
        if path.exists():
            return np.asarray(np.load(path), np.float32)
        starts = range(0, len(read), _AT_ONCE)
        parts = [local_embeddings.embed(read[start : start + _AT_ONCE], kind, model) for start in starts]
        vectors = np.asarray(np.concatenate(parts), np.float32)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, vectors)
        return vectors
