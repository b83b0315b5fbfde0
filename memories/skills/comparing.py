"""Whether sessions with a skill come out worse than those without it; pure.

The method and its figures: docs/decisions/0031-when-a-skill-is-withdrawn.md.
"""

from dataclasses import dataclass
from math import sqrt

# Of a normal distribution: 95 %, two-sided.
Z = 1.96
# So many sessions with the skill must have a known outcome before anything is compared.
LEAST = 6


@dataclass(frozen=True)
class Rate:
    """How many of so many succeeded."""

    succeeded: int = 0
    total: int = 0

    @property
    def share(self) -> float | None:
        """From 0 to 1; None of nothing."""
        return self.succeeded / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share: what it may be in truth, with 95 %. Of nothing it is all there is."""
        return wilson(self.succeeded, self.total)


def wilson(succeeded: int, total: int, z: float = Z) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927)."""
    if not total:
        return 0.0, 1.0
    share, square = succeeded / total, z * z
    middle = share + square / (2 * total)
    around = z * sqrt(share * (1 - share) / total + square / (4 * total * total))
    below, above = (middle - around) / (1 + square / total), (middle + around) / (1 + square / total)
    return max(0.0, below), min(1.0, above)


def difference(served: Rate, without: Rate, z: float = Z) -> tuple[float, float]:
    """The interval of the share with less that without, made of Wilson's two (Newcombe 1998, method 10)."""
    if not (served.total and without.total):
        return -1.0, 1.0
    one, other = served.succeeded / served.total, without.succeeded / without.total
    (below_one, above_one), (below, above) = wilson(*_of(served), z), wilson(*_of(without), z)
    apart = one - other
    lower = apart - sqrt((one - below_one) ** 2 + (above - other) ** 2)
    upper = apart + sqrt((above_one - one) ** 2 + (other - below) ** 2)
    return lower, upper


def is_worse(served: Rate, without: Rate) -> bool:
    """Whether the skill is to be withdrawn: even the best that the difference may be is below nothing."""
    if served.total < LEAST:
        return False
    return difference(served, without)[1] < 0


def _of(rate: Rate) -> tuple[int, int]:
    return rate.succeeded, rate.total
