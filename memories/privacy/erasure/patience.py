"""How long an erasure waits for whoever writes at this moment, and how often it comes back."""

from collections.abc import Callable
from typing import TypeVar

from memories.pipeline.giving_way import give_way

T = TypeVar("T")
# Who waits for a lock holds others up by those that it has: not for longer than this. Shorter than what PostgreSQL
# waits before it looks for a deadlock.
LOCK_TIMEOUT = "100ms"
# Between two tries, in seconds; most locks are held for milliseconds.
PAUSES = [min(1.0, 0.02 * 2**tried) for tried in range(60)]


def patiently(act: Callable[[], T]) -> T:
    """What `act()` returns, as by give_way(). Errors: OperationalError after about a minute."""
    return give_way(act, lock_timeout=LOCK_TIMEOUT, pauses=PAUSES)
