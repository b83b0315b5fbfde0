"""A gateway behind the web server's own loop, between a client's real HTTP and an endpoint on loopback."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from memories.capture import authors
from memories.gateway import gateway
from memories.models import Tenant, Turn
from tests import factories
from tests.commands.served import Served, said, served
from tests.gateway import wire
from tests.llm.endpoint import Endpoint, running


class Client:
    """Talks to the gateway as an application would."""

    def __init__(self, server: Served, key: str) -> None:
        self.address, self.key = f"http://127.0.0.1:{server.port}/v1", key
        # What the client's library sends by itself.
        self.others: dict[str, str] = {}

    def post(self, document: Any, *, path: str = "/chat/completions", **headers: str) -> httpx2.Response:
        """Headers are given as `user` for X-Memory-User, and so on; `mode` is X-Memory, `bearer` another key,
        `alone` the key without Authorization."""
        own = {f"x-memory-{name}" if name else "x-memory": value for name, value in headers.items()}
        if "mode" in headers:
            own["x-memory"] = own.pop("x-memory-mode")
        bearer = own.pop("x-memory-bearer", self.key)
        if "x-memory-alone" in own:
            own["x-api-key"] = own.pop("x-memory-alone")
        else:
            own["authorization"] = f"Bearer {bearer}"
        return httpx2.post(
            self.address + path,
            content=document if isinstance(document, bytes) else json.dumps(document).encode(),
            headers={"content-type": "application/json", **own, **self.others},
            timeout=120,
        )

    def get(self, path: str, *, bearer: str = "") -> httpx2.Response:
        return httpx2.get(self.address + path, headers={"authorization": f"Bearer {bearer or self.key}"}, timeout=120)


@pytest.fixture
def endpoint(settings: Any) -> Iterator[Endpoint]:
    with running() as endpoint:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = endpoint.url, "sk-of-the-hub"
        yield endpoint


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine looks up no slower than a quiet one, and tests may type faster than people."""
    monkeypatch.setattr(gateway, "RECALL_SECONDS", 120.0)
    monkeypatch.setattr(authors, "HASTE", timedelta(0))


@pytest.fixture
def tenant(transactional_db: None) -> Tenant:
    return factories.tenant()


@pytest.fixture
def client(tenant: Tenant, endpoint: Endpoint) -> Iterator[Client]:
    _, key = factories.api_key(tenant, scopes=["ingest", "read"])
    with served(said(b"Django's"), beside=[gateway.Gateway]) as server:
        yield Client(server, key)


@pytest.fixture
def noted(settings: Any) -> Iterator[wire.Noting]:
    with wire.noting() as noted:
        settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = noted.url, wire.KEY
        yield noted


@pytest.fixture
def sender(tenant: Tenant, noted: wire.Noting) -> Iterator[wire.Wire]:
    _, key = factories.api_key(tenant, scopes=["ingest", "read"])
    with served(said(b"<html>Django's</html>"), beside=[gateway.Gateway]) as server:
        yield wire.Wire(server, key)


# A block of memory, and what parts it from what follows.
BLOCK = re.compile(r"^<memory>\n.*?\n</memory>(?:\n\n|$)", re.DOTALL)


def without_recalled(document: dict[str, Any]) -> dict[str, Any]:
    """A request as it was sent on, without the blocks that stand before what users say."""
    name = "input" if "input" in document else "messages"
    given = document[name]
    if isinstance(given, str):
        return document
    items = [_without_block(item, "developer" if name == "input" else "user") for item in given]
    return {**document, name: [item for item in items if item is not None]}


def _without_block(item: dict[str, Any], role: str) -> dict[str, Any] | None:
    content = item.get("content")
    if item.get("role") != role or content is None:
        return item
    if isinstance(content, str):
        return {**item, "content": BLOCK.sub("", content)}
    parts = [part for part in content if not BLOCK.match(part.get("text") or "")]
    return None if role == "developer" and not parts else {**item, "content": parts}


def stored() -> list[tuple[str, str]]:
    """Role and text of all turns, in order."""
    return list(Turn.objects.order_by("session__created_at", "session", "number").values_list("role", "content"))
