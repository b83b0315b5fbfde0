"""Pieces of memory that are given back, and used again."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest

from memories.scoring import arrays

# Two arrays of 3 MiB.
HALF = 3 << 18


@pytest.fixture(autouse=True)
def _none_kept() -> Iterator[None]:
    arrays._kept.clear()
    yield
    arrays._kept.clear()


@pytest.mark.parametrize("size", [0, 3, HALF])
def test_each_array_is_of_zeros_and_its_own(size: int) -> None:
    one, other = arrays.zeros(size, size + 1)
    assert (len(one), len(other), one.dtype == other.dtype == np.float32) == (size, size + 1, True)
    one[:] = 7
    assert not other.any()


def test_a_large_piece_is_used_again_and_is_of_zeros_then() -> None:
    first = arrays.zeros(HALF, HALF)
    at = first[0].ctypes.data
    for one in first:
        one[:] = 7
    del first, one
    again = arrays.zeros(HALF, HALF - 5)
    assert again[0].ctypes.data == at
    assert not any(one.any() for one in again)


def test_a_piece_is_not_used_again_while_anything_of_it_is() -> None:
    first = arrays.zeros(HALF, HALF)
    kept = first[1][5:9]
    kept[:] = 7
    del first
    gc.collect()
    arrays.zeros(HALF, HALF)[1][:] = 1
    assert kept.tolist() == [7, 7, 7, 7]
    del kept
    assert len(arrays._kept) == 2


def test_a_small_array_takes_no_large_piece() -> None:
    arrays.zeros(8 * HALF)
    assert len(arrays._kept) == 1
    arrays.zeros(2 * HALF)
    assert len(arrays._kept) == 2


def test_what_is_kept_is_bounded() -> None:
    pieces = [arrays.zeros(4 * HALF) for _ in range(4)]
    assert sum(map(len, arrays._kept)) == 0
    del pieces
    assert sum(map(len, arrays._kept)) == 2 * 12 << 20
