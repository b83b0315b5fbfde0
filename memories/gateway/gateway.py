"""One exchange in the loop: look up the context, ask the endpoint, stream its answer through, keep what was said."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, Protocol, TypeVar

import httpx2
from django.db import InterfaceError, OperationalError, close_old_connections

from memories.api.errors import problem_of
from memories.conf import LLMConfig
from memories.curation.access.keys import holds_key
from memories.exceptions import HubBusy, MemoryHubError
from memories.gateway import memory, operations
from memories.gateway.collecting import Collector
from memories.gateway.dialects import Dialect
from memories.gateway.memory import Exchange, GatewayRefused, Given
from memories.gateway.operations import OVERRIDING, Operation, Target
from memories.gateway.upstream import Headers, Unreachable, Upstream, passed_on
from memories.telemetry import traces
from memories.telemetry.families import GATEWAY, note_request
from memories.text.secrets import effort

T = TypeVar("T")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# Where no context is there by then, the answer goes on without it.
RECALL_SECONDS = 0.3
# What the person said is stored once the answer has begun, or after so long without a word of it.
KEEP_SECONDS = 0.1
# Claude Code asks this at its start, to see whether its API is there.
HELLO = "/api/hello"
# The route of requests for what is not passed on.
UNKNOWN = "unknown"
# Written anew, or the hub's own; further ones begin with the second.
_KEY_HEADERS = (b"authorization", b"x-api-key")
_NOT_PASSED_ON = ("content-length", *(name.decode() for name in _KEY_HEADERS), *OVERRIDING)
_OWN = ("x-memory", "x-forwarded-")

logger = logging.getLogger(__name__)


class Runs(Protocol):
    """Runs a function in one of the threads that may ask the database."""

    async def __call__(self, call: Callable[[], T]) -> T: ...


class Gateway:
    """Answers requests whose bodies were read. `run` runs a function in a thread; `log` is called with method, path,
    status and seconds for each answer."""

    def __init__(self, run: Runs, log: Callable[[str, str, int, float], None]) -> None:
        self._threads, self._log = run, log
        self._upstream = Upstream()
        # Contexts that came too late: their threads go on, and their outcome interests nobody.
        self._late: set[asyncio.Future[Any]] = set()

    @staticmethod
    def handles(path: str) -> bool:
        return path == HELLO or operations.is_below(path)

    @staticmethod
    def error(path: str, status: int, code: str, detail: str) -> bytes:
        """In the form of the protocol that this path is of."""
        return json.dumps(operations.protocol_of(path).error(status, code, detail)).encode()

    async def __call__(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        began = monotonic()
        answering = _Answering(scope, send)
        try:
            await self._answer(scope, body, receive, answering)
        except GatewayRefused as refused:
            await answering.refuse(refused)
        except Unreachable as error:
            await answering.refuse(GatewayRefused(502, "endpoint_unreachable", str(error)))
        except MemoryHubError as error:
            headers = {"retry-after": str(error.seconds)} if isinstance(error, HubBusy) else None
            await answering.refuse(GatewayRefused(error.status, error.code, error.detail, headers))
        except (OperationalError, InterfaceError) as error:
            problem = problem_of(error)
            if problem is None:
                raise
            await answering.refuse(GatewayRefused(problem.status, problem.code, problem.detail, problem.headers))
        finally:
            took, declared = monotonic() - began, operations.declared_path(scope["path"])
            traces.record("gateway", took, path=declared or UNKNOWN, status=answering.status)
            note_request(declared[1:] or UNKNOWN, scope["method"], answering.status, took)
            self._log(scope["method"], declared or scope["path"], answering.status, took)

    async def preload(self) -> None:
        """Nothing is loaded late."""

    async def end(self) -> None:
        await self._upstream.close()

    async def _run(self, call: Callable[[], T]) -> T:
        return await self._threads(partial(_connected, call))

    async def _answer(self, scope: Message, body: bytes, receive: Receive, answering: "_Answering") -> None:
        if scope["path"] == HELLO and scope["method"] in ("GET", "HEAD"):
            await answering.say(200, b'{"message": "hello"}')
            return
        target = operations.target_of(scope["method"], scope["path"])
        headers = _texts(scope["headers"])
        most = target.operation.most_bytes
        # Of a body that the server would not take, only its Content-Length is here.
        if most and max(len(body), int(headers.get("content-length", "0"))) > most:
            raise GatewayRefused(413, "too_large", f"This request may have {most:,} bytes.")
        sent = _Sent(scope, headers, target, operations.query_of(scope["query_string"]))
        if target.operation.converses:
            exchange, given = await self._open(sent.operation.protocol, headers, body)
            GATEWAY.count("used" if given.body else given.reason)
            await self._converse(_Request(sent, exchange, given, given.body or body), receive, answering)
        else:
            # As it is: with no memory, and keeping nothing.
            _, config = await self._run(partial(memory.authenticate, headers, scopes=sent.operation.scopes))
            response = await self._ask(sent, config, body=body if most else b"")
            await _stream(response, receive, answering, collector=None, added=[])

    async def _open(self, dialect: Dialect, headers: Mapping[str, str], body: bytes) -> tuple[Exchange, Given]:
        """The request, checked, and its context unless that takes too long or fails: no conversation waits for its
        memory. One thread does both, one after the other."""
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[Exchange] = loop.create_future()
        at_hand: asyncio.Future[Given] = loop.create_future()

        def recall() -> Given:
            exchange = memory.open_exchange(dialect, headers, body)
            loop.call_soon_threadsafe(_set_result, opened, exchange)
            return memory.recall(exchange, dialect, has_at_hand)

        def has_at_hand(given: Given) -> None:
            loop.call_soon_threadsafe(_set_result, at_hand, given)

        recalling: asyncio.Future[Given] = asyncio.ensure_future(self._run(recall))
        self._late.add(recalling)
        recalling.add_done_callback(self._late.discard)
        either: set[asyncio.Future[Any]] = {opened, recalling}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            # It was refused, which this raises.
            recalling.result()
        return opened.result(), await self._given(recalling, at_hand)

    async def _given(self, recalling: "asyncio.Future[Given]", at_hand: "asyncio.Future[Given]") -> Given:
        """What is remembered; where that is not ready in time, what earlier requests of the conversation carried."""
        is_ready = await _in_time(recalling)
        error = recalling.exception() if is_ready else None
        if is_ready and error is None:
            return recalling.result()
        if error is not None:
            logger.error("A request goes on without memory: %s", type(error).__name__)
        else:
            recalling.add_done_callback(_look_at)
        earlier = at_hand.result() if at_hand.done() else Given()
        return replace(earlier, reason="timeout" if error is None else "error")

    async def _converse(self, request: "_Request", receive: Receive, answering: "_Answering") -> None:
        exchange = request.exchange
        response = await self._ask(request.sent, exchange.config, body=request.body)
        collector = None
        keeping = None
        begun = asyncio.Event()
        if exchange.may_keep and response.status_code < 400:
            protocol = request.sent.operation.protocol
            collector = Collector(protocol, streams="event-stream" in response.headers.get("content-type", ""))
        if collector is not None or request.given.sending:
            keeping = asyncio.ensure_future(self._keep_asked(request, begun, is_answered=collector is not None))

        async def finish() -> None:
            begun.set()
            if keeping is None:
                return
            kept, last = await keeping or (exchange, 0)
            if collector is not None and (answer := collector.answer().messages()):
                await self._keep(partial(memory.keep_answer, kept, answer, after=last))

        added = _memory_headers(request)
        await _stream(response, receive, answering, collector=collector, added=added, begun=begun, finish=finish)

    async def _keep_asked(
        self, request: "_Request", begun: asyncio.Event, *, is_answered: bool
    ) -> tuple[Exchange, int] | None:
        """Beside the answer: it does not wait, and what the person said is kept if nothing comes of it. A thread at
        work would hold up its first part. What was sent is kept whatever the endpoint answers, as it may be asked
        again."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(begun.wait(), KEEP_SECONDS)
        kept = await self._keep(partial(memory.keep, request.exchange)) if is_answered else None
        await self._keep(partial(memory.keep_sent, request.exchange, request.given))
        return kept

    async def _keep(self, store: Callable[[], T]) -> T | None:
        """Whatever happens, the client's answer goes on."""
        [stored] = await asyncio.gather(self._run(store), return_exceptions=True)
        if isinstance(stored, BaseException):
            # Its text may hold what was said.
            logger.error("A conversation was not kept: %s", type(stored).__name__)
            return None
        return stored

    async def _ask(self, sent: "_Sent", config: LLMConfig, *, body: bytes) -> httpx2.Response:
        # None of the hub's own, and none that holds a key of the hub.
        passed = [
            (name, value)
            for name, value in passed_on(sent.scope["headers"], without=_NOT_PASSED_ON)
            if not name.decode("latin-1").lower().startswith(_OWN) and not _holds_key(name, value)
        ]
        headers = [*passed, *_keys(sent, config), (b"accept-encoding", b"identity")]
        return await self._upstream.ask(
            config,
            method=sent.operation.method,
            path=sent.target.path,
            query=sent.query,
            headers=headers,
            body=body,
        )


@dataclass(frozen=True)
class _Sent:
    """A request as it came, what it names, and the query that goes on."""

    scope: Message
    headers: Mapping[str, str]
    target: Target
    query: str

    @property
    def operation(self) -> Operation:
        return self.target.operation


@dataclass(frozen=True)
class _Request:
    """A request with its context, ready to go on."""

    sent: _Sent
    exchange: Exchange
    given: Given
    body: bytes


def _holds_key(name: bytes, value: bytes) -> bool:
    return holds_key(f"{name.decode('latin-1')}: {value.decode('latin-1')}")


def _keys(sent: _Sent, config: LLMConfig) -> Headers:
    """What the endpoint takes for a key: the caller's own where the hub's came beside it, else the endpoint's."""
    if sent.headers.get("x-memory-key"):
        own = [one for one in sent.scope["headers"] if one[0].lower() in _KEY_HEADERS and not _holds_key(*one)]
        if own:
            return own
    name, before = sent.operation.protocol.key_header
    return [(name.encode(), (before + config.api_key).encode())] if config.api_key else []


class _Answering:
    """The answer to one client, and its status."""

    def __init__(self, scope: Message, send: Send) -> None:
        self._scope, self._send = scope, send
        self.status = 0

    async def begin(self, status: int, headers: Headers) -> None:
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def part(self, body: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def refuse(self, refused: GatewayRefused) -> None:
        if self.status:
            # The answer has begun: its end tells that it is not whole.
            return
        body = Gateway.error(self._scope["path"], refused.status, refused.code, refused.detail)
        await self.say(refused.status, body, refused.headers)

    async def say(self, status: int, body: bytes, more: Mapping[str, str] | None = None) -> None:
        """Answer for the hub itself, in JSON."""
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.encode(), value.encode()) for name, value in (more or {}).items()]
        await self.begin(status, headers)
        await self.part(body, more=False)


def _connected(call: Callable[[], T]) -> T:
    """In a thread, whose connection an earlier call may have left broken."""
    close_old_connections()
    with effort.bounded():
        return call()


def _memory_headers(request: _Request) -> Headers:
    """What the gateway tells of its own part, in headers of the answer."""
    given, exchange = request.given, request.exchange
    if given.body:
        headers = {
            "x-memory": "used",
            "x-memory-tokens": str(given.tokens),
            "x-memory-tokenizer": exchange.wanted.counted_by,
        }
        headers |= {"x-memory-reason": given.reason} if given.reason else {}
    else:
        headers = {"x-memory": "none", "x-memory-reason": given.reason}
    if not exchange.is_kept:
        headers["x-memory-kept"] = "no"
    elif exchange.session_id.isascii():
        headers["x-memory-session"] = exchange.session_id
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


async def _stream(
    response: httpx2.Response,
    receive: Receive,
    answering: _Answering,
    *,
    collector: Collector | None,
    added: Headers,
    begun: asyncio.Event | None = None,
    finish: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Pass the answer on as it comes. `finish` runs before its end, also when the client has left: the endpoint is not
    asked for more then. Who has read the whole answer finds what was said among the turns. `begun` is set once a part
    of it was sent."""
    passing = asyncio.ensure_future(_pass(response, answering, collector, added, begun or asyncio.Event()))
    leaving = asyncio.ensure_future(_gone(receive))
    last = b""
    try:
        await asyncio.wait({passing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not passing.done():
            passing.cancel()
        with suppress(asyncio.CancelledError):
            last = await passing
    finally:
        leaving.cancel()
        passing.cancel()
        await response.aclose()
        if finish is not None:
            await finish()
    await answering.part(last, more=False)


async def _pass(
    response: httpx2.Response,
    answering: _Answering,
    collector: Collector | None,
    added: Headers,
    begun: asyncio.Event,
) -> bytes:
    """Send all but the end of the answer, which is returned: the last part of one with a known length, of a stream what
    comes once the model has ended. Clients stop reading there. Errors: Unreachable."""
    await answering.begin(response.status_code, passed_on(response.headers.raw) + added)
    has_length, held = "content-length" in response.headers, b""
    try:
        async for part in response.aiter_raw():
            if collector is not None:
                collector.add(part)
            if collector is not None and collector.has_ended:
                held += part
                continue
            ready, held = (held, part) if has_length else (part, b"")
            if ready:
                await answering.part(ready, more=True)
                begun.set()
    except httpx2.HTTPError:
        raise Unreachable("The endpoint broke its answer off.") from None
    return held


async def _in_time(recalling: "asyncio.Future[Any]") -> bool:
    done, _ = await asyncio.wait({recalling}, timeout=RECALL_SECONDS)
    return bool(done)


def _set_result(future: "asyncio.Future[T]", value: T) -> None:
    """The client may have left meanwhile."""
    if not future.done():
        future.set_result(value)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _look_at(late: "asyncio.Future[Any]") -> None:
    """An error that nobody looks at would be logged with all that it names."""
    if not late.cancelled():
        late.exception()


def _texts(headers: Headers) -> dict[str, str]:
    """Headers by their lower-cased names; those with "_" could pass for others."""
    found = {}
    for name, value in headers:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        found[name.decode("latin-1").lower()] = text
    return found
