"""The threads that serve requests: a fixed number, each with a database connection of its own."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, TypeVar

from django.db import close_old_connections, connections

from memories.db import tenancy

T = TypeVar("T")
# After so long without work a thread closes its database connection if that is too old.
IDLE_SECONDS = 60.0

Job = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Threads:
    """A pool for calls that wait for the database. The standard one costs three times as much per call."""

    def __init__(self, size: int) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        # Daemons: a request that hangs must not delay the end of its process.
        self._all = [Thread(target=self._work, name=f"web-{number}", daemon=True) for number in range(size)]
        for thread in self._all:
            thread.start()

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` in one of the threads, in the order of the calls, and return or raise what it does."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((call, future, loop))
        return await future

    def end(self, grace: float) -> None:
        """Wait for running calls for so many seconds at most, even for those that nobody awaits any more."""
        for _ in self._all:
            self._jobs.put(None)
        last = monotonic() + grace
        for thread in self._all:
            thread.join(max(0.0, last - monotonic()))

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                close_old_connections()
                continue
            if job is None:
                connections.close_all()
                return
            _do(*job)


def _do(call: Callable[[], Any], future: "asyncio.Future[Any]", loop: asyncio.AbstractEventLoop) -> None:
    if future.cancelled():
        return
    outcome, error = None, None
    try:
        # The tenancy of a call ends with it: the next one is somebody else's.
        with tenancy.nothing():
            outcome = call()
    except BaseException as raised:  # noqa: BLE001  (run() raises it again)
        error = raised
    # The loop of an ending process may be closed already.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, future, outcome, error)


def _settle(future: "asyncio.Future[Any]", outcome: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(outcome)
    else:
        future.set_exception(error)
