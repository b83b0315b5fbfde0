"""`/mcp` in the web server's loop: from whom a request may come, and the SDK's transport, which lives as long as the
process does once it is loaded: some seconds after the start, or when somebody asks before that."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from time import monotonic
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from django.http.request import split_domain_port, validate_host

from memories.api.errors import problem_of
from memories.api.parsers import decode
from memories.api.shapes import LEAST_VALUES
from memories.exceptions import HubBusy, InvalidInput
from memories.mcp_server.callers import MCPCaller, RefusedRequest, identify
from memories.telemetry.families import note_request

T = TypeVar("T")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
PATH = "/mcp"
MOST_BODY_BYTES = 10 * 1024 * 1024
# JSON-RPC's own code of a request that is none; what was wrong is in the message.
_INVALID_REQUEST = -32600

logger = logging.getLogger(__name__)


class Runs(Protocol):
    """Runs a function in one of the threads that may ask the database."""

    async def __call__(self, call: Callable[[], T]) -> T: ...


class MemoryServer:
    """Answers requests whose bodies were read. `run` runs a function in a thread; `log` is called with method, path,
    status and seconds for each answer."""

    def __init__(self, run: Runs, log: Callable[[str, str, int, float], None]) -> None:
        self._run, self._log = run, log
        self._starting: asyncio.Future[Any] | None = None
        self._living: asyncio.Task[None] | None = None

    @staticmethod
    def handles(path: str) -> bool:
        return path in (PATH, f"{PATH}/")

    @staticmethod
    def error(_path: str, _status: int, _code: str, detail: str) -> bytes:
        """In JSON-RPC's form."""
        error = {"code": _INVALID_REQUEST, "message": detail}
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()

    async def __call__(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        began, status = monotonic(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._answer(scope, body, receive, noted)
        except RefusedRequest as refused:
            await _refuse(refused, noted)
        except HubBusy as error:
            headers = {"retry-after": str(error.seconds)}
            await _refuse(RefusedRequest(error.status, error.detail, headers), noted)
        finally:
            took = monotonic() - began
            note_request(PATH[1:], scope["method"], status, took)
            self._log(scope["method"], PATH, status, took)

    async def preload(self) -> None:
        """Load the transport, before anybody waits for it."""
        # Who asks is told of the error; then it is tried again.
        with suppress(ImportError, OSError):
            await self._transport()

    async def end(self) -> None:
        """End what the transport runs."""
        if self._living:
            self._living.cancel()
            with suppress(asyncio.CancelledError):
                await self._living

    async def _answer(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("utf-8", "replace") for name, value in scope["headers"]}
        # What a page of another site sends through a browser (DNS rebinding).
        if not _is_ours(headers.get("host", "")):
            raise RefusedRequest(421, "This Host is not one of the hub's: see MEMORYHUB_ALLOWED_HOSTS.")
        if (origin := headers.get("origin")) and not _is_ours(urlsplit(origin).netloc):
            raise RefusedRequest(403, "This Origin is not one of the hub's: see MEMORYHUB_ALLOWED_HOSTS.")
        if scope["method"] != "POST":
            # Nothing is ever sent unasked, and there are no sessions to end.
            raise RefusedRequest(
                405, "Send requests by POST: this server has no sessions and no streams.", {"allow": "POST"}
            )
        # Of a longer one nothing was read.
        if max(len(body), int(headers.get("content-length", "0"))) > MOST_BODY_BYTES:
            raise RefusedRequest(413, f"A request may have {MOST_BODY_BYTES:,} bytes.")
        asker = await self._run(partial(_opened, headers, body))
        transport = await self._transport()
        # The asker goes where its handlers find the request.
        asked = {**scope, "memory_hub.asker": asker}
        await transport.handle_request(asked, _replayed(body, receive), send)

    async def _transport(self) -> Any:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        try:
            # A client that leaves meanwhile must not stop it for the others.
            return await asyncio.shield(self._starting)
        except (ImportError, OSError):
            self._starting = None
            raise

    async def _start(self) -> Any:
        # In a thread: loading takes a second or two.
        protocol = await self._run(partial(import_module, "memories.mcp_server.protocol"))
        transport = protocol.transport(self._run, most_bytes=MOST_BODY_BYTES)
        ready = asyncio.Event()
        self._living = asyncio.ensure_future(_live(transport, ready))
        await ready.wait()
        return transport


async def _live(transport: Any, ready: asyncio.Event) -> None:
    """Hold the transport's lifespan in one task, as its cancel scopes must be left where they were entered."""
    async with transport.run():
        ready.set()
        await asyncio.Event().wait()


def _is_ours(host: str) -> bool:
    domain, _port = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _opened(headers: dict[str, str], body: bytes) -> MCPCaller:
    """Who asks, in a thread. What PostgreSQL, UTF-8 or the stack cannot hold is refused as by the API. Errors:
    Refused."""
    close_old_connections()
    try:
        asker = identify(headers)
        decode(body, most=LEAST_VALUES)
        return asker
    except InvalidInput as error:
        faults = "; ".join(f"{fault.pointer or 'body'}: {fault.detail}" for fault in error.faults)
        raise RefusedRequest(400, faults or error.detail) from None
    except (OperationalError, InterfaceError) as error:
        problem = problem_of(error)
        if problem is None:
            raise
        raise RefusedRequest(problem.status, problem.detail, problem.headers) from None


async def _refuse(refused: RefusedRequest, send: Send) -> None:
    body = MemoryServer.error(PATH, refused.status, "", refused.detail)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in refused.headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then whatever else the client does."""
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replay() -> Message:
        return next(parts, None) or await receive()

    return replay
