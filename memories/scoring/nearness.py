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


# Measured with tests/tables/nearness.py; hashed words are for tests.
FLOORS = {
    "use-multilingual-3": Floors(0.50, 0.85),
    "use-multilingual-3+e5-small": Floors(0.70, 0.91),
    "hashed": Floors(0.60, 0.90),
}
# For models that nobody measured. Each line says one thing twice, and no two lines belong together: how near a model
# puts either differs widely, where the floors lie between the two does not.
SAMPLES = (
    ("Is afraid of dogs", "Dogs frighten her"),
    ("Moved to Lyon in the summer", "Has lived in Lyon since the summer"),
    ("Prefers e-mail to telephone calls", "Would rather get an e-mail than a call"),
    ("Teaches mathematics at a school", "Is a mathematics teacher"),
    ("Grows tomatoes on the balcony", "Has tomato plants on the balcony"),
    ("害怕狗", "很怕狗"),
    ("夏天搬到了成都", "从夏天起住在成都"),
    ("比起打电话更喜欢发邮件", "更愿意用邮件联系而不是电话"),
    ("在学校教数学", "是一名数学老师"),
    ("在阳台上种西红柿", "阳台上种着西红柿"),
)
SENTENCES = [sentence for sample in SAMPLES for sentence in sample]
_PROPOSED, _REFUSED = 0.55, 1.05
# A model that tells the two no better knows nothing of meaning, and proposes nothing.
_LEAST_SPREAD = 0.05
_NEVER = Floors(2.0, 2.0)


def calibrated(vectors: Floats) -> Floors:
    """The floors of a model, by its vectors of SENTENCES, [20, d]."""
    cosines = _unit(vectors) @ _unit(vectors).T
    line = np.arange(len(SENTENCES)) // 2
    one_line = line[:, None] == line
    chinese = line >= len(SAMPLES) // 2
    restated = float(cosines[one_line & ~np.eye(len(line), dtype=bool)].mean())
    apart = float(cosines[~one_line & (chinese[:, None] == chinese)].mean())
    spread = restated - apart
    return Floors(apart + _PROPOSED * spread, apart + _REFUSED * spread) if spread > _LEAST_SPREAD else _NEVER


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
