"""The row about the gateway: what it adds before the first byte of an answer, and what open streams cost the others."""

import multiprocessing
import random
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing.connection import Connection
from typing import Any

from benchmarks import browsing, load, rows
from benchmarks.figures import Figure, at_least, at_most
from benchmarks.load import RefusedError, Server
from benchmarks.rows import CLIENTS, row
from benchmarks.stage import ROOT, Stage
from benchmarks.upstream import ANSWER

PATH = "/v1/chat/completions"
STREAMS = 200
# Exchanges of a conversation; each request has all of them.
EXCHANGES = 5
# They speak in turn, so that nobody types the next message within a second of the answer, as programs do.
PEOPLE = 40
# What they speak of. Texts that begin alike would be a program's, made of one template.
THINGS = (
    "bread", "garden", "violin", "winter", "coffee", "bicycle", "sister", "report", "kitchen", "letter", "museum",
    "piano", "budget", "harbour", "football", "recipe", "printer", "island", "ticket", "jacket",
)  # fmt: skip
_ENDS = b"0\r\n\r\n"
_FORKED = multiprocessing.get_context("fork")
# What goes on meanwhile, by its name.
MountedApp = Mapping[str, Callable[[], AbstractContextManager[None]]]


@row("gateway")
def gateway(stage: Stage) -> Iterator[Figure]:
    """The endpoint answers at once. The hub's people have 50 facts each; requests to both come by turns."""
    rows.contexts(stage)
    with _upstream(stage) as bare:
        yield from _first_byte(stage, bare)
        yield rows.beside(stage, "the first byte")
        yield from _beside_streams(stage, bare)


def _first_byte(stage: Stage, bare: Server) -> Iterator[Figure]:
    count = PEOPLE + stage.size.requests * 2
    with _connected(bare) as direct, _connected(stage.hub) as hub:
        pairs = [(_spent(direct, _asked(bare, at)), _spent(hub, _asked(stage.hub, at))) for at in range(count)]
    directly, through = (sorted(some) for some in zip(*pairs[PEOPLE:], strict=True))
    what = "first byte through the gateway, beyond the bare endpoint's, 1 client"
    yield Figure(f"{what}, p50", statistics.median(through) - statistics.median(directly), "ms", at_most(15, 10))
    late = int(len(through) * 0.95)
    yield Figure(f"{what}, p95", through[late] - directly[late], "ms", at_most(40, 25))


def _asked(server: Server, at: int) -> bytes:
    round_, person = divmod(at, PEOPLE)
    talk, exchange = divmod(round_, EXCHANGES)
    messages: list[dict[str, str]] = []
    for number in range(exchange):
        messages += [_user(_said(person, talk, number)), {"role": "assistant", "content": ANSWER}]
    messages.append(_user(_said(person, talk, exchange)))
    document = {"model": "quick", "stream": True, "messages": messages}
    return server.request("POST", PATH, document, **{"X-Memory-User": f"fan-{person}"})


def _said(person: int, talk: int, exchange: int) -> str:
    chosen = random.Random(f"{person}.{talk}.{exchange}")
    here, there, then = chosen.sample(THINGS, 3)
    return chosen.choice(
        (
            f"The {here} and the {there} were both ready on Tuesday. What is left to do before the {then}?",
            f"I bought a {here} yesterday, and my {there} needs a {then}.",
            f"My {here} is at the {there} again. Could you look up where I left the {then}?",
        )
    )


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _spent(connection: socket.socket, request: bytes) -> float:
    """Milliseconds until the first byte of the answer's body; then all of it is read. Errors: RefusedError."""
    began = time.perf_counter()
    connection.sendall(request)
    received = b""
    while not received.partition(b"\r\n\r\n")[2]:
        received += _received(connection)
    spent = (time.perf_counter() - began) * 1000
    if received[9:10] != b"2":
        raise RefusedError(received.decode(errors="replace")[:1000])
    while not received.endswith(_ENDS):
        received += _received(connection)
    return spent


def _received(connection: socket.socket) -> bytes:
    part = connection.recv(65_536)
    if not part:
        raise RefusedError("The server closed the connection.")
    return part


def _beside_streams(stage: Stage, bare: Server) -> Iterator[Figure]:
    """What the hub still does beside open streams. Those who read them and the endpoint are on the same two cores: as
    many streams that do not go through the hub tell what that costs alone."""
    count = max(1, STREAMS // stage.size.shrink)
    streams = f"{count} open streams"
    beside: MountedApp = {
        "without": nullcontext,
        "past": lambda: _open_streams(bare, count),
        "through": lambda: _open_streams(stage.hub, count),
    }
    for what, found in kept_beside(stage, beside).items():
        through = f"{what}, beside {streams}"
        yield Figure(f"{through} ÷ without", found["through"], "a second", at_least(0.9, 0.97), found["without"])
        yield Figure(f"{through} ÷ as many past the hub", found["through"], "a second", floor=found["past"])


def kept_beside(stage: Stage, beside: MountedApp) -> dict[str, dict[str, float]]:
    """Pages of the admin and posts a second, beside each of these. They take turns, each time in the other order, and
    the first turn is warm-up. By what is done and beside what: the median."""
    page = [stage.hub.request("GET", browsing.facts_address(), Cookie=browsing.signed_in())] * stage.size.requests
    pages, posted = "pages of the list of facts, 1 client", "ingest, one turn per POST, 8 clients"
    found: dict[str, dict[str, list[float]]] = {what: {name: [] for name in beside} for what in (posted, pages)}
    for turn in range(stage.size.rounds + 1):
        for name in list(beside)[:: 1 if turn % 2 else -1]:
            scripts = [rows.posts(stage, f"{name}-{turn}-{client}-{uuid.uuid4()}") for client in range(CLIENTS)]
            # What was posted before would be embedded beside what is measured now.
            rows.wait_for_the_embedder()
            with beside[name]():
                found[pages][name].append(load.run(stage.hub, [page]).per_second)
                found[posted][name].append(load.run(stage.hub, scripts).per_second)
    return {
        what: {name: statistics.median(some[1:] or some) for name, some in by.items()} for what, by in found.items()
    }


def _open_streams(server: Server, count: int) -> AbstractContextManager[None]:
    """So many answers through the gateway, each a word a second."""
    return meanwhile(_hold, server, count)


@contextmanager
def meanwhile(work: Callable[..., None], *given: Any) -> Iterator[None]:
    """`work(*given, parent)` in a process of its own. It says "open" when it has begun and "whole" after our "end"."""
    here, there = _FORKED.Pipe()
    process = _FORKED.Process(target=work, args=(*given, there), daemon=True)
    process.start()
    there.close()
    try:
        _expect(here, "open")
        yield
        here.send("end")
        _expect(here, "whole")
    finally:
        here.close()
        process.join(load.PATIENCE_SECONDS)


def _expect(holder: Connection, word: str) -> None:
    received = holder.recv() if holder.poll(load.PATIENCE_SECONDS) else "nothing in time"
    if received != word:
        raise RefusedError(f"The open streams: {received}")


def _hold(server: Server, count: int, parent: Connection) -> None:
    """Open the streams and read them until the parent says "end"; none may have ended before."""
    waiting: Any = selectors.DefaultSelector()
    connections = []
    try:
        for number in range(count):
            document = {"model": "slow", "stream": True, "messages": [_user(f"Where do I live? ({number})")]}
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=load.PATIENCE_SECONDS)
            connection.sendall(server.request("POST", PATH, document, **{"X-Memory-User": f"fan-{number}"}))
            head = _received(connection)
            if head[9:10] != b"2":
                raise RefusedError(head.decode(errors="replace")[:500])
            connections.append(connection)
            waiting.register(connection, selectors.EVENT_READ)
        waiting.register(parent, selectors.EVENT_READ)
        parent.send("open")
        while True:
            for key, _ in waiting.select():
                if key.fileobj is parent:
                    parent.send("whole")
                    return
                _received(key.fileobj)
    except (RefusedError, OSError) as error:
        parent.send(f"{type(error).__name__}: {error}")
    finally:
        for connection in connections:
            connection.close()


@contextmanager
def _connected(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=load.PATIENCE_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


@contextmanager
def _upstream(stage: Stage) -> Iterator[Server]:
    """The endpoint to which the stage's hub leads."""
    server = Server(stage.endpoint)
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.upstream", str(server.port)], cwd=ROOT)
    try:
        load.wait_until(lambda: _listens(server))
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(load.PATIENCE_SECONDS)


def _listens(server: Server) -> bool:
    try:
        with _connected(server):
            return True
    except OSError:
        return False
