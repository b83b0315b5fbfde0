"""What a fact is worth keeping where a person has too many: pure arithmetic."""

import math
from datetime import datetime

FRESH_DAYS = 90.0
# As many mentions as need no more to count as much used: 2^5 - 1.
MUCH_USED = 5.0
_DAY = 86_400.0


def worth(*, confidence: float, last_used: datetime, mentions: int, now: datetime) -> float:
    """0.65 · confidence + 0.25 · freshness + 0.10 · use, 0 to 1 (rules.md, 5.6).

    freshness = 2^(−days / 90) since the fact was last confirmed or recalled, a moment in the future counting as now;
    use = log2(1 + mentions) / 5, at most 1.
    """
    days = max(0.0, (now - last_used).total_seconds() / _DAY)
    freshness = 2 ** (-days / FRESH_DAYS)
    use = min(1.0, math.log2(1 + max(0, mentions)) / MUCH_USED)
    return 0.65 * confidence + 0.25 * freshness + 0.10 * use
