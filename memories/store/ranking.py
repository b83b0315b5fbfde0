"""How well items answer a query: the cosine of their vectors and its own, exactly, over all that a search selects.

A search right after a write finds it: what has no vector yet is embedded here, and not stored.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memories.embedding import spaces
from memories.embedding.batching import storable
from memories.exceptions import EmbeddingError
from memories.models import EmbeddingSpace, StoreItem
from memories.retrieval import prepared_query
from memories.text import value_texts

# The newest without a vector; more wait at most seconds for theirs.
MOST_FRESH = 256


@dataclass(frozen=True, eq=False)
class StoreQuery:
    """A query's vector in the space that serves."""

    vector: NDArray[np.float32]
    space: EmbeddingSpace

    @property
    def written(self) -> str:
        return storable(self.vector).to_text()


def prepare(text: str) -> StoreQuery | None:
    """The query; None where the embedding does not answer in time: then the newest items count."""
    space = spaces.serving() or _first_space()
    found = prepared_query.vectors([text], space) if space else None
    return StoreQuery(found[0], space) if space and found else None


def _first_space() -> EmbeddingSpace | None:
    """Made here when the first search comes before the first round of the embedder."""
    if not StoreItem.objects.unembedded().exists():
        return None
    try:
        return spaces.first_space()
    except EmbeddingError:
        return None


def scores(
    query: StoreQuery, items: Sequence[tuple[uuid.UUID, Mapping[str, Any], Sequence[str] | None]]
) -> dict[uuid.UUID, float]:
    """Id → score of items without vectors; none where they cannot be embedded in time."""
    owners: list[uuid.UUID] = []
    found: list[str] = []
    for pk, value, paths in items:
        own = value_texts.of_value(value, paths)
        owners += [pk] * len(own)
        found += own
    vectors = prepared_query.passages(found, query.space) if found else None
    if not vectors:
        return {}
    rows = np.stack(vectors)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query.vector)
    best: dict[uuid.UUID, float] = {}
    for owner, score in zip(owners, (rows @ query.vector) / lengths, strict=True):
        best[owner] = max(best.get(owner, -1.0), float(score))
    return best
