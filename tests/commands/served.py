"""A WSGI application behind the web server's own loop, in a thread of the test's."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from uvicorn.config import Config

from memories.web.connection import Connection, ConnectionLimits, Process
from memories.web.front import Application, Environ, RequestBuffer
from memories.web.threads import Threads

PATIENCE_SECONDS = 180.0


class Served:
    """What the application was asked, the log's lines, and a client."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[Environ] = []
        self.refused: list[tuple[str, str, int]] = []
        self.process: Any = None

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS)

    def answer(self, request: bytes) -> bytes:
        """All that comes until the server closes; the client sends no more."""
        with self.connected() as connection:
            with suppress(OSError):
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
            return everything(connection)


def everything(connection: socket.socket) -> bytes:
    received = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            received += part
    return received


def said(text: bytes, status: str = "200 OK") -> Application:
    """An application that always answers this."""

    def application(environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        start_response(status, [("Content-Length", str(len(text)))])
        return [text]

    return application


@contextmanager
def served(
    application: Application, *, threads: int = 2, wait_seconds: float = 0.0, beside: Any = (), **limits: Any
) -> Iterator[Served]:
    found, ready, ended = Served(), threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    def noted(environ: Environ, start_response: Callable[..., Any]) -> Any:
        found.asked.append(environ)
        return application(environ, start_response)

    async def serve() -> None:
        pool = Threads(threads, bound=wait_seconds)
        front = RequestBuffer(noted, pool, lambda *_: None, beside)
        config = Config(front, access_log=False, log_config=None, lifespan="off", proxy_headers=False, ws="none")
        config.load()
        log = lambda *line: found.refused.append(line)  # noqa: E731
        found.process = process = Process(config, ConnectionLimits(**limits), log, front.error_of)

        taken: list[Any] = []

        def accept() -> None:
            if process.can_accept():
                client, _ = listener.accept()
                client.setblocking(False)
                taken.append(loop.create_task(loop.connect_accepted_socket(lambda: Connection(process), client)))

        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            found.port = listener.getsockname()[1]
            loop.add_reader(listener.fileno(), accept)
            ready.set()
            while not ended.is_set():
                process.check_deadlines(monotonic())
                await asyncio.sleep(0.02)
            loop.remove_reader(listener.fileno())
        for connection in list(process.connections):
            connection.abort()
        await asyncio.sleep(0)
        await front.end()
        pool.end(0.0)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        assert ready.wait(PATIENCE_SECONDS)
        yield found
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE_SECONDS)
        loop.close()
