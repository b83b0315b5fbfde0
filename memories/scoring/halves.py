"""Arithmetic with rows of half-precision numbers, as the database keeps vectors; pure.

NumPy has no fast product of halves, and a copy of the rows in single precision would take twice the room. So a block of
rows at a time, as much as a processor's cache holds, is written as single-precision numbers by numkong, which has the
processor's instructions for that, and multiplied there: the same numbers
(docs/decisions/0025-one-exact-index.md).
"""

from collections.abc import Iterator

import numkong
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]
# Of a block in single precision.
_BLOCK_BYTES = 1 << 19


def products(rows: Floats | Halves, vector: Floats) -> Floats:
    """The product of each row with the vector: float32[n]."""
    if rows.dtype == np.float32:
        whole: Floats = rows @ vector
        return whole
    found = np.empty(len(rows), np.float32)
    for start, block in blocks(rows):
        np.dot(block, vector, out=found[start : start + len(block)])
    return found


def blocks(rows: Floats | Halves) -> Iterator[tuple[int, Floats]]:
    """(place of its first row, rows in single precision), block after block; a block is valid until the next."""
    at_once = max(64, _BLOCK_BYTES // (4 * max(1, int(rows.shape[1]))))
    room = np.empty((min(at_once, len(rows)), rows.shape[1]), np.float32)
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        block = room[: len(some)]
        if rows.dtype == np.float16:
            numkong.astype(some, "float32", out=block)
        else:
            block[:] = some
        yield start, block
