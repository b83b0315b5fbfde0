"""How long something outside may hold a request up: a time for each call, and a pause after one that failed.

What is known of it stays in this process: a read writes nothing, and the embedders' pauses in the database speak of
larger calls with more time.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

from memories.pipeline.spaces import LONGEST_STATED_PAUSE_SECONDS, pause_after

T = TypeVar("T")
# Threads that calls which never end can take from a process. When all are taken, calls run out of time unasked.
CALLS_AT_ONCE = 16


class Pause:
    """After a failure nobody asks for 1, 2, 4 … 30 s; then one asks, and who comes meanwhile does without. Thread-safe.

    Times are of a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._until = 0.0

    def enter(self) -> int | None:
        """A ticket for one call, whose outcome is to be told; None: do without."""
        with self._lock:
            if self._clock() < self._until:
                return None
            if self._failures:
                # Not for as long as the one is under way: it may never tell.
                self._until = self._clock() + pause_after(self._failures)
            return self._failures

    def failed(self, ticket: int, *, stated: float = 0.0) -> None:
        """It failed, and perhaps stated how long to stay away; counted once for all who asked at the same time."""
        with self._lock:
            if ticket == self._failures:
                self._failures += 1
                wait = max(pause_after(self._failures), min(stated, LONGEST_STATED_PAUSE_SECONDS))
                self._until = self._clock() + wait

    def answered(self, ticket: int) -> None:
        """It works; the answer to a call from before the last failure says nothing."""
        with self._lock:
            if ticket == self._failures:
                self._failures, self._until = 0, 0.0


def run(call: Callable[[], T], *, seconds: float) -> "Future[T]":
    """The call's outcome, from a thread that is given up when it takes longer: TimeoutError.

    Also when all threads are taken. What the call raised is in the outcome, not raised here.
    """
    outcome = _threads(os.getpid()).submit(call)
    try:
        outcome.exception(timeout=seconds)
    except TimeoutError:
        # If it waits for a thread yet, it need not begin.
        outcome.cancel()
        raise
    return outcome


@lru_cache(maxsize=1)
def _threads(_process: int) -> ThreadPoolExecutor:
    """Of this process: a forked child has none of its parent's threads."""
    return ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="outside")
