"""What is measured, what it is held against, and how far it came."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """Two marks for a figure: where it must come, and where it would be better than asked."""

    reach: float
    beyond: float
    at_least: bool = True

    def verdict(self, value: float) -> str:
        """`beyond`, `reach` or `not met`."""
        for word, mark in (("beyond", self.beyond), ("reach", self.reach)):
            if value >= mark if self.at_least else value <= mark:
                return word
        return "not met"

    def shown(self, mark: float) -> str:
        return f"{'≥' if self.at_least else '≤'} {mark:,g}"


@dataclass(frozen=True)
class Figure:
    """One line of the table; with a floor it is the ratio of the two that is judged, else the figure itself.

    Without a target it is shown and not judged.
    """

    what: str
    measured: float
    unit: str
    target: Target | None = None
    floor: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.floor is None else self.measured / self.floor

    @property
    def verdict(self) -> str:
        return "" if self.target is None else self.target.verdict(self.measured if self.ratio is None else self.ratio)


def at_least(reach: float, beyond: float) -> Target:
    return Target(reach, beyond)


def at_most(reach: float, beyond: float) -> Target:
    return Target(reach, beyond, at_least=False)
