"""Facts and episodes: what is relevant comes first; how sure, fresh and recent it is settles what is near; pure.

Each part lies in 0..1 and is added with a small weight. Two memories change places only when their relevance differs by
less than the weights: a memory that covers the question is never overtaken by one that is merely fresh. `worth` orders
the facts of somebody who has too many.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring.constants import DEFAULT, Constants

Floats = NDArray[np.float32]


class Weights(NamedTuple):
    """What memories are weighed by, whatever is asked; float32[n] each.

    `confidence`: of a fact; the quality of an episode. `decay`: what decay.decay_score gives now. `age_days`: since it
    was last confirmed or took place.
    """

    confidence: Floats
    decay: Floats
    age_days: Floats

    @classmethod
    def of(cls, each: Iterable[tuple[float, float, float]]) -> "Weights":
        """From the three of each memory."""
        return cls(*np.array(list(each), np.float32).reshape(-1, 3).T)


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """float32[n] each: the total, and the parts before they are weighted, each 0..1."""

    total: Floats
    confidence: Floats
    decay: Floats
    recency: Floats


def weigh(relevance: Floats, weights: Weights, c: Constants = DEFAULT) -> Weighed:
    """relevance + Σ weight · part, with recency = 2^(−age / half-life); an age below zero counts as none.

    `relevance`: the total of ranking.score.
    """
    sure, fresh = np.clip(weights.confidence, 0, 1), np.clip(weights.decay, 0, 1)
    recent = np.exp2(-np.maximum(weights.age_days, 0) / c.recency_half_life_days).astype(np.float32)
    total = relevance + c.confidence * sure + c.decay * fresh + c.recency * recent
    return Weighed(total.astype(np.float32), sure, fresh, recent)


# Of `worth`: half-life of freshness.
FRESH_DAYS = 90.0
# As many mentions as need no more to count as much used: 2^5 - 1.
MUCH_USED = 5.0
_DAY = 86_400.0


def retention_score(*, confidence: float, last_used: datetime, mentions: int, now: datetime) -> float:
    """0.65 · confidence + 0.25 · freshness + 0.10 · use, 0 to 1 (rules.md, 5.6).

    freshness = 2^(−days / 90) since the fact was last confirmed or recalled, a moment in the future counting as now;
    use = log2(1 + mentions) / 5, at most 1.
    """
    days = max(0.0, (now - last_used).total_seconds() / _DAY)
    freshness = 2 ** (-days / FRESH_DAYS)
    use = min(1.0, math.log2(1 + max(0, mentions)) / MUCH_USED)
    return 0.65 * confidence + 0.25 * freshness + 0.10 * use
