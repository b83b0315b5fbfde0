"""Arithmetic with rows of half-precision numbers, as the database keeps vectors; pure.

NumPy has no fast product of halves, and a copy of the rows in single precision would take twice the room. So a block of
rows at a time, as much as a processor's cache holds, is written as single-precision numbers and multiplied there:
exactly as fast as rows that are kept in single precision, and the same numbers
(docs/decisions/0025-one-exact-index.md).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]
# Of a block in single precision.
_BLOCK_BYTES = 2 << 20
# Ten bits of a half's fraction become the first of 23, and five of its exponent the last of eight. The exponents of
# the two begin 112 apart.
_SHIFT, _KEPT = 13, np.int32(-0x70002000)
_SCALE = np.float32(2.0**112)


def products(rows: Floats | Halves, vector: Floats) -> Floats:
    """The product of each row with the vector: float32[n]."""
    if rows.dtype == np.float32:
        whole: Floats = rows @ vector
        return whole
    found = np.empty(len(rows), np.float32)
    scaled = np.ascontiguousarray(vector, np.float32) * _SCALE
    for start, block in _scaled_blocks(rows):
        np.dot(block, scaled, out=found[start : start + len(block)])
    return found


def blocks(rows: Floats | Halves) -> Iterator[tuple[int, Floats]]:
    """(place of its first row, rows in single precision), block after block; a block is valid until the next."""
    if rows.dtype == np.float32:
        at_once = _rows_at_once(rows)
        for start in range(0, len(rows), at_once):
            yield start, rows[start : start + at_once].astype(np.float32, copy=False)
        return
    for start, block in _scaled_blocks(rows):
        np.multiply(block, _SCALE, out=block)
        yield start, block


def _scaled_blocks(rows: Floats | Halves) -> Iterator[tuple[int, Floats]]:
    """Blocks that are 2 ** 112 times too small."""
    bits, at_once = rows.view(np.int16), _rows_at_once(rows)
    room = np.empty((min(at_once, len(rows)), rows.shape[1]), np.int32)
    for start in range(0, len(rows), at_once):
        some = bits[start : start + at_once]
        block = room[: len(some)]
        # The sign is carried into the bits that are cleared afterwards, and stays in the first.
        np.copyto(block, some)
        block <<= _SHIFT
        block &= _KEPT
        yield start, block.view(np.float32)


def _rows_at_once(rows: Floats | Halves) -> int:
    dimensions = int(rows.shape[1])
    return max(64, _BLOCK_BYTES // (4 * max(1, dimensions)))
