"""Files that are sent to the web server: whoever may not send one takes no place, and nothing of it is kept."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.servers.basehttp import get_internal_wsgi_application
from django.test import Client
from django.urls import reverse
from uvicorn.config import Config

from memories.api import throttles
from memories.models import Import
from memories.web import front
from memories.web.application import HubServer
from memories.web.connection import Connection, ConnectionLimits, Process
from memories.web.front import RequestBuffer
from memories.web.threads import Threads
from tests import factories
from tests.api.conftest import Hub, hub_of

pytestmark = pytest.mark.django_db(transaction=True)
PATH, PAGE = "/api/v1/imports", reverse("admin:memories_import_add")
# Larger than what is read into memory here, and than what the server reads ahead.
BODY = b"x" * 200_000


@pytest.fixture
def hub(transactional_db: None, settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    settings.HOME = tmp_path
    monkeypatch.setattr(front, "MOST_BODY_BYTES", 1000)
    return hub_of(factories.tenant())


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The files that the server made for what is sent."""
    made: list[Any] = []
    spooled = SpooledTemporaryFile

    def noted(*arguments: Any, **named: Any) -> Any:
        made.append(spooled(*arguments, **named))
        return made[-1]

    monkeypatch.setattr(front, "SpooledTemporaryFile", noted)
    return made


class Serving:
    """The hub's own front, on a port of its own, with what it logged."""

    def __init__(self, port: int, logged: list[str], buffer: RequestBuffer) -> None:
        self.port, self.logged, self.buffer = port, logged, buffer

    @property
    def free(self) -> int:
        return self.buffer._uploads._value

    async def begin(self, key: str, path: str = PATH, *headers: str, length: int | None = len(BODY)) -> "Sending":
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
        own = [f"Authorization: Bearer {key}"] if key else []
        head = [f"POST {path} HTTP/1.1", "Host: localhost", size, *own, *headers]
        writer.write("\r\n".join([*head, "", ""]).encode())
        await writer.drain()
        return Sending(reader, writer)

    async def takes(self, number: int) -> None:
        """Wait until so many places are taken."""
        async with asyncio.timeout(20):
            while front.MOST_UPLOADS - self.free != number:
                await asyncio.sleep(0.01)


class Sending:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, body: bytes) -> None:
        self._writer.write(body)
        await self._writer.drain()

    async def answer(self) -> tuple[int, dict[str, str]]:
        head = (await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 20)).decode()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        return int(head.split(" ", 2)[1]), {name.lower(): value for name, value in fields.items()}

    def end(self) -> None:
        self._writer.close()


@asynccontextmanager
async def serving(limits: ConnectionLimits) -> AsyncIterator[Serving]:
    threads, logged = Threads(4), list[str]()
    buffer = RequestBuffer(
        get_internal_wsgi_application(),
        threads,
        lambda answer, environ, _took: logged.append(f"{environ['PATH_INFO']} {answer.status[:3]}"),
        upload_bytes=HubServer.upload_bytes,
    )
    config = Config(buffer, access_log=False, log_config=None, lifespan="off", proxy_headers=False, ws="none")
    config.load()
    process = Process(config, limits, lambda *_: None)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(process), "127.0.0.1", 0)

    async def watch() -> None:
        while True:
            process.check_deadlines(time.monotonic())
            await asyncio.sleep(0.05)

    watching = loop.create_task(watch())
    try:
        yield Serving(server.sockets[0].getsockname()[1], logged, buffer)
    finally:
        watching.cancel()
        for connection in list(process.connections):
            connection.abort()
        server.close()
        threads.end(5)


def run(test: Callable[[Serving], Awaitable[None]], limits: ConnectionLimits | None = None) -> None:
    async def within() -> None:
        async with serving(limits or ConnectionLimits()) as hub:
            await test(hub)

    asyncio.run(within())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests that limits per key count."""
    seen: list[str] = []
    count = throttles.count

    def noted(key_id: Any, scope: str) -> Any:
        seen.append(scope)
        return count(key_id, scope)

    monkeypatch.setattr(throttles, "count", noted)
    return seen


def test_who_may_not_upload_takes_no_place_and_nothing_is_kept(hub: Hub, kept: list[Any], counted: list[str]) -> None:
    full = hub_of(factories.tenant())
    factories.set_numbers(full.tenant, import_files=1)
    factories.uploaded(full.tenant)
    refused = {
        "": 401,
        "mh_nobody_knows": 401,
        hub_of(hub.tenant, scopes=["read"]).client.plaintext: 403,
        hub_of(hub.tenant, scopes=["write"]).client.plaintext: 403,
        full.client.plaintext: 409,
    }

    async def test(served: Serving) -> None:
        for key, status in refused.items():
            # Nothing of the body is sent yet: the head alone is refused, where its size is not known, or too large to
            # be read for nothing.
            sending = await served.begin(key, length=None)
            answered, fields = await sending.answer()
            assert (answered, fields["connection"]) == (status, "close")
            sending.end()
            # Who sends all before they read gets the answer, too.
            whole = await served.begin(key)
            await whole.send(BODY)
            assert (await whole.answer())[0] == status
            whole.end()
        assert (kept, served.free) == ([], front.MOST_UPLOADS)
        before = len(counted)
        # The positive control.
        sending = await served.begin(hub.client.plaintext, f"{PATH}?user_id=anna")
        await sending.send(BODY)
        assert (await sending.answer())[0] == 202
        assert (len(kept), len(counted) - before) == (1, 1)
        assert served.logged[-1] == f"{PATH} 202"
        assert len(served.logged) == 2 * len(refused) + 1
        sending.end()

    run(test)
    assert [row.size for row in Import.objects.filter(tenant=hub.tenant)] == [len(BODY)]


def test_nobody_without_a_key_can_take_all_places(hub: Hub, kept: list[Any]) -> None:
    async def test(served: Serving) -> None:
        idle = [await served.begin("") for _ in range(2 * front.MOST_UPLOADS)]
        for sending in idle:
            await sending.send(b"x")
        own = [await served.begin(hub.client.plaintext) for _ in range(front.MOST_UPLOADS)]
        # The positive control: who may upload takes a place, and the next one waits for it.
        await served.takes(front.MOST_UPLOADS)
        assert len(kept) == front.MOST_UPLOADS
        late = await served.begin(hub.client.plaintext)
        await late.send(BODY)
        await own[0].send(BODY)
        assert [(await one.answer())[0] for one in (own[0], late)] == [202, 202]
        for one in [*idle, *own, late]:
            one.end()

    run(test)


def test_who_waits_too_long_for_a_place_is_told_when_to_come_again(hub: Hub, kept: list[Any]) -> None:
    async def test(served: Serving) -> None:
        own = [await served.begin(hub.client.plaintext) for _ in range(front.MOST_UPLOADS)]
        await served.takes(front.MOST_UPLOADS)
        # Who sends may take longer by what came: these are nearly there, and hold their places.
        for one in own:
            await one.send(BODY[1:])
        late = await served.begin(hub.client.plaintext)
        await late.send(BODY[: len(BODY) // 2])
        status, fields = await late.answer()
        assert (status, fields["retry-after"]) == (503, "5")
        assert len(kept) == front.MOST_UPLOADS
        for one in [*own, late]:
            one.end()

    run(test, ConnectionLimits(body_seconds=1.0, body_rate=20_000))


def test_the_page_takes_files_of_who_is_signed_in(hub: Hub, kept: list[Any]) -> None:
    client = Client()
    client.force_login(factories.operator())
    page = client.get(PAGE).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token
    cookies = "; ".join(f"{name}={one.value}" for name, one in client.cookies.items())
    given = {"tenant": str(hub.tenant.pk), "source": "auto"}

    def form(**fields: str) -> bytes:
        parts = [
            f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{one}\r\n' for name, one in fields.items()
        ]
        file = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.json"\r\n\r\n'
        return ("".join(parts) + file).encode() + BODY + b"\r\n--b--\r\n"

    async def test(served: Serving) -> None:
        for cookie, body, status in (
            ("", form(**given, csrfmiddlewaretoken=token[1]), 302),
            (cookies, form(**given), 403),
            (cookies, form(**given, csrfmiddlewaretoken=token[1]), 302),
        ):
            headers = ["Content-Type: multipart/form-data; boundary=b", *([f"Cookie: {cookie}"] if cookie else [])]
            sending = await served.begin("", PAGE, *headers, length=len(body))
            await sending.send(body)
            answered, fields = await sending.answer()
            assert answered == status, (cookie, body[:200])
            assert ("login" in fields.get("location", "")) == (not cookie)
            assert bool(kept) == bool(cookie)
            sending.end()

    run(test)
    assert Import.objects.get().size == len(BODY)
