"""MCP behind the web server's own loop, asked by the SDK's own client over real HTTP."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from memories.curation.access.keys import Binding
from memories.mcp_server.mounted import MemoryServer
from memories.models import EndUser, Tenant
from tests import factories
from tests.commands.served import Served, said, served

ALL = ("ingest", "read", "write")


@dataclass
class Hub:
    """Where it listens, and how it is asked."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def use(self, key: str, work: Callable[[Client], Awaitable[Any]], *, mode: Any = "auto", **headers: str) -> Any:
        """What `work` returns for a client with this key; headers as `user` for X-Memory-User."""

        async def used() -> Any:
            named = {f"X-Memory-{name}": value for name, value in headers.items()}
            given = {"Authorization": f"Bearer {key}", **named}
            async with (
                httpx2.AsyncClient(headers=given, timeout=120) as http,
                Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
            ):
                return await work(client)

        try:
            return asyncio.run(used())
        except ExceptionGroup as group:
            # A client that goes with an error ends its connection with a group of it.
            error: BaseException = group
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            raise error from None

    def call(self, key: str, name: str, arguments: dict[str, Any] | None = None, **headers: str) -> Any:
        """The result of a tool."""
        return self.use(key, lambda client: client.call_tool(name, arguments or {}), **headers)

    def read(self, key: str, uri: str) -> str:
        result = self.use(key, lambda client: client.read_resource(uri))
        return "".join(one.text for one in result.contents)

    def post(self, document: Any, **headers: str) -> httpx2.Response:
        """As no client would: headers by their names with `_`."""
        usual = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = {"content": document} if isinstance(document, bytes) else {"json": document}
        return httpx2.post(self.url, headers={**usual, **named}, timeout=120, **content)


def text_of(result: Any) -> str:
    return "\n".join(one.text for one in result.content)


def key_for(person: EndUser, scopes: tuple[str, ...] = ALL, **binding: str) -> str:
    bound = Binding(user_id=person.external_id, **binding)
    return factories.api_key(person.tenant, scopes=scopes, binding=bound)[1]


@pytest.fixture
def hub() -> Iterator[Hub]:
    server: Served
    with served(said(b"Django's"), beside=[MemoryServer]) as server:
        yield Hub(server.port)


@pytest.fixture
def tenant(transactional_db: None) -> Tenant:
    return factories.tenant()


@pytest.fixture
def person(tenant: Tenant) -> EndUser:
    return factories.end_user(tenant)


@pytest.fixture
def key(person: EndUser) -> str:
    return key_for(person)
