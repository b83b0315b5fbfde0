"""Vectors as levels, a byte for each number: half of what halves take, and a scan reads no more than them; pure.

A vector is centred, brought to length 1, and turned as its signs are (bits.py), so that no column is much stronger than
the others. Then its numbers are rounded to 255 levels, which reach as far as the largest of them. By how much rounding
moves a vector at most is measured when the levels are made, and by how much it moves a query when it is asked. So a
cosine is never further away than products() says: whoever looks exactly at what that leaves loses nothing.

The centre is the mean of that time. Of turns that came later it moves, a little; that is part of what may be wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numkong
import numpy as np
from numpy.typing import NDArray

from memories.scoring.bits import turned

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
# As far as a signed byte reaches to both sides.
_MOST = 127
# Rows of one call of numkong: what it answers fits into the processor's cache.
_ROWS_OF_A_CALL = 8_192
# What sums of single-precision numbers may differ by.
_SUMMED = 1e-5
# Whether the processor multiplies tiles of bytes: then several queries cost no more than one.
HAS_TILES = bool(numkong.get_capabilities().get("sapphireamx"))


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Those of n vectors, each block of columns turned by itself.

    `numbers`: int8[n, columns as they are turned]. `steps`: what a level is worth, float32[blocks, n]; 0 for no vector.
    `closeness`: one over the distance to the mean, float32[blocks, n]. `means`: those by the code of a language,
    float32[1 + languages, d]. `moved`: by how much rounding moved a vector of each block at most.
    """

    numbers: NDArray[np.int8]
    steps: Floats
    closeness: Floats
    means: Floats
    moved: Floats

    def products(self, at: int, columns: slice, asked: Floats, rows: Ints | None = None) -> tuple[Floats, float]:
        """About the cosines of the vectors of block `at`, in these columns, or of some of them, with a query of length
        1, around the means of these levels; and by how much each may be wrong."""
        whole = turned(asked[None, :])[0]
        numbers = self.numbers[:, columns] if rows is None else self.numbers[rows, columns]
        products, left = (_products_in_tiles if HAS_TILES else _products)(numbers, whole)
        products *= self.steps[at] if rows is None else self.steps[at, rows]
        moved, asked_moved = float(self.moved[at]), float(np.linalg.norm(left))
        return products, moved + (1 + moved) * asked_moved + _SUMMED

    def __len__(self) -> int:
        return len(self.numbers)


def _products(numbers: NDArray[np.int8], whole: Floats) -> tuple[Floats, Floats]:
    """The product of each row with a query that is rounded, and what rounding has left of it."""
    levels, step = _rounded(whole)
    found = np.empty((len(numbers), 1), np.float32)
    for some in _calls(len(numbers)):
        numkong.cdist(numbers[some], levels[None, :], "dot", out=found[some], out_dtype="float32")
    products = found[:, 0]
    products *= step
    return products, whole - levels * step


def _products_in_tiles(numbers: NDArray[np.int8], whole: Floats) -> tuple[Floats, Floats]:
    """The same with a query of two numbers for each of its own, of which next to nothing is left."""
    levels, step = _rounded(whole)
    finer, finer_step = _rounded(whole - levels * step)
    queries, steps = numkong.dots_pack(np.stack([levels, finer])), np.array([step, finer_step])
    found = np.empty(len(numbers), np.float32)
    for some in _calls(len(numbers)):
        products = np.asarray(numkong.dots_packed(numbers[some], queries))
        np.dot(products.astype(np.float32), steps, out=found[some])
    return found, whole - levels * step - finer * finer_step


def _calls(rows: int) -> Iterator[slice]:
    return (slice(start, start + _ROWS_OF_A_CALL) for start in range(0, rows, _ROWS_OF_A_CALL))


def _rounded(whole: Floats) -> tuple[NDArray[np.int8], np.float32]:
    """The levels of one vector, and what each is worth."""
    step = np.float32(max(float(np.abs(whole).max()) / _MOST, 1e-12))
    return np.rint(whole / step).astype(np.int8), step


def of_unit(columns: Floats) -> tuple[NDArray[np.int8], Floats, float]:
    """The levels of n vectors of length 1, or 0, in the columns of turned(); what each level is worth, and by how much
    any of them was moved at most."""
    steps = np.abs(columns).max(axis=1, initial=0) / np.float32(_MOST)
    numbers = np.rint(columns / np.maximum(steps, 1e-12)[:, None]).astype(np.int8)
    left = columns - numbers * steps[:, None]
    return numbers, steps, float(np.sqrt(np.einsum("ij,ij->i", left, left).max(initial=0)))
