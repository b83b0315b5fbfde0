"""Arrays that are as long as a person has turns; pure.

Of a million turns they take some 20 MiB, and the system takes longer to give these, in pages of 4 KiB, than scoring
takes to fill them. So large pieces are asked for in pages of 2 MiB, and a process keeps some that it is done with.
"""

import mmap
import weakref
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Kind = TypeVar("Kind", bound=np.generic)
# From so many bytes on a piece of memory comes from the system, in whole pages; so many of those are kept.
_LARGE, _PAGE, _KEPT = 4 << 20, 2 << 20, 32 << 20

# Without a lock: what is collected while one is held may give a piece back.
_kept: list[mmap.mmap] = []


def in_a_row(parts: Sequence[NDArray[Kind]]) -> NDArray[Kind]:
    """One after the other; of one part that itself, and no copy."""
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def run_starts(values: NDArray[Any]) -> NDArray[np.int64]:
    """Where a value stands that differs from the one before."""
    is_first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def zeros(*sizes: int) -> list[Floats]:
    """Arrays of zeros of these sizes, in one piece of memory."""
    ends = np.cumsum([0, *sizes])
    whole = _piece(int(ends[-1]))
    return [whole[start:end] for start, end in pairwise(ends.tolist())]


def _piece(size: int) -> Floats:
    needed = size * np.dtype(np.float32).itemsize
    if needed < _LARGE:
        return np.zeros(size, np.float32)
    if memory := _left(needed):
        piece = np.frombuffer(memory, np.float32, size)
        piece[:] = 0
    else:
        memory = mmap.mmap(-1, -(-needed // _PAGE) * _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        piece = np.frombuffer(memory, np.float32, size)
    # Views refer to the piece: it is gone when the last of them is.
    weakref.finalize(piece, _keep, memory).atexit = False
    return piece


def _left(needed: int) -> mmap.mmap | None:
    """One of those that are kept that has room enough, and not much more."""
    for memory in list(_kept):
        if needed <= len(memory) <= 2 * needed:
            try:
                _kept.remove(memory)
            except ValueError:
                # Another thread was faster.
                continue
            return memory
    return None


def _keep(memory: mmap.mmap) -> None:
    _kept.append(memory)
    # Another thread may do the same.
    with suppress(IndexError):
        while sum(map(len, list(_kept))) > _KEPT:
            _kept.pop(0)
