"""The threads that serve requests: a fixed number, each with a database connection of its own. Who gets the next one,
admission.py says."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, TypeVar

from django.db import close_old_connections, connections

from memories.db import tenancy
from memories.exceptions import HubBusy
from memories.web.admission import NOBODY, Admission, asking

T = TypeVar("T")
# After so long without work a thread closes its database connection if that is too old.
IDLE_SECONDS = 60.0

Job = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class Threads:
    """A pool for calls that wait for the database. The standard one costs three times as much per call."""

    def __init__(self, size: int, *, bound: float = 0.0) -> None:
        """`bound`: seconds that a request may wait for a thread; 0: as long as it takes."""
        self.admission = Admission(size, self._begin, bound=bound)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        # Daemons: a request that hangs must not delay the end of its process.
        self._all = [Thread(target=self._work, name=f"web-{number}", daemon=True) for number in range(size)]
        for thread in self._all:
            thread.start()

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` in one of the threads, in the turn of the request of this task, and return or raise what it does.
        Errors: HubBusy, and the call does not run."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        job = (call, future, loop)
        self.admission.ask(asking.get() or NOBODY, job, partial(_refuse, future), loop.call_later)
        return await future

    def end(self, grace: float) -> None:
        """Wait for running calls for so many seconds at most, even for those that nobody awaits any more."""
        for job in self.admission.waiting():
            self._jobs.put(job)
        for _ in self._all:
            self._jobs.put(None)
        last = monotonic() + grace
        for thread in self._all:
            thread.join(max(0.0, last - monotonic()))

    def _begin(self, job: Job) -> None:
        self._jobs.put(job)

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
            outcome, error = _done(job)
            # The loop of an ending process may be closed already.
            with suppress(RuntimeError):
                job[2].call_soon_threadsafe(self._settle, job, outcome, error)

    def _settle(self, job: Job, outcome: Any, error: BaseException | None) -> None:
        """In the loop: the thread is free again."""
        self.admission.ended(job)
        _set_outcome(job[1], outcome, error)


def _done(job: Job) -> tuple[Any, BaseException | None]:
    call, future, _ = job
    if future.cancelled():
        return None, None
    try:
        # The tenancy of a call ends with it: the next one is somebody else's.
        with tenancy.nothing():
            return call(), None
    except BaseException as raised:  # noqa: BLE001  (run() raises it again)
        return None, raised


def _refuse(future: "asyncio.Future[Any]", error: HubBusy) -> None:
    if not future.done():
        future.set_exception(error)


def _set_outcome(future: "asyncio.Future[Any]", outcome: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(outcome)
    else:
        future.set_exception(error)
