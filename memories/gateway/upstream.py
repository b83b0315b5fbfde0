"""The tenant's endpoint, asked from the loop: one client per process and endpoint, connections kept open."""

import asyncio
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2

from memories.conf import LLMConfig
from memories.llm.addresses import AddressRefused, public_addresses

OPENAI = "https://api.openai.com/v1"
# A model may think for minutes before its first word, and between two.
TIMEOUT = httpx2.Timeout(connect=10.0, read=600.0, write=60.0, pool=10.0)
MOST_CONNECTIONS = 1_000
# They belong to one connection, or the server sets its own.
_NOT_PASSED_ON = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "date", "server", "alt-svc", "set-cookie", "cookie"),
        *("strict-transport-security", "accept-encoding", "expect", "forwarded", "via"),
    }
)
Headers = list[tuple[bytes, bytes]]


class Unreachable(Exception):
    """The endpoint could not be asked; the message tells the client why, and names no address."""


class Upstream:
    """The clients of one process. `ask()` gives the response as soon as its head is there."""

    def __init__(self) -> None:
        self._clients: dict[bool, httpx2.AsyncClient] = {}

    async def ask(
        self, config: LLMConfig, *, method: str, path: str, query: str, headers: Headers, body: bytes
    ) -> httpx2.Response:
        """Send a request on. `path` begins behind the endpoint's base address. Errors: Unreachable."""
        client = self._client(guarded=config.guarded)
        address = (config.base_url or OPENAI).rstrip("/") + path + (f"?{query}" if query else "")
        try:
            request = client.build_request(method, address, headers=headers, content=body or None)
            return await client.send(request, stream=True)
        except httpx2.InvalidURL:
            raise Unreachable("The endpoint's address is not one.") from None
        except AddressRefused:
            raise Unreachable("The endpoint's address leads into a private network.") from None
        except httpx2.TimeoutException:
            raise Unreachable("The endpoint did not answer in time.") from None
        except httpx2.HTTPError:
            raise Unreachable("The endpoint cannot be reached.") from None

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    def _client(self, *, guarded: bool) -> httpx2.AsyncClient:
        if guarded not in self._clients:
            # A proxy would resolve the name by itself.
            transport = _GuardedTransport() if guarded else None
            limits = httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=100)
            self._clients[guarded] = httpx2.AsyncClient(
                transport=transport, timeout=TIMEOUT, limits=limits, follow_redirects=False, trust_env=not guarded
            )
        return self._clients[guarded]


def passed_on(headers: Iterable[tuple[bytes, bytes]], *, without: Iterable[str] = ()) -> Headers:
    """The headers that hold for more than one connection."""
    dropped = _NOT_PASSED_ON | set(without)
    return [(name, value) for name, value in headers if name.lower().decode("latin-1") not in dropped]


class _GuardedTransport(httpx2.AsyncHTTPTransport):
    """Connects to public addresses alone (llm/addresses.py)."""

    def __init__(self) -> None:
        super().__init__()
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            max_connections=MOST_CONNECTIONS,
            network_backend=_GuardedBackend(),
        )


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that it has looked at, and to no other. TLS and the Host header keep the name."""

    def __init__(self) -> None:
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            found = await asyncio.get_running_loop().run_in_executor(None, public_addresses, host, port)
        except OSError:
            raise httpcore2.ConnectError from None
        failure: Exception = httpcore2.ConnectError()
        for address in found:
            try:
                return await self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
