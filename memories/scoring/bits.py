"""Vectors as signs, a bit each: by them the nearness of a million is estimated; pure.

Vectors are centred and turned, so that each of their numbers tells as much as any other (a Hadamard matrix with random
signs). Then two whose signs differ in a share h of the columns lie at an angle of about pi · h. Words of 64 signs stand
in planes, one row a word, so that a block of them is compared in the processor's cache.

Of some of them a second estimate comes twice as near: the query's own numbers against their signs, over how near each
vector is to its signs (RaBitQ, Gao and Long, 2024). How far both are from the cosines is measured with a sample when
the bits are made.
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
# Vectors that are compared at once: a plane of them takes half a MiB.
_AT_ONCE = 65_536
# Of a query's number beside signs.
_LEVEL_BITS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """The signs of n vectors, each block of columns in words of its own.

    `planes`: uint64[words, n]. `lengths`: of the projection of each vector on its signs, float32[blocks, n]; 0 for
    none. `noise`, `second_noise`: how far an estimate, and a second one, is from its mean of cosines, as a standard
    deviation.
    """

    planes: Planes
    lengths: Floats
    noise: float
    second_noise: float

    def estimates(self, asked: Sequence[Floats | None], dimensions: Sequence[int]) -> Floats:
        """About the mean of the cosines with these, float32[n]: one vector for each block, of so many dimensions; None
        for a block that does not count."""
        total, counted, first = np.zeros(len(self), np.float32), 0, 0
        for vector, size in zip(asked, dimensions, strict=True):
            after = first + words_of(size)
            if vector is not None:
                _add_estimates(total, self.planes[first:after], signs(vector[None, :])[:, 0])
                counted += 1
            first = after
        if counted > 1:
            total /= counted
        return total

    def second_estimates(
        self, places: NDArray[np.int64], asked: Sequence[Floats | None], dimensions: Sequence[int]
    ) -> Floats:
        """The same of some, and nearer."""
        total, counted, first = np.zeros(len(places), np.float32), 0, 0
        for at, (vector, size) in enumerate(zip(asked, dimensions, strict=True)):
            after = first + words_of(size)
            if vector is not None:
                total += _projected(
                    self.planes[first:after, places], turned(vector[None, :])[0], self.lengths[at, places]
                )
                counted += 1
            first = after
        if counted > 1:
            total /= counted
        return total

    def __len__(self) -> int:
        return int(self.planes.shape[1])


def words_of(dimensions: int) -> int:
    """How many words the signs of vectors of so many numbers take."""
    return _turned(dimensions) // WORD


def signs(vectors: Floats) -> Planes:
    """The signs of n vectors, uint64[words, n]."""
    return _packed(turned(vectors) > 0)


def turned(vectors: Floats) -> Floats:
    """The vectors in the columns whose signs are taken, of the same lengths."""
    size = _turned(vectors.shape[1])
    whole = np.zeros((len(vectors), size), np.float32)
    np.multiply(vectors, _flips(vectors.shape[1]), out=whole[:, : vectors.shape[1]])
    # The matrix is the product of two small ones.
    rows = 1 << (size.bit_length() - 1) // 2
    within = (whole.reshape(-1, size // rows) @ _hadamard(size // rows)).reshape(len(vectors), rows, -1)
    found: Floats = np.matmul(_hadamard(rows), within).reshape(len(vectors), size)
    found /= np.float32(np.sqrt(size))
    return found


def coded(vectors: Floats) -> tuple[Planes, Floats]:
    """The signs of n vectors of length 1, or 0, and the length of the projection of each on its signs."""
    columns = turned(vectors)
    return _packed(columns > 0), np.abs(columns).sum(axis=1) / np.float32(np.sqrt(columns.shape[1]))


def _packed(flags: NDArray[np.bool_]) -> Planes:
    return np.packbits(flags, axis=1).view(np.uint64).T


def _turned(dimensions: int) -> int:
    """The next power of two: there is a matrix for it."""
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


def _projected(planes: Planes, asked: Floats, lengths: Floats) -> Floats:
    """The product of a vector with that of the signs of some, over what those have of theirs."""
    least, size = float(asked.min()), len(asked)
    step = max((float(asked.max()) - least) / ((1 << _LEVEL_BITS) - 1), 1e-12)
    levels = np.rint((asked - least) / step).astype(np.uint8)
    positive = np.float32(least) * _counts(planes)
    for bit in range(_LEVEL_BITS):
        words = _packed((levels[None, :] >> bit & 1).astype(np.bool_))
        positive += np.float32(step * (1 << bit)) * _counts(planes & words)
    products = (2 * positive - asked.sum()) / np.float32(np.sqrt(size))
    found: Floats = np.divide(products, lengths, out=np.zeros(len(lengths), np.float32), where=lengths > 0)
    return found


def _counts(planes: Planes) -> NDArray[np.uint16]:
    """How many bits of each column are set."""
    counts: NDArray[np.uint16] = np.bitwise_count(planes).sum(axis=0, dtype=np.uint16)
    return counts
