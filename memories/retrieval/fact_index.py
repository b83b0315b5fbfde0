"""Index of the facts that one viewer may see: everything of their ranking that does not depend on the query."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories import conf
from memories.models import EmbeddingSpace, EndUser, MemoryScope
from memories.retrieval.cache import indexes
from memories.retrieval.memory_index import DAY, Memories
from memories.scoring.decay import DecayInput, decay_score
from memories.scoring.ranking import Units
from memories.scoring.weighting import Weights


class FactFeatures(NamedTuple):
    """What ranks a fact. Its text is read for the best only."""

    id: uuid.UUID
    category: str
    trust: str
    scope: str
    first_observed_at: datetime
    confidence: float
    importance: float
    mentions: int
    last_confirmed_at: datetime
    last_recalled_at: datetime | None
    forget_at: datetime | None
    binding: bool
    pinned: bool
    locked: bool
    content_hash: bytes
    terms: bytes | None

    @property
    def protected(self) -> bool:
        """As `Fact.protected`."""
        return self.binding or self.pinned or self.locked


@dataclass(frozen=True, eq=False)
class FactIndex:
    """Facts, newest first; a place in `facts` is a row of the arrays."""

    facts: list[FactFeatures]
    units: Units
    weights: Weights
    times: NDArray[np.float64]

    @cached_property
    def ids(self) -> list[str]:
        return [str(fact.id) for fact in self.facts]

    def __len__(self) -> int:
        return len(self.facts)


def build(
    person: EndUser,
    facts: list[FactFeatures],
    space: EmbeddingSpace | None,
    *,
    stamp: Any,
    rules: conf.Rules,
    day: datetime,
) -> FactIndex:
    """Index the person's facts and public ones as they are on `day`, with their vectors in `space` (None: without).

    The caller read `stamp` before the facts; it changes with each of these vectors.
    """
    public = [fact.id for fact in facts if fact.scope == MemoryScope.PUBLIC]
    units = indexes.open(Memories("fact", person, facts, space, stamp, public))
    weights = (
        (fact.confidence, decayed(fact, rules, day), float((day - fact.last_confirmed_at) // DAY)) for fact in facts
    )
    # When it was said first and last.
    times = [(fact.first_observed_at.timestamp(), fact.last_confirmed_at.timestamp()) for fact in facts]
    return FactIndex(facts, units, Weights.of(weights), np.array(times, np.float64).reshape(-1, 2))


def decayed(fact: FactFeatures, rules: conf.Rules, day: datetime) -> float:
    """What decay leaves of its importance on `day` (a value of today()), 0..1 (rules.md, 7.1)."""
    if fact.forget_at is None:
        return fact.importance
    last = max(fact.last_confirmed_at, fact.last_recalled_at or fact.last_confirmed_at)
    return decay_score(DecayInput(fact.importance, last, fact.mentions, fact.category), rules, now=day)
