"""Vectors as signs, a bit each: by them the nearness of a million is estimated; pure.

Vectors are centred and turned, so that each of their numbers tells as much as any other (a Hadamard matrix with random
signs). Then two whose signs differ in a share h of the columns lie at an angle of about pi · h, and half of the columns
tell nearly as much as all: the scan takes half, and more is looked at afterwards. Words of 64 signs stand in planes,
one row a word, so that a block of them is compared in the processor's cache.

How far estimates are from the cosines is measured with a sample when the bits are made.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Planes = NDArray[np.uint64]
WORD = 64
# Of so many words of signs one is kept.
_ONE_OF = 2
# Vectors that are compared at once: a plane of them takes half a MiB.
_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """The signs of n vectors, each block of columns in words of its own.

    `planes`: uint64[words, n]. `noise`: how far an estimate is from its mean of cosines, as a standard deviation.
    """

    planes: Planes
    noise: float

    def estimate(self, asked: Sequence[Floats | None], dimensions: Sequence[int], out: Floats) -> None:
        """About the mean of the cosines with these, in `out`, float32[n] of zeros: one vector for each block, of so
        many dimensions; None for a block that does not count."""
        counted, first = 0, 0
        for vector, size in zip(asked, dimensions, strict=True):
            after = first + words_of(size)
            if vector is not None:
                _add_estimates(out, self.planes[first:after], signs(vector[None, :])[:, 0])
                counted += 1
            first = after
        if counted > 1:
            out /= counted

    def __len__(self) -> int:
        return int(self.planes.shape[1])


def words_of(dimensions: int) -> int:
    """How many words the signs of vectors of so many numbers take."""
    return max(1, columns_of(dimensions) // WORD // _ONE_OF)


def signs(vectors: Floats) -> Planes:
    """The signs of n vectors, uint64[words, n]."""
    return packed(turned(vectors))


def turned(vectors: Floats) -> Floats:
    """The vectors in the columns whose signs are taken, of the same lengths."""
    size = columns_of(vectors.shape[1])
    whole = np.zeros((len(vectors), size), np.float32)
    np.multiply(vectors, _flips(vectors.shape[1]), out=whole[:, : vectors.shape[1]])
    # The matrix is the product of two small ones.
    rows = 1 << (size.bit_length() - 1) // 2
    within = (whole.reshape(-1, size // rows) @ _hadamard(size // rows)).reshape(len(vectors), rows, -1)
    found: Floats = np.matmul(_hadamard(rows), within).reshape(len(vectors), size)
    found /= np.float32(np.sqrt(size))
    return found


def packed(columns: Floats) -> Planes:
    """The signs of n vectors that were turned, as planes."""
    kept = columns[:, : words_of(columns.shape[1]) * WORD]
    return np.packbits(kept > 0, axis=1).view(np.uint64).T


def columns_of(dimensions: int) -> int:
    """In how many columns such vectors are turned: the next power of two, because there is a matrix for it."""
    return max(WORD, 1 << (dimensions - 1).bit_length())


@cache
def _flips(size: int) -> Floats:
    """-1 or 1 for each number, always the same: files outlive a process."""
    drawn = np.frombuffer(hashlib.shake_128(b"signs").digest(size), np.uint8)
    return np.where(drawn & 1, np.float32(1), np.float32(-1))


@cache
def _hadamard(size: int) -> Floats:
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def _add_estimates(total: Floats, planes: Planes, asked: NDArray[np.uint64]) -> None:
    size = len(planes) * WORD
    cosines = np.cos(np.arange(size + 1, dtype=np.float32) * np.float32(np.pi / size))
    different, counts = np.empty(_AT_ONCE, np.uint64), np.empty(_AT_ONCE, np.uint8)
    apart, added = np.empty(_AT_ONCE, np.uint16), np.empty(_AT_ONCE, np.float32)
    for start in range(0, len(total), _AT_ONCE):
        there = slice(start, min(start + _AT_ONCE, len(total)))
        size = there.stop - start
        apart[:] = 0
        for plane, word in zip(planes, asked, strict=True):
            np.bitwise_xor(plane[there], word, out=different[:size])
            np.bitwise_count(different[:size], out=counts[:size])
            apart[:size] += counts[:size]
        np.take(cosines, apart[:size], out=added[:size], mode="clip")
        total[there] += added[:size]
