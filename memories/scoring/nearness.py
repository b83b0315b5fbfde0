"""How near two facts must lie to be held against each other; pure. Nearness proposes and decides nothing: "allergic"
and "not allergic" lie as near as two wordings of one fact (docs/what-is-kept.md)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Floors(NamedTuple):
    """The least cosine at which a known fact is proposed, and at which one that was refused holds a newcomer back."""

    proposed: float
    refused: float


# Measured with tests/pipeline/tables/nearness.py.
FLOORS = {
    "use-multilingual-3": Floors(0.50, 0.85),
    "use-multilingual-3+e5-small": Floors(0.70, 0.91),
}
# A model of somebody's endpoint: not measured. What it proposes in vain costs a line of a model's call.
UNMEASURED = Floors(0.60, 0.90)


def floors_of(model: str) -> Floors:
    """The floors for the vectors of this embedding model."""
    return FLOORS.get(model, UNMEASURED)


def nearest(of: Floats, among: Floats, *, floor: float, most: int) -> list[list[tuple[int, float]]]:
    """For each row of `of` [m, d] the rows of `among` [n, d] whose cosine is `floor` or more, as (place, cosine).

    At most `most` each, nearest first. ValueError when the dimensions differ: those are vectors of two models.
    """
    if of.shape[1] != among.shape[1]:
        raise ValueError(f"Vectors of {of.shape[1]} and of {among.shape[1]} dimensions cannot be compared.")
    return [_best(cosines, floor, most) for cosines in _unit(of) @ _unit(among).T]


def _best(cosines: Floats, floor: float, most: int) -> list[tuple[int, float]]:
    order = np.argsort(-cosines, kind="stable")[:most]
    return [(int(place), float(cosines[place])) for place in order if cosines[place] >= floor]


def _unit(vectors: Floats) -> Floats:
    """Each row of length 1: those of a sum of models are longer, and half precision makes others a little shorter."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Floats = vectors / np.maximum(lengths, 1e-9)
    return units
