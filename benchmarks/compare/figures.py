"""What was measured of all at once, and how the hub stands among them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.figures import Target

HUB = "hub"


@dataclass(frozen=True)
class Row:
    """One line: a value for each product by its name; None: it has none. `most`: the largest is the best.

    `target` judges hub ÷ the best peer; where `alone`, the hub's value itself.
    """

    what: str
    unit: str
    values: Mapping[str, float | None]
    most: bool = False
    target: Target | None = None
    alone: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def best_peer(self) -> float | None:
        found = [value for name, value in self.values.items() if name != HUB and value is not None]
        return (max if self.most else min)(found) if found else None

    @property
    def ratio(self) -> float | None:
        """Hub ÷ the best peer; None without both."""
        hub, peer = self.values.get(HUB), self.best_peer
        if hub is None or peer is None:
            return None
        if peer == 0:
            return 1.0 if hub == 0 else math.inf
        return hub / peer

    @property
    def times_worse(self) -> float:
        """How many times worse than the best peer the hub is; below 1 it is better; 0: not comparable."""
        ratio = self.ratio
        if ratio is None:
            return 0.0
        if not self.most:
            return ratio
        return 1 / ratio if ratio else math.inf

    @property
    def verdict(self) -> str:
        judged = self.values.get(HUB) if self.alone else self.ratio
        return "" if self.target is None or judged is None else self.target.verdict(judged)


def worst_first(rows: list[Row]) -> list[Row]:
    """Those in which the hub is most times worse than a peer stand first; what cannot be compared last."""
    return sorted(rows, key=lambda row: -row.times_worse)
