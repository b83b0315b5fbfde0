"""HTTP for model calls: one deadline for the whole of a call, and a bound on the size of what comes back.

httpx2 bounds each read by itself, so a server that sends a byte now and then could hold a worker for ever.
"""

import contextlib
import math
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from memories.exceptions import ModelAnswerInvalid, ModelMisconfigured
from memories.llm.addresses import AddressRefused, public_addresses

LARGEST_BODY = 8 * 1024 * 1024
# A host with several addresses is tried at each; none may take the whole of a long call.
_LONGEST_CONNECT = 10.0
_WRITTEN_AT_ONCE = 64 * 1024
# How often a read looks whether anybody still waits for it.
_LOOK_SECONDS = 0.25

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
_has_left: ContextVar[Callable[[], bool] | None] = ContextVar("has_left", default=None)


@contextlib.contextmanager
def deadline(seconds: float, has_left: Callable[[], bool] | None = None) -> Iterator[None]:
    """Every connect, read and write of this thread inside the block ends `seconds` from now at the latest, and a read
    soon after `has_left` says that nobody waits for it.

    Looking up a host name is the system's and not bounded.
    """
    token, looking = _deadline.set(time.monotonic() + seconds), _has_left.set(has_left)
    try:
        yield
    finally:
        _deadline.reset(token)
        _has_left.reset(looking)


class BoundedTransport(httpx2.HTTPTransport):
    """httpx2's transport with the deadline of the block that it is used in, and at most 8 MB of answer.

    A connection serves one request: calls are rare and long, and a kept one would be shared with forked children.
    With `guarded` it connects to public addresses alone.
    """

    def __init__(self, base_url: str, *, guarded: bool = False) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            # A proxy would resolve the name by itself.
            proxy=None if guarded else _proxy(base_url),
            max_connections=None,
            max_keepalive_connections=0,
            network_backend=_DeadlineBackend(guarded=guarded),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises ModelAnswerInvalid for a compressed answer: unpacked, a small one could fill the memory."""
        response = super().handle_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            response.close()
            raise ModelAnswerInvalid("The endpoint compressed its answer though it was asked not to.")
        response.stream = _BoundedStream(response.stream)
        return response


def _proxy(base_url: str) -> httpcore2.Proxy | None:
    """The proxy that the environment names for this address, as httpx2 itself would take it."""
    address = urlsplit(base_url)
    proxies = getproxies()
    url = proxies.get(address.scheme or "https") or proxies.get("all")
    if not url or proxy_bypass(address.netloc):
        return None
    proxy = httpx2.Proxy(url if "://" in url else f"http://{url}")
    return httpcore2.Proxy(str(proxy.url), auth=proxy.raw_auth)


class _BoundedStream(httpx2.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            if size > LARGEST_BODY:
                raise ModelAnswerInvalid("The endpoint's answer is larger than 8 MB.")
            yield chunk

    def close(self) -> None:
        self._stream.close()


def _left(error: type[Exception]) -> float:
    """Seconds until the deadline, never 0 (which would mean: do not wait at all); `error` when it has passed."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise error
    return left


class _DeadlineStream(httpcore2.NetworkStream):
    """A connection whose every wait is cut at the deadline, whatever timeout httpcore2 asks for."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        has_left, until = _has_left.get(), time.monotonic() + _wait(timeout, _left(httpcore2.ReadTimeout))
        while True:
            left = until - time.monotonic()
            if left <= 0 or (has_left is not None and has_left()):
                raise httpcore2.ReadTimeout
            # Half a record of TLS that has come stays with the connection: the next read goes on there.
            with contextlib.suppress(httpcore2.ReadTimeout):
                return self._stream.read(max_bytes, left if has_left is None else min(left, _LOOK_SECONDS))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITTEN_AT_ONCE):
            part = buffer[start : start + _WRITTEN_AT_ONCE]
            self._stream.write(part, _wait(timeout, _left(httpcore2.WriteTimeout)))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        wait = _wait(timeout, _left(httpcore2.ConnectTimeout))
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, wait))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _DeadlineBackend(httpcore2.NetworkBackend):
    """Connects before the deadline; with `guarded` to addresses that it has looked at, and to no other.

    TLS and the Host header keep the name: httpcore2 takes them from the request.
    """

    def __init__(self, *, guarded: bool) -> None:
        self._backend = httpcore2.SyncBackend()
        self._guarded = guarded

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        failure: Exception = httpcore2.ConnectError()
        for address in _checked(host, port) if self._guarded else [host]:
            wait = min(_LONGEST_CONNECT, _wait(timeout, _left(httpcore2.ConnectTimeout)))
            try:
                stream = self._backend.connect_tcp(address, port, wait, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                return _DeadlineStream(stream)
        raise failure


def _checked(host: str, port: int) -> list[str]:
    try:
        return public_addresses(host, port)
    except AddressRefused:
        raise ModelMisconfigured("The address of the model endpoint leads into a private network.") from None
    except OSError:
        raise httpcore2.ConnectError from None


def _wait(timeout: float | None, left: float) -> float:
    return left if timeout is None else min(timeout, left)
