"""One client's connection: bounds on what it sends, deadlines for how long it takes. No thread waits for it."""

import json
import math
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from http import HTTPStatus
from time import monotonic
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

# In the scope of a request: whoever sends no more has left, for each further word of the answer is paid for.
ENDS_WITH_CLIENT = "memoryhub.ends_with_client"
# Two percent-encoded ids of 255 characters fit.
LONGEST_TARGET = 8190
MOST_HEADERS = 100
LONGEST_HEADER = 8190
# Limit of a head, of the line before a chunk, and of the fields after the last chunk.
MOST_UNFINISHED_BYTES = 64 * 1024
BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
# An unread answer must shrink by so much in Limits.unread_seconds. Half a minute for 64 KB is a very slow line.
LEAST_READ_BYTES = 64 * 1024


@dataclass(frozen=True)
class ConnectionLimits:
    """How long a client may take, in seconds, and how many connections one process holds."""

    # From the connection, or from the first byte of a later request, to the end of its head.
    head_seconds: float = 10.0
    # From there to the end of its body, and one second more for each `body_rate` bytes received.
    body_seconds: float = 30.0
    body_rate: int = 64 * 1024
    # Between two requests.
    idle_seconds: float = 30.0
    # For an answer that the client does not read.
    unread_seconds: float = 30.0
    connections: int = 1_000


class OverLimitError(Exception):
    """The client sent more than the server takes."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class ConnectionState(Enum):
    """What a connection waits for."""

    NEXT = "the next request"
    HEAD = "the rest of a head"
    BODY = "the rest of a body"
    ANSWER = "our answer"


@dataclass
class Process:
    """What the connections of one process share. `log` is called with method, path and status of the server's own
    answers. `error_of` gives, for path, status, code and detail, an error as whoever answers there writes it, or None.
    """

    config: Config
    limits: ConnectionLimits
    log: Callable[[str, str, int], None]
    error_of: Callable[[str, int, str, str], bytes | None] = lambda *_: None
    state: ServerState = field(default_factory=ServerState)
    # While the process ends, each answer is the last on its connection.
    ends: bool = False

    @property
    def connections(self) -> set["Connection"]:
        return self.state.connections  # type: ignore[return-value]

    def check_deadlines(self, now: float) -> None:
        """Called about twice a second, which costs less than a timer for each request."""
        for connection in list(self.connections):
            connection.check_deadlines(now)

    def can_accept(self) -> bool:
        """Whether the process takes another connection. At the limit, it ends the one that is idle for longest."""
        if len(self.connections) < self.limits.connections:
            return True
        idle = [one for one in self.connections if one.waits_for is not ConnectionState.ANSWER]
        if idle:
            min(idle, key=lambda one: one.since).abort()
        return bool(idle)


class Connection(HttpToolsProtocol):
    """uvicorn's connection with deadlines and bounds, which uvicorn lacks."""

    def __init__(self, process: Process) -> None:
        super().__init__(config=process.config, server_state=process.state, app_state={})
        self.waits_for, self.since = ConnectionState.HEAD, monotonic()
        self._process = process
        self._limits = process.limits
        self._until = self.since + process.limits.head_seconds
        self._refused: OverLimitError | None = None
        self._unfinished = self._received = 0
        self._has_begun = self._head_is_complete = self._is_deaf = self._has_method = False
        self._in_first_line = True
        self._unread, self._unread_until = 0, math.inf

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        if self.waits_for is ConnectionState.NEXT:
            self._wait_for(ConnectionState.HEAD, self._limits.head_seconds)
        self._unfinished += len(data)
        super().data_received(self._percent_encode(data) if self._in_first_line else data)
        if self._unfinished > MOST_UNFINISHED_BYTES:
            self._refused = OverLimitError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The head is too large.")
            self.send_400_response("")

    def _percent_encode(self, data: bytes) -> bytes:
        """Encode the target: curl sends `?user_id=张三` as typed, and the parser refuses that. The method stays."""
        line, end, rest = data.partition(b"\n")
        self._in_first_line = not end
        method, blank, target = (b"", b"", line) if self._has_method else line.partition(b" ")
        self._has_method = self._has_method or bool(blank)
        if target.isascii():
            return data
        return method + blank + BEYOND_ASCII.sub(lambda found: b"%%%02X" % found[0][0], target) + end + rest

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._has_begun, self._head_is_complete = True, False

    def on_url(self, url: bytes) -> None:
        if len(self.url) > LONGEST_TARGET or len(url) > LONGEST_TARGET:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG, f"An address may have {LONGEST_TARGET} bytes.")
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head_is_complete:
            # A field after the body. It must not pass for a header that a proxy let through.
            return
        if len(self.headers) >= MOST_HEADERS or len(name) + len(value) > LONGEST_HEADER:
            detail = f"A request may have {MOST_HEADERS} headers of {LONGEST_HEADER} bytes each."
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unfinished = self._received = 0
        super().on_headers_complete()
        self._head_is_complete = True
        self.cycle.keep_alive = self.cycle.keep_alive and not self._process.ends
        # uvicorn's own would be plain text.
        self.cycle.send_500_response = partial(_send_internal_error, self.cycle, self._process)  # type: ignore[method-assign]
        if not self.pipeline:
            self._wait_for(ConnectionState.BODY, self._limits.body_seconds)

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        self._received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished = 0
        self._has_begun = self._has_method = False
        self._in_first_line = True
        super().on_message_complete()
        if not self.pipeline:
            self._wait_for(ConnectionState.ANSWER, math.inf)

    def on_response_complete(self) -> None:
        """uvicorn's own method would start a timer for each request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._watch_unread()
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._wait_for(
                ConnectionState.BODY if cycle.more_body else ConnectionState.ANSWER, self._limits.body_seconds
            )
            self._start_asgi_task(cycle, app)
        elif self._has_begun:
            self._wait_for(ConnectionState.HEAD, self._limits.head_seconds)
        else:
            self._wait_for(ConnectionState.NEXT, self._limits.idle_seconds)

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more, but may still read."""
        is_asking = self.cycle is not None and not self.cycle.response_complete
        if is_asking and self.cycle.more_body:
            self._answer_at_once(HTTPStatus.BAD_REQUEST, "incomplete", "The body could not be read to its end.")
        elif is_asking and self.cycle.scope.get(ENDS_WITH_CLIENT):
            return False
        elif is_asking:
            self.cycle.keep_alive = False
        return is_asking

    def send_400_response(self, msg: str) -> None:
        """uvicorn calls this for what it cannot parse."""
        unreadable = "The body could not be read to its end." if self._head_is_complete else "This is not HTTP."
        refused = self._refused or OverLimitError(HTTPStatus.BAD_REQUEST, unreadable)
        self._is_deaf = True
        if self.pipeline:
            # It came behind two requests. Only an attacker sends that.
            self.transport.close()
        elif self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            # It came behind a request that has no answer yet.
            self.cycle.keep_alive = False
        else:
            code = "incomplete" if self._head_is_complete else "bad_request"
            self._answer_at_once(refused.status, code, refused.detail)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_until = math.inf

    def check_deadlines(self, now: float) -> None:
        """End this connection if its time is over. `now` is monotonic."""
        if now >= self._unread_until:
            if self._unread - self.transport.get_write_buffer_size() < LEAST_READ_BYTES:
                self.abort()
            else:
                self._watch_unread()
            return
        extra = self._received / self._limits.body_rate if self.waits_for is ConnectionState.BODY else 0.0
        if not self.transport.is_closing() and now >= self._until + extra:
            self._end_waiting()

    def end_idle(self) -> None:
        """At the end of the process: close a connection without a request."""
        if self.waits_for in (ConnectionState.NEXT, ConnectionState.HEAD):
            self.transport.close()

    def abort(self) -> None:
        self.transport.abort()
        # Count it as closed now, not in the loop's next round.
        self.connections.discard(self)

    def _wait_for(self, what: ConnectionState, seconds: float) -> None:
        self.waits_for, self.since = what, monotonic()
        self._until = self.since + seconds

    def _end_waiting(self) -> None:
        if self.waits_for is ConnectionState.BODY and self.flow.read_paused:
            detail = "The server holds too many large bodies; try again in some seconds."
            self._answer_at_once(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail)
        elif self.waits_for is ConnectionState.BODY or self._has_begun:
            self._answer_at_once(HTTPStatus.REQUEST_TIMEOUT, "timeout", "The request did not come to its end in time.")
        else:
            self.transport.close()
            self._watch_unread()

    def _watch_unread(self) -> None:
        self._unread = self.transport.get_write_buffer_size()
        self._unread_until = monotonic() + self._limits.unread_seconds

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Stop the parser. It then calls `send_400_response`."""
        self._refused = OverLimitError(status, detail)
        raise self._refused

    def _unsupported_upgrade_warning(self) -> None:
        """What follows would be another protocol, which the server does not know."""
        self._is_deaf = True
        self.cycle.keep_alive = False

    def _answer_at_once(self, status: HTTPStatus, code: str, detail: str) -> None:
        """Send the server's own answer, unless the application's has begun, and close the connection."""
        self._is_deaf = True
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            request = self.cycle.scope if self._head_is_complete else {"method": "-", "path": "-"}
            own = self._process.error_of(request["path"], status, code, detail)
            line, headers, body = problem(status, code, detail, own=own)
            self.transport.write(line + b"".join(b"%b: %b\r\n" % header for header in headers) + b"\r\n" + body)
            self._process.log(request["method"], request["path"], status)
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
        self._watch_unread()


async def _send_internal_error(cycle: Any, process: Process) -> None:
    """For a request whose application failed before it answered."""
    status, code = HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error"
    detail = "The hub failed; nothing of this request is certain."
    own = process.error_of(cycle.scope["path"], status, code, detail)
    _, headers, body = problem(status, code, detail, own=own)
    await cycle.send({"type": "http.response.start", "status": status.value, "headers": headers})
    await cycle.send({"type": "http.response.body", "body": body, "more_body": False})


def problem(
    status: HTTPStatus, code: str, detail: str, *, own: bytes | None = None, retry_after: int = 5, closes: bool = True
) -> tuple[bytes, list[tuple[bytes, bytes]], bytes]:
    """Status line, headers and body, in the form of the API's errors (docs/api.md) unless there is an `own` one. They
    hold nothing of the request. `closes`: the connection ends with it."""
    request_id = uuid.uuid4().hex
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": request_id,
        "errors": [],
    }
    body = own or json.dumps(document).encode()
    headers = [
        (b"content-type", b"application/json" if own else b"application/problem+json"),
        (b"content-length", b"%d" % len(body)),
        (b"x-request-id", request_id.encode()),
        (b"x-content-type-options", b"nosniff"),
    ]
    if closes:
        headers.append((b"connection", b"close"))
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.append((b"retry-after", str(retry_after).encode()))
    return STATUS_LINE[status], headers, body
