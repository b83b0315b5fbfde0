"""What the C library does with the memory of arrays that are gone. Of another library than glibc nothing is changed."""

import ctypes

# Of malloc.h.
_M_ARENA_MAX = -8


def use_one_arena() -> None:
    """Let all threads of this process, and of those that it forks, share one arena; before the first is started.

    Else each keeps what its largest request needed: of eight threads that search among 120,000 turns 100 MB. A fork
    uses the arenas that threads of its parent had. Python's own small objects come from another place, and most of what
    is left is used by one thread at a time.
    """
    if change := getattr(ctypes.CDLL(None), "mallopt", None):
        change(_M_ARENA_MAX, 1)


def trim() -> None:
    """Give the system the memory that is kept for later."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
