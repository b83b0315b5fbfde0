"""The row about MCP: a call of a tool beside the same call of the API, and what such calls cost the others."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.connection import Connection
from typing import Any

from benchmarks import load, rows
from benchmarks.figures import Figure, at_least
from benchmarks.gateway import MountedApp, kept_beside, meanwhile
from benchmarks.load import RefusedError, Server
from benchmarks.rows import row
from benchmarks.stage import Stage

PERSON = "fan-0"
# Calls a second, beside which the others are measured.
A_SECOND = 20
WARM_UP = 10
# The tool, and the same by the API.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "get_context": ("/api/v1/context", {"max_tokens": 2_000}),
    "search_memory": ("/api/v1/search", {"kinds": ["fact", "episode", "turn"], "limit": 10}),
}


@row("mcp")
def mcp(stage: Stage) -> Iterator[Figure]:
    """The key is for a person with 50 facts. Requests for the same come by turns, by MCP and by the API."""
    rows.contexts(stage)
    bound = Server(stage.hub.port, _key())
    for tool in CALLS:
        by_api, by_mcp = _turn_by_turn(bound, tool, count=stage.size.requests * 2)
        what, late = f"MCP, {tool} ÷ the same by the API, 1 client", int(len(by_api) * 0.95)
        yield Figure(f"{what}, p50", statistics.median(by_mcp), "ms", floor=statistics.median(by_api))
        yield Figure(f"{what}, p95", by_mcp[late], "ms", floor=by_api[late])
    yield from _beside_calls(stage, bound)


def _turn_by_turn(bound: Server, tool: str, *, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each call, sorted: by the API and by MCP."""
    asked = [(_by_api(bound, tool, at), _by_mcp(bound, tool, at)) for at in range(WARM_UP + count)]
    measured = load.run(bound, [[request for pair in asked for request in pair]]).milliseconds[2 * WARM_UP :]
    return sorted(measured[::2]), sorted(measured[1::2])


def _by_api(bound: Server, tool: str, at: int) -> bytes:
    path, given = CALLS[tool]
    return bound.request("POST", path, {**given, "user_id": PERSON, "query": _query(at)})


def _by_mcp(bound: Server, tool: str, at: int) -> bytes:
    called = {"name": tool, "arguments": {"query": _query(at)}}
    document = {"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": called}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    return bound.request("POST", "/mcp", document, **headers)


def _query(at: int) -> str:
    return f"{rows.text(at)} ({at})"


def _beside_calls(stage: Stage, bound: Server) -> Iterator[Figure]:
    def calling(make: Any) -> Any:
        return lambda: _steady(bound, [make(bound, tool, at) for at in range(100) for tool in CALLS])

    beside: MountedApp = {"without": nullcontext, "api": calling(_by_api), "mcp": calling(_by_mcp)}
    calls = f"{A_SECOND} calls a second"
    for what, found in kept_beside(stage, beside).items():
        by_mcp = f"{what}, beside {calls} by MCP"
        yield Figure(f"{by_mcp} ÷ as many by the API", found["mcp"], "a second", at_least(0.9, 0.97), found["api"])
        yield Figure(f"{by_mcp} ÷ without", found["mcp"], "a second", floor=found["without"])


def _steady(server: Server, requests: Sequence[bytes]) -> AbstractContextManager[None]:
    """These requests one after the other, at their rate."""
    return meanwhile(_ask, server, requests)


def _ask(server: Server, requests: Sequence[bytes], parent: Connection) -> None:
    try:
        load.answers(server, requests[:1])
        parent.send("open")
        began, asked = time.monotonic(), 0
        while not parent.poll(max(0.0, began + asked / A_SECOND - time.monotonic())):
            load.answers(server, [requests[asked % len(requests)]])
            asked += 1
        parent.send("whole")
    except (RefusedError, OSError, EOFError) as error:
        parent.send(f"{type(error).__name__}: {error}")


def _key() -> str:
    """A key for the person, as agents have one."""
    # Django is set up only when a stage is open.
    from django.db import connections

    from memories.curation.access.keys import Binding
    from memories.models import Tenant
    from tests import factories

    _, key = factories.api_key(Tenant.objects.get(slug="bench"), binding=Binding(user_id=PERSON))
    # The clients are forked: they must not share a connection.
    connections.close_all()
    return key
