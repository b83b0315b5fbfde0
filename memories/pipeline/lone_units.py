"""Memories that stand alone, facts and episodes, as arrays to be scored, and their order for a question.

The arrays are kept in memory while neither the texts nor their vectors changed.
"""

import uuid
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memories.models import EmbeddingSpace
from memories.pipeline import rows
from memories.pipeline.shelf import Shelf
from memories.scoring import dense, ranking, weighting
from memories.scoring.ranking import Query, Scores, Units
from memories.scoring.weighting import Weighed

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


class Place(NamedTuple):
    """Where one memory came for a question."""

    at: int
    scores: Scores
    weighed: Weighed

    @property
    def score(self) -> float:
        return round(float(self.weighed.total[self.at]), 6)

    @property
    def parts(self) -> dict[str, float]:
        """Written out for the few that are shown."""
        parts = {
            "vector": self.scores.vector[self.at],
            "lexical": self.scores.lexical[self.at],
            "confidence": self.weighed.confidence[self.at],
            "decay": self.weighed.decay[self.at],
            "recency": self.weighed.recency[self.at],
        }
        return {name: round(float(value), 6) for name, value in parts.items()}


@dataclass(frozen=True, eq=False)
class _Kept:
    """Units with what they were made of."""

    stamp: Any
    texts: list[tuple[uuid.UUID, bytes]]
    units: Units


_shelf: Shelf[_Kept] = Shelf(capacity=CAPACITY, idle_seconds=IDLE_SECONDS, weigh=lambda kept: 1 + len(kept.texts))


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
    key = (whose, space.pk if space else None)
    read = [(text.id, text.content_hash) for text in texts]
    kept = _shelf.get(key)
    if kept and (kept.stamp, kept.texts) == (stamp, read):
        return kept.units
    made = _Kept(stamp, read, _made(texts, space, seen(space) if space else []))
    _shelf.put(key, made)
    return made.units


def best_first(
    units: Units,
    queries: Sequence[Query],
    *,
    confidence: Sequence[float],
    decay: Sequence[float],
    age_days: Sequence[int],
) -> list[Place]:
    """All of them, best first; of equals the one that was given first. What else they are weighed by is given for each
    unit, as weighting.weigh() takes it."""
    scores = ranking.score(units, queries)
    weighed = weighting.weigh(
        scores.total,
        confidence=np.array(confidence, np.float32),
        decay=np.array(decay, np.float32),
        age_days=np.array(age_days, np.float32),
    )
    return [Place(int(at), scores, weighed) for at in ranking.best_first(weighed.total, len(units))]


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
