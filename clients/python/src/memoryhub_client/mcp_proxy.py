"""`memoryhub-client mcp`: a hub's memory over stdio, for desktop clients of MCP that start a process.

It knows no tool itself: what a client asks goes on to the hub's `/mcp` with the key, and the answer comes back.
"""

import os
import sys
from argparse import Namespace
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import anyio
import httpx2 as httpx
from mcp import Client, stdio_server
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server

from memoryhub_client.client import ADDRESS

PATH = "/mcp"
TIMEOUT_SECONDS = 60.0


def run(options: Namespace) -> int:
    """Serve until the client closes its end; the exit status."""
    key = options.key or os.environ.get("MEMORYHUB_KEY")
    if not key:
        return _fail("A key of the hub is needed: in MEMORYHUB_KEY, or with --key.")
    url = (options.url or os.environ.get("MEMORYHUB_URL") or ADDRESS).rstrip("/") + PATH
    return anyio.run(_serve, url, headers_of(key, options))


def headers_of(key: str, options: Namespace) -> dict[str, str]:
    """What goes with each request: the key, and whom it is about where the key does not say it."""
    named = {"X-Memory-User": options.user, "X-Memory-Agent": options.agent}
    # A header holds ASCII; the hub decodes it.
    return {"Authorization": f"Bearer {key}", **{name: quote(value) for name, value in named.items() if value}}


async def _serve(url: str, headers: dict[str, str]) -> int:
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS))
        try:
            hub = await stack.enter_async_context(Client(streamable_http_client(url, http_client=http), cache=None))
        except Exception as error:  # noqa: BLE001  # the transport ends with a group of them
            return _fail(f"The hub at {url} cannot be used: {_first(error)}")
        read, write = await stack.enter_async_context(stdio_server())
        server = proxy_of(hub)
        await server.run(read, write, server.create_initialization_options())
    return 0


def proxy_of(hub: Client) -> "Server[Any]":
    """A server that passes on what the hub serves."""
    session, info = hub.session, hub.server_info

    return Server(
        info.name if info else "memory-hub",
        version=info.version if info else "",
        title=info.title if info else None,
        instructions=hub.instructions,
        on_list_tools=lambda _, params: session.list_tools(params=params),
        on_call_tool=lambda _, params: session.call_tool(params.name, params.arguments),
        on_list_resources=lambda _, params: session.list_resources(params=params),
        on_list_resource_templates=lambda _, params: session.list_resource_templates(params=params),
        on_read_resource=lambda _, params: session.read_resource(params.uri),
        on_list_prompts=lambda _, params: session.list_prompts(params=params),
        on_get_prompt=lambda _, params: session.get_prompt(params.name, params.arguments),
    )


def _first(error: BaseException) -> BaseException:
    while errors := getattr(error, "exceptions", ()):
        error = errors[0]
    return error


def _fail(what: str) -> int:
    print(what, file=sys.stderr)  # noqa: T201
    return 1
