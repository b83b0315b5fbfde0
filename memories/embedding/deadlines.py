"""Deadlines of calls that a request waits for, and pauses after calls that failed.

The state stays in this process: a read writes nothing, and the embedders' pauses in the database are about larger
calls with more time.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

from memories.embedding.spaces import LONGEST_STATED_PAUSE_SECONDS, pause_after

T = TypeVar("T")
# Threads that calls which never end can take. When all are taken, further calls time out before they begin.
CALLS_AT_ONCE = 16


class Pause:
    """No calls for 1, 2, 4 … 30 s after a failure; then one call probes, and others do without. Thread-safe.

    `clock` is monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._until = 0.0

    def enter(self) -> int | None:
        """A ticket for one call, for failed() or answered(); None: do without."""
        with self._lock:
            if self._clock() < self._until:
                return None
            if self._failures:
                # The probe may never report, so the pause does not wait for it.
                self._until = self._clock() + pause_after(self._failures)
            return self._failures

    def failed(self, ticket: int, *, stated: float = 0.0) -> None:
        """The call failed; `stated` is its Retry-After. Calls that ran at the same time count once."""
        with self._lock:
            if ticket == self._failures:
                self._failures += 1
                wait = max(pause_after(self._failures), min(stated, LONGEST_STATED_PAUSE_SECONDS))
                self._until = self._clock() + wait

    def answered(self, ticket: int) -> None:
        """The call was answered. The answer to a call from before the last failure proves nothing."""
        with self._lock:
            if ticket == self._failures:
                self._failures, self._until = 0, 0.0


def run(call: Callable[[], T], *, seconds: float) -> "Future[T]":
    """Run the call in a thread. Its exception is in the outcome, not raised here.

    Errors: TimeoutError when it takes longer (the thread is abandoned), and when all threads are taken.
    """
    outcome = _threads(os.getpid()).submit(call)
    try:
        outcome.exception(timeout=seconds)
    except TimeoutError:
        # It may still wait for a thread.
        outcome.cancel()
        raise
    return outcome


@lru_cache(maxsize=1)
def _threads(_process: int) -> ThreadPoolExecutor:
    """By process, because a forked child has none of its parent's threads."""
    return ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="outside")
