"""`MemoryHub`, `AsyncMemoryHub`: the operations of the API over HTTP. `HubManagement`, `AsyncHubManagement`: those for
management keys."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Generic, TypeVar

from typing_extensions import Self

from memoryhub_client._calls import PreparedRequest
from memoryhub_client._events import AnswerEvent, EventReader, prepared
from memoryhub_client._page import Page
from memoryhub_client._retrying import Came, Retries, RetryDelay, httpx, refusal, steps, unreachable
from memoryhub_client.errors import UnexpectedAnswerError
from memoryhub_client.management import ManagementOperations
from memoryhub_client.operations import Operations

T = TypeVar("T")
ADDRESS = "http://127.0.0.1:8000"
TIMEOUT_SECONDS = 30.0


class Hub:
    """A hub, asked with one key. It may be shared by threads.

    `key` and `base_url` are those of MEMORYHUB_KEY and MEMORYHUB_URL unless given. `timeout` is for each attempt, in
    seconds. `transport` is one of the HTTP library's: for a test double, a proxy or certificates of your own.
    """

    def __init__(
        self,
        key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: Retries = Retries(),  # noqa: B008  # frozen
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        # How often it was told to change or delete something that contexts tell.
        self.taken_back = 0
        self._retries = retries
        self._http = httpx.Client(transport=transport, **_options(key, base_url, timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _answer(self, call: PreparedRequest, read: Callable[[bytes], T]) -> T:
        going = steps(call, self._retries)
        outcome: Came | None = None
        if call.takes_back:
            # Before it is sent: an answer that is lost may have been a yes.
            self.taken_back += 1
        while True:
            try:
                step = going.send(outcome)
            except StopIteration as end:
                return read(end.value)
            if isinstance(step, RetryDelay):
                time.sleep(step.seconds)
            else:
                outcome = self._send(call)

    def _send(self, call: PreparedRequest) -> Came:
        try:
            return self._http.send(_request(self._http, call))
        except httpx.TransportError as error:
            return error

    def _pages(self, call: PreparedRequest, read: Callable[[bytes], Page[T]]) -> "Pages[T]":
        return Pages(lambda cursor: self._answer(_continued(call, cursor), read))


class MemoryHub(Hub, Operations):
    """A hub with its memories, asked with a key of a tenant."""

    def stream_answer(self, *, user_id: str | None, question: str, **given: Any) -> Iterator[AnswerEvent]:
        """As `answer_question`, with its arguments: what can be told so far, and the whole answer at the end.

        Whoever ends the loop early ends the model's call with it. It is not sent again when a connection breaks.
        """
        request = _request(self._http, prepared({"user_id": user_id, "question": question, **given}))
        reader = EventReader()
        try:
            response = self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    response.read()
                    raise refusal(response) or UnexpectedAnswerError
                for part in response.iter_bytes():
                    yield from reader.add(part)
            finally:
                response.close()
        except httpx.TransportError as error:
            raise unreachable(error) from error
        reader.end()


class HubManagement(Hub, ManagementOperations):
    """A hub's tenants, with their settings, keys and webhooks, managed with a management key."""


class AsyncHub:
    """As `Hub`, for asyncio: operations are awaited, lists are iterated with `async for`."""

    def __init__(
        self,
        key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: Retries = Retries(),  # noqa: B008  # frozen
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._retries = retries
        self._http = httpx.AsyncClient(transport=transport, **_options(key, base_url, timeout))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _answer(self, call: PreparedRequest, read: Callable[[bytes], T]) -> T:
        going = steps(call, self._retries)
        outcome: Came | None = None
        while True:
            try:
                step = going.send(outcome)
            except StopIteration as end:
                return read(end.value)
            if isinstance(step, RetryDelay):
                await asyncio.sleep(step.seconds)
            else:
                outcome = await self._send(call)

    async def _send(self, call: PreparedRequest) -> Came:
        try:
            return await self._http.send(_request(self._http, call))
        except httpx.TransportError as error:
            return error

    def _pages(self, call: PreparedRequest, read: Callable[[bytes], Page[T]]) -> "AsyncPages[T]":
        return AsyncPages(lambda cursor: self._answer(_continued(call, cursor), read))


class AsyncMemoryHub(AsyncHub, Operations):
    """As `MemoryHub`, for asyncio."""

    async def stream_answer(self, *, user_id: str | None, question: str, **given: Any) -> AsyncIterator[AnswerEvent]:
        """As `MemoryHub.stream_answer`, with `async for`."""
        request = _request(self._http, prepared({"user_id": user_id, "question": question, **given}))
        reader = EventReader()
        try:
            response = await self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise refusal(response) or UnexpectedAnswerError
                async for part in response.aiter_bytes():
                    for event in reader.add(part):
                        yield event
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise unreachable(error) from error
        reader.end()


class AsyncHubManagement(AsyncHub, ManagementOperations):
    """As `HubManagement`, for asyncio."""


class Pages(Generic[T]):
    """A list: its items one after the other, each page fetched when it is needed. It can be iterated again."""

    def __init__(self, fetch: Callable[[str | None], Page[T]]) -> None:
        self._fetch = fetch

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.results

    def pages(self) -> Iterator[Page[T]]:
        """Page by page, with the cursors."""
        page = self.page()
        yield page
        while page.next_cursor:
            page = self._fetch(page.next_cursor)
            yield page

    def page(self) -> Page[T]:
        """The first page alone, or that of the `cursor` that the list was given."""
        return self._fetch(None)


class AsyncPages(Generic[T]):
    """As `Pages`, with `async for`."""

    def __init__(self, fetch: Callable[[str | None], Any]) -> None:
        self._fetch = fetch

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for one in page.results:
                yield one

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Page by page, with the cursors."""
        page = await self.page()
        yield page
        while page.next_cursor:
            page = await self._fetch(page.next_cursor)
            yield page

    async def page(self) -> Page[T]:
        """The first page alone, or that of the `cursor` that the list was given."""
        found: Page[T] = await self._fetch(None)
        return found


def _options(key: str | None, base_url: str | None, timeout: float) -> dict[str, Any]:
    key = key or os.environ.get("MEMORYHUB_KEY")
    if not key:
        raise ValueError("A key of the hub is needed: as the first argument, or in MEMORYHUB_KEY.")
    return {
        "base_url": base_url or os.environ.get("MEMORYHUB_URL") or ADDRESS,
        "headers": {"Authorization": f"Bearer {key}", "Accept": "application/json, */*;q=0.1"},
        "timeout": timeout,
        # The key is for this hub alone.
        "follow_redirects": False,
    }


def _request(http: httpx.Client | httpx.AsyncClient, call: PreparedRequest) -> httpx.Request:
    """The request, by hand where nothing is to be merged: the library takes a fifth of a call's time for that."""
    if call.query or http.cookies:
        return http.build_request(
            call.method, call.path, params=tuple(call.query) or None, headers=call.headers, content=call.body
        )
    headers = [*http.headers.raw, *((name.encode(), value.encode()) for name, value in call.headers.items())]
    return httpx.Request(call.method, _address(http.base_url, call.path), headers=headers, content=call.body)


@lru_cache(maxsize=64)
def _address(base: httpx.URL, path: str) -> httpx.URL:
    return httpx.URL(str(base).rstrip("/") + path)


def _continued(call: PreparedRequest, cursor: str | None) -> PreparedRequest:
    if cursor is None:
        return call
    return replace(call, query=[*(one for one in call.query if one[0] != "cursor"), ("cursor", cursor)])
