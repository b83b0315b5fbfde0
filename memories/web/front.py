"""Between the network and Django: the loop reads a request whole before it takes a thread, and sends the answer."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from io import BytesIO
from tempfile import SpooledTemporaryFile
from time import monotonic
from typing import IO, Any, Protocol
from urllib.parse import unquote_to_bytes

from memories import leaving, upload_heads
from memories.exceptions import HubBusy
from memories.telemetry.families import WHOLE_AT, note_request
from memories.telemetry.log_fields import ANSWERED_TENANT
from memories.web.admission import Ticket, asking
from memories.web.connection import ENDS_WITH_CLIENT, problem
from memories.web.threads import Threads

Environ = dict[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

# The application refuses a larger body by its Content-Length alone. Such a body is read and thrown away.
MOST_BODY_BYTES = 10 * 1024 * 1024
MOST_DRAINED_BYTES = 64 * 1024 * 1024
# Uploads of one process at a time: they lie in files without names, not in memory.
MOST_UPLOADS = 4
# Bodies beyond the first size wait for each other while the bodies of one process hold more than the second.
SMALL_BODY_BYTES = 64 * 1024
MOST_HELD_BYTES = 128 * 1024 * 1024
# An answer in parts is held in memory up to here, and beyond it in a file: a slow reader must not keep a thread.
MOST_ANSWER_IN_MEMORY = 4 * 1024 * 1024
PART_BYTES = 256 * 1024
# A stream in which nothing comes for so long gets a comment: proxies end what is silent.
KEEP_ALIVE_SECONDS, KEEP_ALIVE = 10.0, b": \n\n"
EVENT_STREAM = "text/event-stream"
# The route of requests that would have waited too long for a thread.
BUSY = "busy"
# Proxies on this machine. Their X-Forwarded-Proto counts, as in gunicorn.
NEAR_PROXIES = ("127.0.0.1", "::1")


@dataclass(frozen=True)
class Answer:
    """The application's answer. `body` is bytes, or a file when it is long; `sent` is its size in bytes. `is_over`: it
    was a stream and is sent."""

    status: str
    headers: list[tuple[bytes, bytes]]
    body: Any
    sent: int
    is_over: bool = False


class MountedApp(Protocol):
    """An application for requests that may take long: no thread waits for them."""

    def handles(self, path: str) -> bool: ...

    def error(self, path: str, status: int, code: str, detail: str, /) -> bytes:
        """An error of the server's own for a path that it takes, as JSON."""
        ...

    async def __call__(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None: ...

    async def preload(self) -> None: ...

    async def end(self) -> None: ...


class RequestBuffer:
    """An ASGI application over a WSGI one."""

    def __init__(
        self,
        application: Application,
        threads: Threads,
        log: Callable[..., None],
        beside: "Sequence[Callable[..., MountedApp]]" = (),
        upload_bytes: Callable[[str, str], int] = lambda _method, _path: 0,
    ) -> None:
        """`log` is called for each answer: with the answer, the WSGI environment and how long it took. `beside` make
        what answers in the loop itself. `upload_bytes`: how large a file may come to this method and path; 0: none."""
        self._application, self._threads, self._log = application, threads, log
        self._upload_bytes, self._uploads = upload_bytes, asyncio.Semaphore(MOST_UPLOADS)
        self._budget = BodyBudget(MOST_HELD_BYTES)
        self._beside = [make(threads.run, self._log_streamed) for make in beside]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        began, request = monotonic(), object()
        length = content_length(scope)
        most = self._upload_bytes(scope["method"], scope["path"])
        if most and (length is None or MOST_BODY_BYTES < length <= most):
            await self._upload(scope, receive, send, began, most)
            return
        try:
            body = await self._body(receive, length, request)
            if body is None:
                return
            ticket = self._ticket(scope)
            for one in self._beside:
                if one.handles(scope["path"]):
                    scope[ENDS_WITH_CLIENT] = True
                    await one(scope, body, receive, self._noting(ticket, send))
                    return
            events = EventSender(scope, receive, send)
            try:
                answer = await self._answered(environ_of(scope, body), began, ticket, events)
                del body
                if answer.is_over:
                    await events.finish()
                    return
            finally:
                events.end()
        finally:
            self._budget.release(request)
        # The body was not read, so nobody knows where the next request begins.
        last = [(b"connection", b"close")] if length is not None and length > MOST_DRAINED_BYTES else []
        await send_answer(answer, send, last)

    async def _upload(self, scope: Message, receive: Receive, send: Send, began: float, most: int) -> None:
        """Read a file once the application lets its head come: before that nothing of it is kept, and none of the few
        places is taken."""
        ticket, length = self._ticket(scope), content_length(scope)
        head = environ_of(scope, b"")
        upload_heads.ask(head)
        answer = await self._answered(head, began, ticket)
        if not upload_heads.may_come(head):
            is_read = length is not None and length <= MOST_DRAINED_BYTES
            if not is_read or await _drain(receive) is not None:
                await send_answer(answer, send, [] if is_read else [(b"connection", b"close")])
            return
        async with self._uploads:
            with SpooledTemporaryFile(max_size=MOST_ANSWER_IN_MEMORY) as file:
                if await _spooled(receive, file, most):
                    whole = environ_of(scope, file)
                    upload_heads.note_whole(whole)
                    await send_answer(await self._answered(whole, began, ticket), send)

    def _ticket(self, scope: Message) -> Ticket:
        ticket = self._threads.admission.ticket(scope)
        asking.set(ticket)
        return ticket

    def error_of(self, path: str, status: int, code: str, detail: str) -> bytes | None:
        """An error in the form of whoever answers this path in the loop; None for all others."""
        return next((one.error(path, status, code, detail) for one in self._beside if one.handles(path)), None)

    async def preload(self) -> None:
        """Load what the first request of its kind would wait for."""
        for one in self._beside:
            await one.preload()

    async def end(self) -> None:
        """No request is answered any more."""
        for one in self._beside:
            await one.end()

    async def _body(self, receive: Receive, length: int | None, request: object) -> bytes | None:
        """The whole body; None when the client has gone.

        Empty for a body that is too large by its Content-Length. One byte too many of one that turns out to be.
        """
        if length == 0:
            return b""
        if length is not None and length > MOST_BODY_BYTES:
            return b"" if length > MOST_DRAINED_BYTES else await _drain(receive)
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            if size <= MOST_BODY_BYTES + len(part):
                parts.append(part)
            if more and size > SMALL_BODY_BYTES:
                await self._budget.hold(request, size if size <= MOST_BODY_BYTES else 0)
        return b"".join(parts)[: MOST_BODY_BYTES + 1]

    async def _answered(
        self, environ: Environ, began: float, ticket: Ticket, events: "EventSender | None" = None
    ) -> Answer:
        """By Django in a thread, or at once where it would wait too long for one. A stream of events keeps the thread
        until it ends."""
        environ[WHOLE_AT] = monotonic()
        try:
            answer = await self._threads.run(partial(self._answer, environ, began, events))
        except HubBusy as error:
            return self._busy(error, environ, began)
        if ANSWERED_TENANT in environ:
            self._threads.admission.note_known(ticket)
        return answer

    def _busy(self, error: HubBusy, environ: Environ, began: float) -> Answer:
        status = HTTPStatus(error.status)
        _, headers, body = problem(status, error.code, error.detail, retry_after=error.seconds, closes=False)
        answer = Answer(f"{status.value} {status.phrase}", headers, body, len(body))
        took = monotonic() - began
        note_request(BUSY, environ["REQUEST_METHOD"], error.status, took)
        self._log(answer, environ, timedelta(seconds=took))
        return answer

    def _noting(self, ticket: Ticket, send: Send) -> Send:
        """`send`, which sees whether the key let in: those beside ask for one before they answer 200."""

        async def noted(message: Message) -> None:
            if message.get("status", HTTPStatus.BAD_REQUEST) < HTTPStatus.BAD_REQUEST:
                self._threads.admission.note_known(ticket)
            await send(message)

        return noted

    def _answer(self, environ: Environ, began: float, events: "EventSender | None" = None) -> Answer:
        """In a thread."""
        answer = call(self._application, environ, events)
        if not upload_heads.may_come(environ):
            self._log(answer, environ, timedelta(seconds=monotonic() - began))
        return answer

    def _log_streamed(self, method: str, path: str, status: int, seconds: float) -> None:
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path}
        self._log(Answer(str(status), [], b"", 0), environ, timedelta(seconds=seconds))


class EventSender:
    """Sends a stream of events while a thread writes it. A client that leaves ends it: what follows is paid for."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._loop = asyncio.get_running_loop()
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._sending: asyncio.Task[None] | None = None
        self._has_left = threading.Event()

    def has_left(self) -> bool:
        """Whether nobody reads it any more. In any thread."""
        return self._has_left.is_set()

    def write(self, status: int, headers: list[tuple[bytes, bytes]], parts: Iterable[bytes]) -> int:
        """In the thread: send all parts, and return their size."""
        size = 0
        self._in_loop(self._begin, status, headers)
        for part in parts:
            if self.has_left():
                break
            size += len(part)
            self._in_loop(self._parts.put_nowait, part)
        return size

    def _in_loop(self, call: Callable[..., object], *arguments: object) -> None:
        # The loop of an ending process may be closed already.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._sending = self._loop.create_task(self._run(status, headers))

    async def _run(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._scope[ENDS_WITH_CLIENT] = True
        watching = self._loop.create_task(self._watch())
        try:
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            while (part := await self._next_part()) is not None:
                await self._send({"type": "http.response.body", "body": part, "more_body": True})
            await self._send({"type": "http.response.body", "body": b""})
        finally:
            watching.cancel()
            self._has_left.set()

    async def _next_part(self) -> bytes | None:
        try:
            return await asyncio.wait_for(self._parts.get(), KEEP_ALIVE_SECONDS)
        except TimeoutError:
            return KEEP_ALIVE

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._has_left.set()

    async def finish(self) -> None:
        """The thread has written all of it."""
        self._parts.put_nowait(None)
        if self._sending is not None:
            await self._sending

    def end(self) -> None:
        """The request is over, however it ended."""
        self._has_left.set()
        if self._sending is not None:
            self._sending.cancel()


class BodyBudget:
    """What the large bodies of one process may hold together, in bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        # Each request's body, the oldest first.
        self.held: dict[object, int] = {}
        self.waiting: list[asyncio.Future[None]] = []

    async def hold(self, request: object, size: int) -> None:
        """Wait while the bodies hold too much. The oldest body never waits, so that one always goes on."""
        self.held[request] = size
        while sum(self.held.values()) > self.size and next(iter(self.held)) is not request:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            await future

    def release(self, request: object) -> None:
        if self.held.pop(request, None) is not None:
            waiting, self.waiting = self.waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)


def content_length(scope: Message) -> int | None:
    """The body's length by its header; 0 without a body, None for a chunked one."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding":
            return None
    return 0


def environ_of(scope: Message, body: bytes | IO[bytes]) -> Environ:
    """The request in WSGI's form. Headers with "_" are left out: they could pass for headers that a proxy sets."""
    host, port = scope["server"]
    address, sender = scope["client"] or ("", 0)
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "REMOTE_ADDR": address,
        "REMOTE_PORT": str(sender),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": BytesIO(body) if isinstance(body, bytes) else body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
    for name, value in scope["headers"]:
        if b"_" not in name:
            key = name.decode("latin-1").upper().replace("-", "_")
            key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
            text = value.decode("latin-1")
            environ[key] = f"{environ[key]},{text}" if key in environ else text
    if address in NEAR_PROXIES and environ.get("HTTP_X_FORWARDED_PROTO") == "https":
        environ["wsgi.url_scheme"] = "https"
    return environ


def call(application: Application, environ: Environ, events: EventSender | None = None) -> Answer:
    """The application's whole answer. A stream goes to `events` while it is made."""
    started: list[tuple[str, list[tuple[str, str]]]] = []
    if events is not None:
        leaving.note(environ, events.has_left)
    result = application(environ, lambda status, headers, _error=None: started.append((status, headers)))
    try:
        if events is not None and started and dict(started[-1][1]).get("Content-Type", "").startswith(EVENT_STREAM):
            status, encoded = _encoded(started)
            return Answer(status, encoded, b"", events.write(int(status[:3]), encoded, result), is_over=True)
        parts, size, long = _collect(result)
    finally:
        with suppress(AttributeError):
            result.close()  # type: ignore[attr-defined]
    status, encoded = _encoded(started)
    return Answer(status, encoded, long or b"".join(parts), size)


def _encoded(started: list[tuple[str, list[tuple[str, str]]]]) -> tuple[str, list[tuple[bytes, bytes]]]:
    status, headers = started[-1]
    return status, [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _collect(result: Iterable[bytes]) -> tuple[list[bytes], int, Any]:
    """The parts of an answer and their size. For a long answer the file that holds them."""
    parts: list[bytes] = []
    size, long = 0, None
    for part in result:
        size += len(part)
        if long is None and size > MOST_ANSWER_IN_MEMORY:
            long = SpooledTemporaryFile(max_size=MOST_ANSWER_IN_MEMORY)  # noqa: SIM115  (closed once it is sent)
            long.writelines(parts)
        if long is None:
            parts.append(part)
        else:
            long.write(part)
    return parts, size, long


async def _drain(receive: Receive) -> bytes | None:
    """Read the body and throw it away: a client that sends all before it reads would miss the answer. None as above."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        more = message.get("more_body", False)
    return b""


async def _spooled(receive: Receive, file: IO[bytes], most: int) -> bool:
    """Write the body to the file, one byte too many of one that is too large; False when the client has gone."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return False
        part, more = message.get("body", b""), message.get("more_body", False)
        file.write(part[: max(0, most + 1 - size)])
        size += len(part)
    file.seek(0)
    return True


async def send_answer(answer: Answer, send: Send, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """The answer, with further headers."""
    status = int(answer.status[:3])
    await send({"type": "http.response.start", "status": status, "headers": [*answer.headers, *headers]})
    await _send_body(answer.body, send)


async def _send_body(body: Any, send: Send) -> None:
    if isinstance(body, bytes):
        await send({"type": "http.response.body", "body": body})
        return
    with body:
        body.seek(0)
        while part := body.read(PART_BYTES):
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
