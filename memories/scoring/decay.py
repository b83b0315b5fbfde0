"""Decay as pure arithmetic: how much a memory still counts, and when it will have faded."""

import math
from datetime import UTC, datetime, timedelta

HALF_LIFE_DAYS = 90.0
GRACE_DAYS = 30.0
FORGET_BELOW = 0.2
NEVER_FADES = frozenset({"identity", "relationship", "constraint"})
_DAY = 86_400.0
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC)


def half_life(*, mentions: int) -> float:
    """Days until a memory counts half: 90 · (1 + log2(mentions)); mentions below 1 count as 1 (rules.md, 7.1)."""
    return HALF_LIFE_DAYS * (1 + math.log2(max(1, mentions)))


def decay_score(*, importance: float, last_reinforced: datetime, mentions: int, now: datetime) -> float:
    """What is left of `importance` (0..1): importance · 2^(−max(0, days − 30) / half-life).

    Days count from the last reinforcement; a moment in the future counts as now (rules.md, 7.1).
    """
    days = max(0.0, (now - last_reinforced).total_seconds() / _DAY)
    return importance * 2 ** (-max(0.0, days - GRACE_DAYS) / half_life(mentions=mentions))


def forget_at(
    *, importance: float, last_reinforced: datetime, mentions: int, category: str, protected: bool
) -> datetime | None:
    """When decay_score passes below 0.2: its inverse, last + 30 days + half-life · log2(importance / 0.2).

    None: never, for the categories that do not fade and for what is `protected` (pinned or an operator's).
    An importance already at or below the threshold is forgotten once the 30 days are over.
    """
    if protected or category in NEVER_FADES:
        return None
    halvings = math.log2(max(importance, FORGET_BELOW) / FORGET_BELOW)
    days = GRACE_DAYS + half_life(mentions=mentions) * halvings
    room = (_LAST_MOMENT - last_reinforced) / timedelta(days=1)
    return last_reinforced + timedelta(days=days) if days < room else None
