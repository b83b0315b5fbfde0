"""Load from processes that cost next to nothing: requests are made beforehand and sent over one open connection each.

The clients share the machine with the hub; a comfortable HTTP library would take a good part of it.
"""

import json
import multiprocessing
import re
import socket
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

PATIENCE_SECONDS = 180.0
LOOK_SECONDS = 0.02
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_FORKED = multiprocessing.get_context("fork")


class RefusedError(Exception):
    """An answer was not 2xx: what was measured is worth nothing."""


@dataclass(frozen=True)
class Server:
    """Where requests go, and the key that they carry."""

    port: int
    key: str = ""

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> bytes:
        """A whole request as it goes over the wire."""
        content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        named = {"Host": f"127.0.0.1:{self.port}", "Content-Length": str(len(content)), **headers}
        named |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        named |= {"Content-Type": "application/json"} if content else {}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), "", ""]
        return "\r\n".join(lines).encode() + content


@dataclass(frozen=True)
class Measured:
    """Seconds from the first request to the last answer, and each request's own milliseconds."""

    seconds: float
    milliseconds: list[float]

    @property
    def per_second(self) -> float:
        return len(self.milliseconds) / self.seconds

    @property
    def p50(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def p95(self) -> float:
        return sorted(self.milliseconds)[int(len(self.milliseconds) * 0.95)]


def run(server: Server, scripts: Sequence[Sequence[bytes]]) -> Measured:
    """Send each script from a process of its own, all at once, request after answer. Errors: RefusedError."""
    gate = _FORKED.Barrier(len(scripts))
    clients = []
    for script in scripts:
        here, there = _FORKED.Pipe(duplex=False)
        process = _FORKED.Process(target=_client, args=(server.port, script, gate, there), daemon=True)
        process.start()
        there.close()
        clients.append((process, here))
    reported = [_times_from(here) for _, here in clients]
    for process, _ in clients:
        process.join(PATIENCE_SECONDS)
    started, ended = min(times[0] for times in reported), max(times[-1] for times in reported)
    spans = [(end - start) * 1000 for times in reported for start, end in zip(times[::2], times[1::2], strict=True)]
    return Measured(ended - started, spans)


def answers(server: Server, requests: Sequence[bytes]) -> list[Any]:
    """The answers as JSON, over one connection. Errors: RefusedError."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
        return [json.loads(_answer(connection, request)) for request in requests]


def call(server: Server, request: bytes) -> Any:
    """One request's answer as JSON. Errors: RefusedError."""
    return answers(server, [request])[0]


def _times_from(client: Connection) -> list[float]:
    """Start and end of each of its requests, in turns."""
    if not client.poll(PATIENCE_SECONDS):
        raise RefusedError(f"A client had no answers within {PATIENCE_SECONDS:g} s.")
    reported = client.recv()
    if isinstance(reported, str):
        raise RefusedError(reported)
    times: list[float] = reported
    return times


def _client(port: int, script: Sequence[bytes], gate: Barrier, parent: Connection) -> None:
    times: list[float] = []
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            gate.wait(PATIENCE_SECONDS)
            for request in script:
                times.append(time.perf_counter())
                _answer(connection, request)
                times.append(time.perf_counter())
    except (RefusedError, OSError, threading.BrokenBarrierError) as error:
        gate.abort()
        parent.send(f"{type(error).__name__}: {error}")
    else:
        parent.send(times)


def _answer(connection: socket.socket, request: bytes) -> bytes:
    """The body of the answer."""
    connection.sendall(request)
    received = _received(connection)
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += _received(connection)
    named = _LENGTH.search(received, 0, end)
    whole = end + 4 + (int(named[1]) if named else 0)
    while len(received) < whole:
        received += _received(connection)
    if received[9:10] != b"2":
        raise RefusedError(received.decode(errors="replace")[:1000])
    return received[end + 4 :]


def _received(connection: socket.socket) -> bytes:
    received = connection.recv(65536)
    if not received:
        raise ConnectionResetError("The server closed the connection.")
    return received


def wait_until(condition: Callable[[], bool]) -> None:
    """Return once it holds. Errors: RefusedError, when it does not in time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RefusedError(f"What was waited for did not come within {PATIENCE_SECONDS:g} s.")
        time.sleep(LOOK_SECONDS)
