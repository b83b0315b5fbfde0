"""Index of facts or episodes: arrays, cached while neither texts nor vectors change, and their order for a query."""

import uuid
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from memories.db import binary_rows
from memories.models import EmbeddingSpace, EndUser
from memories.retrieval import evidence
from memories.retrieval.cache import Source
from memories.retrieval.evidence import Evidence
from memories.scoring import dense, ranking, weighting
from memories.scoring.ranking import Query, Scores, Units
from memories.scoring.weighting import Weighed, Weights

# Of each memory, beside its vectors: its place in lists, its words and their postings.
_BESIDE = 600
DAY = timedelta(days=1)
# The digest leaves out vectors of an earlier text.
_VECTORS = """
    SELECT v.KIND_id, v.language, halfvec_send(v.vector)
    FROM memories_KINDvector v JOIN memories_KIND m
        ON m.tenant_id = %(tenant)s AND m.id = v.KIND_id AND m.content_hash = v.text_digest
    WHERE v.tenant_id = %(tenant)s AND v.space_id = %(space)s AND m.status = 'active'
        AND (v.end_user_id = %(person)s BESIDE)
"""


class ScoredMemory(Protocol):
    """What the scoring needs of a memory, beside its vector."""

    @property
    def id(self) -> uuid.UUID: ...
    @property
    def terms(self) -> bytes | None: ...


class IndexedMemory(ScoredMemory, Protocol):
    """What the index needs of a memory."""

    @property
    def content_hash(self) -> bytes: ...


@dataclass(frozen=True, eq=False)
class MemoryRanking:
    """Scores of memories for a query; a place is the position of a memory in the order given to units()."""

    scores: Scores
    weighed: Weighed
    dates: NDArray[np.float32]
    units: Units
    queries: Sequence[Query]

    def best(self, limit: int | None = None, *, allowed: NDArray[np.bool_] | None = None) -> list[int]:
        """Places of the best (of those allowed), best first; ties keep their order."""
        total, count = self.weighed.total, len(self.weighed.total)
        if allowed is not None:
            total, count = np.where(allowed, total, np.float32(-np.inf)), int(allowed.sum())
        places: list[int] = ranking.best_first(total, count if limit is None else min(limit, count)).tolist()
        return places

    def evidence(
        self, *, allowed: NDArray[np.bool_] | None = None, trusted: NDArray[np.bool_] | None = None
    ) -> Evidence:
        """How strong each (of those allowed) is as evidence."""
        return evidence.of(self.units, self.queries, self.scores, dates=self.dates, allowed=allowed, trusted=trusted)

    def score(self, place: int) -> float:
        return round(float(self.weighed.total[place]), 6)

    def parts(self, place: int) -> dict[str, float]:
        """The ranking features of its score."""
        parts = {
            "vector": self.scores.vector[place],
            "lexical": self.scores.lexical[place],
            "confidence": self.weighed.confidence[place],
            "decay": self.weighed.decay[place],
            "recency": self.weighed.recency[place],
        }
        if self.dates[place]:
            parts["dates"] = self.dates[place]
        return {name: round(float(value), 6) for name, value in parts.items()}


@dataclass(frozen=True, eq=False)
class Memories(Source[Any, Units]):
    """The person's facts or episodes with their vectors in `space` (None: without vectors).

    `vectors`: what changes with each vector; the caller read it before. `beside`: ids among them that may be other
    people's.
    """

    of: Literal["fact", "episode"]
    person: EndUser
    memories: Sequence[IndexedMemory]
    space: EmbeddingSpace | None
    vectors: Any
    beside: Sequence[uuid.UUID] = ()
    kind = "memories"

    @property
    def key(self) -> tuple[Hashable, ...]:
        return (self.of, self.person.pk, self.space.pk if self.space else None)

    def stamp(self, _known: Any) -> Any:
        # The terms beside the hash: a fact's quote can change without its text.
        return self.vectors, [(memory.id, memory.content_hash, memory.terms) for memory in self.memories]

    def make(self, _stamp: Any, _kept: Units | None, _seconds: float | None) -> Units:
        return units_of(self.memories, self.space, self._read_vectors(self.space) if self.space else [])

    def weight(self, index: Units) -> int:
        return (_BESIDE + 2 * (self.space.dimensions if self.space else 0)) * (1 + len(index))

    def _read_vectors(self, space: EmbeddingSpace) -> list[Any]:
        """(memory, language, vector as halfvec_send() writes it)"""
        statement = _VECTORS.replace("BESIDE", "OR v.KIND_id = ANY(%(beside)s)" if self.beside else "")
        given = {"tenant": self.person.tenant_id, "space": space.pk, "person": self.person.pk}
        return binary_rows.fetched(statement.replace("KIND", self.of), {**given, "beside": list(self.beside)})


def units_of(memories: Sequence[ScoredMemory], space: EmbeddingSpace | None, rows: list[Any]) -> Units:
    """The arrays that scoring takes. `rows`: (memory, language, vector as halfvec_send() writes it), in any order."""
    vectors, languages = None, np.zeros(len(memories), "U2")
    if space:
        vectors = np.zeros((len(memories), space.dimensions), np.float16)
        place = {memory.id: at for at, memory in enumerate(memories)}
        rows = [row for row in rows if row[0] in place]
        if rows:
            places = [place[row[0]] for row in rows]
            vectors[places] = binary_rows.halves([row[2] for row in rows])
            languages[places] = [row[1] for row in rows]
    return Units.of(
        sessions=np.arange(len(memories), dtype=np.int32),
        packed=[memory.terms or b"" for memory in memories],
        vectors=vectors,
        present=languages != "",
        languages=languages.tolist(),
        blocks=dense.blocks(space.model, space.dimensions) if space else (),
        alone=True,
    )


def rank(units: Units, weights: Weights, times: NDArray[np.float64], queries: Sequence[Query]) -> MemoryRanking:
    """`times`: [n, m], the moments at which each was said, in seconds since 1970. For a query that names a date the one
    nearest to it counts, as of a turn."""
    scores = ranking.score(units, queries)
    dates = np.zeros(len(units), np.float32)
    for query in queries if times.size else ():
        if query.dates:
            np.maximum(dates, query.date_scores(times).max(axis=1), out=dates)
    weighed = weighting.weigh(scores.total + dates, weights)
    return MemoryRanking(scores, weighed, dates, units, queries)


def today(now: datetime) -> datetime:
    """Midnight in UTC: ages count in whole days, so that an answer stays the same all day."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
