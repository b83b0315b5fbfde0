"""Decay as pure arithmetic: how much a memory still counts, and when it will have faded (rules.md, 7.1)."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

# Episodes fade as facts do that have no half-life of their category's own.
EPISODE = "episode"
_DAY = 86_400.0
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC)


class Numbers(Protocol):
    """What a tenant may set (docs/settings.md), in days; a half-life of None never ends."""

    @property
    def half_life_days(self) -> float: ...
    @property
    def half_lives(self) -> Mapping[str, float | None]: ...
    @property
    def grace_days(self) -> float: ...


class DecayInput(NamedTuple):
    """What a memory fades from: importance (0..1), its last mention or recall, how often it was said, and when it
    arrived (None: when it was said)."""

    importance: float
    last_reinforced: datetime
    mentions: int = 1
    category: str = EPISODE
    arrived: datetime | None = None


def half_life(memory: DecayInput, numbers: Numbers) -> float | None:
    """Days until it counts half: its category's own · (1 + log2(mentions)); None: it never fades.

    Mentions below 1 count as 1.
    """
    days = numbers.half_lives.get(memory.category, numbers.half_life_days)
    return None if days is None else days * (1 + math.log2(max(1, memory.mentions)))


def decay_score(memory: DecayInput, numbers: Numbers, *, now: datetime) -> float:
    """What is left of its importance (0..1): importance · 2^(−max(0, days − grace) / half-life).

    Days count from the last reinforcement; a moment in the future counts as now.
    """
    fading = (now - memory.last_reinforced).total_seconds() / _DAY - numbers.grace_days
    halving = half_life(memory, numbers) if fading > 0 else None
    return memory.importance if halving is None else memory.importance * 2 ** (-fading / halving)


def forget_at(memory: DecayInput, numbers: Numbers, *, below: float) -> datetime | None:
    """When decay_score passes `below`: its inverse, last + grace + half-life · log2(importance / below).

    None: never, for a category that does not fade and for a threshold of 0. An importance already at or below the
    threshold is forgotten once the days of grace are over. What was said long before it arrived has them from then on.
    """
    halving = half_life(memory, numbers)
    if halving is None or below <= 0:
        return None
    days = numbers.grace_days + halving * math.log2(max(memory.importance, below) / below)
    room = (_LAST_MOMENT - memory.last_reinforced) / timedelta(days=1)
    if days >= room:
        return None
    faded = memory.last_reinforced + timedelta(days=days)
    return max(faded, memory.arrived + timedelta(days=numbers.grace_days)) if memory.arrived else faded


def is_too_much(*, takes: int, memories: int, share: float, count: int) -> bool:
    """Whether a pass that takes so many of a tenant's memories is to be confirmed: more than a share and a count."""
    return takes > count and takes > share * memories
