"""Small stores for the tests of the scoring."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memories.scoring import terms
from memories.scoring.constants import DEFAULT, Constants
from memories.scoring.dense import VectorBlock
from memories.scoring.language import Language
from memories.scoring.ranking import Units

PLAIN = (VectorBlock("plain", 2),)


def packed(texts: Sequence[str]) -> list[bytes]:
    return [terms.pack(text) for text in texts]


def units(
    texts: Sequence[str],
    sessions: Sequence[int] | None = None,
    *,
    vectors: Sequence[Sequence[float]] | None = None,
    present: Sequence[bool] | None = None,
    languages: Sequence[Language] | None = None,
    blocks: Sequence[VectorBlock] = PLAIN,
    times: Sequence[float] | None = None,
    alone: bool = False,
    constants: Constants = DEFAULT,
) -> Units:
    """Units of one session unless said otherwise, in English, without vectors unless given."""
    return Units.of(
        sessions=np.array(sessions or [0] * len(texts), np.int32),
        packed=packed(texts),
        vectors=None if vectors is None else floats(vectors),
        present=None if present is None else np.array(present),
        languages=languages or ["en"] * len(texts),
        blocks=blocks,
        times=None if times is None else np.array(times),
        alone=alone,
        constants=constants,
    )


def floats(values: Sequence[Sequence[float]] | Sequence[float]) -> NDArray[np.float32]:
    return np.array(values, np.float32)
