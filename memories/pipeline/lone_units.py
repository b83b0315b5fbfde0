"""Memories that stand alone, facts and episodes, as arrays to be scored, and their order for a question.

The arrays are kept in memory while neither the texts nor their vectors changed.
"""

import uuid
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memories.models import EmbeddingSpace
from memories.pipeline import rows
from memories.pipeline.shelf import StampedShelf
from memories.scoring import dense, ranking, weighting
from memories.scoring.ranking import Query, Scores, Units
from memories.scoring.weighting import Weighed, Weights

# Per process, as many memories of all people; 5,000 take about 25 MB.
CAPACITY = 25_000
IDLE_SECONDS = 600.0
DAY = timedelta(days=1)
# (memory, language, vector) as halfvec_send() writes it.
Seen = list[tuple[uuid.UUID, str, bytes]]


class Text(Protocol):
    """What units are made of."""

    @property
    def id(self) -> uuid.UUID: ...
    @property
    def content_hash(self) -> bytes: ...
    @property
    def terms(self) -> bytes | None: ...


@dataclass(frozen=True, eq=False)
class Ranking:
    """Memories with their scores for a question; a place is where a memory stood when they were given."""

    scores: Scores
    weighed: Weighed

    def best(self, limit: int | None = None, *, allowed: NDArray[np.bool_] | None = None) -> list[int]:
        """Places of the best, best first, of equals the one that was given first; `allowed`: of those alone."""
        total, count = self.weighed.total, len(self.weighed.total)
        if allowed is not None:
            total, count = np.where(allowed, total, np.float32(-np.inf)), int(allowed.sum())
        places: list[int] = ranking.best_first(total, count if limit is None else min(limit, count)).tolist()
        return places

    def score(self, place: int) -> float:
        return round(float(self.weighed.total[place]), 6)

    def parts(self, place: int) -> dict[str, float]:
        """What its score consists of."""
        parts = {
            "vector": self.scores.vector[place],
            "lexical": self.scores.lexical[place],
            "confidence": self.weighed.confidence[place],
            "decay": self.weighed.decay[place],
            "recency": self.weighed.recency[place],
        }
        return {name: round(float(value), 6) for name, value in parts.items()}


_shelf: StampedShelf[Units] = StampedShelf(
    capacity=CAPACITY, idle_seconds=IDLE_SECONDS, weigh=lambda units: 1 + len(units)
)


def units(
    whose: Hashable,
    texts: Sequence[Text],
    space: EmbeddingSpace | None,
    *,
    stamp: Any,
    seen: Callable[[EmbeddingSpace], Seen],
) -> Units:
    """What scoring needs of the texts, with their vectors of `space` (None: without vectors).

    `stamp` was read before the vectors and is another one after every change of them; `seen` reads them.
    """
    read = [(text.id, text.content_hash) for text in texts]
    return _shelf.get_or_make(
        (whose, space.pk if space else None),
        (stamp, read),
        lambda: _made(texts, space, seen(space) if space else []),
    )


def rank(units: Units, weights: Weights, queries: Sequence[Query]) -> Ranking:
    """The scores of all of them against what is asked."""
    scores = ranking.score(units, queries)
    return Ranking(scores, weighting.weigh(scores.total, weights))


def today(now: datetime) -> datetime:
    """The first moment of the day in UTC: ages count in whole days, so that an answer is the same all day."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _made(texts: Sequence[Text], space: EmbeddingSpace | None, seen: Seen) -> Units:
    vectors, languages = None, np.zeros(len(texts), "U2")
    if space:
        vectors = np.zeros((len(texts), space.dimensions), np.float32)
        _fill(vectors, languages, texts, seen)
    return Units.of(
        sessions=np.arange(len(texts), dtype=np.int32),
        packed=[text.terms or b"" for text in texts],
        vectors=vectors,
        present=languages != "",
        languages=languages.tolist(),
        blocks=dense.blocks(space.model, space.dimensions) if space else (),
        alone=True,
    )


def _fill(vectors: NDArray[np.float32], languages: NDArray[np.str_], texts: Sequence[Text], seen: Seen) -> None:
    place = {text.id: at for at, text in enumerate(texts)}
    there = [row for row in seen if row[0] in place]
    if there:
        places = [place[row[0]] for row in there]
        vectors[places] = rows.vectors([row[2] for row in there])
        languages[places] = [row[1] for row in there]
