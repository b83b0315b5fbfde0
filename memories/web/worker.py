"""A process of the web server under gunicorn's parent: one loop for all connections, a few threads for Django.

A new connection goes to a process that has no more than the others, by counts in memory that they share. Without them,
the process that wakes first takes most: eight clients that keep theirs open may all be served by one of two processes.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from contextlib import suppress
from datetime import timedelta
from email.utils import formatdate
from mmap import mmap
from time import monotonic
from typing import Any

import uvloop
from gunicorn.workers.base import Worker
from uvicorn.config import Config

from memories.telemetry.families import note_request
from memories.web.connection import Connection, Process
from memories.web.front import Answer, Environ, RequestBuffer
from memories.web.threads import Threads

LOOK_SECONDS = 0.5
# What is loaded late is loaded so long after the start: it must not delay the first answers.
WARM_SECONDS = 15.0
# How long an ending process waits for a next request on idle connections.
LINGER_SECONDS = 1.0
# The route of requests that the server answers itself: too slow, too large, or not HTTP.
REFUSED = "refused"
# The pause when the process can take no more connections, or has no descriptor left.
FULL_SECONDS = 0.1
# A process that has more connections than another one lets that accept: for so long, and so many times at most, for
# the other one may hang.
YIELD_SECONDS = 0.001
MOST_YIELDS = 5
MOST_PROCESSES = 64
# For each process its connections plus one; 0: no process. The master makes it before it forks.
_COUNTS = memoryview(mmap(-1, MOST_PROCESSES * 4)).cast("I")


class LoopWorker(Worker):  # type: ignore[misc]
    """Reads and writes in a loop; `self.app.limits` bounds what a client may do."""

    def __init__(self, *arguments: Any) -> None:
        # Called by the master, before it forks.
        super().__init__(*arguments)
        self.connection_count = ConnectionCount()
        self._yields = 0

    def run(self) -> None:
        self.loop = uvloop.new_event_loop()
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            self.loop.close()

    async def _serve(self) -> None:
        self._catch_signals()
        self._ending = asyncio.Event()
        self._threads = Threads(self.cfg.threads, bound=self.app.wait_seconds)
        self._process = self._new_process()
        warming = self.loop.create_task(self._preload())
        for listener in self.sockets:
            listener.setblocking(False)
            self.loop.add_reader(listener.fileno(), self._accept, listener)
        while self.alive and self.ppid == os.getppid():
            self.notify()
            self._process.state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
            self._process.check_deadlines(monotonic())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), LOOK_SECONDS)
        warming.cancel()
        await self._end()

    async def _preload(self) -> None:
        await asyncio.sleep(WARM_SECONDS)
        await self._front.preload()

    def _new_process(self) -> Process:
        self._front = front = RequestBuffer(
            self.wsgi, self._threads, self._log_answer, self.app.beside, self.app.upload_bytes
        )
        # MEMORYHUB_TRUSTED_PROXIES decides whose address counts, not uvicorn.
        config = Config(front, access_log=False, log_config=None, lifespan="off", proxy_headers=False, ws="none")
        config.load()
        # uvicorn logs each broken request.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        process = Process(config, self.app.limits, self._log_refusal, front.error_of)
        process.state.connections = CountedConnections(self.connection_count)
        return process

    def _log_answer(self, answer: Answer, environ: Environ, took: timedelta) -> None:
        self.log.access(answer, None, environ, took)

    def _log_refusal(self, method: str, path: str, status: int) -> None:
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path}
        note_request(REFUSED, method, status, 0.0)
        self._log_answer(Answer(str(status), [], b"", 0), environ, timedelta())

    def _accept(self, listener: Any) -> None:
        """Accept one connection, unless another process has fewer."""
        if self._yields < MOST_YIELDS and self.connection_count.has_more_than_another():
            self._yields += 1
            self._pause(listener, YIELD_SECONDS)
            return
        self._yields = 0
        try:
            if not self._process.can_accept():
                self._pause(listener, FULL_SECONDS)
                return
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:
            self._pause(listener, FULL_SECONDS)
            return
        # It is among the connections only after some rounds of the loop.
        self.connection_count.set(len(self._process.connections) + 1)
        client.setblocking(False)
        self._taken = self.loop.create_task(self._take(client))

    def _pause(self, listener: Any, seconds: float) -> None:
        self.loop.remove_reader(listener.fileno())
        self.loop.call_later(seconds, self._resume, listener)

    def _resume(self, listener: Any) -> None:
        if self.alive:
            self.loop.add_reader(listener.fileno(), self._accept, listener)

    async def _take(self, client: socket.socket) -> None:
        # The client may have gone already.
        with suppress(OSError):
            await self.loop.connect_accepted_socket(lambda: Connection(self._process), client)

    async def _end(self) -> None:
        """Finish running requests, for as long as gunicorn's graceful_timeout."""
        for listener in self.sockets:
            self.loop.remove_reader(listener.fileno())
        self._process.ends = True
        began = monotonic()
        while self._process.connections and (passed := monotonic() - began) < self.cfg.graceful_timeout:
            self.notify()
            if passed >= LINGER_SECONDS:
                for connection in list(self._process.connections):
                    connection.end_idle()
            await asyncio.sleep(0.05)
        for connection in list(self._process.connections):
            connection.abort()
        await self._front.end()
        self._threads.end(max(0.0, self.cfg.graceful_timeout - (monotonic() - began)))

    def init_signals(self) -> None:
        """The loop handles the signals once it runs."""
        for number in self.SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def _catch_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            self.loop.add_signal_handler(number, self._stop)
        self.loop.add_signal_handler(signal.SIGUSR1, self.log.reopen_files)
        self.loop.add_signal_handler(signal.SIGWINCH, lambda: None)
        self.loop.add_signal_handler(signal.SIGABRT, self._abort)

    def _stop(self) -> None:
        self.alive = False
        self._ending.set()

    def _abort(self) -> None:
        self.cfg.worker_abort(self)
        sys.exit(1)


class ConnectionCount:
    """The open connections of one process. The master makes it, and frees it when the process has ended."""

    def __init__(self) -> None:
        self._number = _COUNTS.tolist().index(0)
        _COUNTS[self._number] = 1

    def set(self, connections: int) -> None:
        _COUNTS[self._number] = connections + 1

    def free(self) -> None:
        _COUNTS[self._number] = 0

    def has_more_than_another(self) -> bool:
        own = _COUNTS[self._number]
        return any(0 < count < own for count in _COUNTS)


class CountedConnections(set[Any]):
    """uvicorn's set of open connections, which notes its size in the process's count."""

    def __init__(self, count: ConnectionCount) -> None:
        super().__init__()
        self._count = count

    def add(self, connection: Any) -> None:
        super().add(connection)
        self._count.set(len(self))

    def discard(self, connection: Any) -> None:
        super().discard(connection)
        self._count.set(len(self))
