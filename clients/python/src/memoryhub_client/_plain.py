"""HTTP/1.1 to one hub by `http://`, where no proxy is on the way: a transport for the library's client.

The library's own is made for everything that HTTP can be, and takes half of the time of a short call. It also sends
head and body apart, so that the hub's process is woken twice. Here a request is one write, and its answer is read
whole. Errors, timeouts and the bounds of the pool are those of the library.
"""

import select
import socket
import threading
import time
from urllib.request import getproxies

from memoryhub_client._http import httpx

MOST_CONNECTIONS = 100
MOST_IDLE = 20
IDLE_SECONDS = 5.0
LONGEST_HEAD = 100 * 1024
PART_BYTES = 64 * 1024
HTTP_PORT = 80


def is_plain(base_url: str) -> bool:
    """Whether this transport reaches the hub: not by TLS, and not where the environment names a proxy."""
    return httpx.URL(base_url).scheme == "http" and not getproxies().keys() & {"http", "all"}


class PlainTransport(httpx.BaseTransport):
    """Connections to one hub, which threads share and which stay open between requests."""

    def __init__(self, base_url: str) -> None:
        url = httpx.URL(base_url)
        self._address = (url.raw_host.decode("ascii"), url.port or HTTP_PORT)
        self._free = threading.Semaphore(MOST_CONNECTIONS)
        # The last one used is taken first, so that the others can grow old.
        self._idle: list[_Connection] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
        if not self._free.acquire(timeout=timeouts.get("pool")):
            raise httpx.PoolTimeout("All connections are in use.")
        try:
            connection = self._taken() or _Connection(self._address, timeouts.get("connect"))
            try:
                answer = connection.ask(request, timeouts)
            except BaseException:
                # Nobody knows what of the answer is still to come.
                connection.close()
                raise
            self._give_back(connection)
            return answer
        finally:
            self._free.release()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _taken(self) -> "_Connection | None":
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                # Another thread was faster.
                return None
            if connection.is_usable():
                return connection
            connection.close()
        return None

    def _give_back(self, connection: "_Connection") -> None:
        if connection.stays and len(self._idle) < MOST_IDLE:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()


class _Connection:
    def __init__(self, address: tuple[str, int], timeout: float | None) -> None:
        try:
            self._socket = socket.create_connection(address, timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        # Whether another request can follow.
        self.stays = True
        self.idle_since = 0.0
        # What was received and not read.
        self._received = b""

    def is_usable(self) -> bool:
        """Not when it is old, or has something to read: the hub has closed it."""
        if time.monotonic() - self.idle_since > IDLE_SECONDS:
            return False
        if not hasattr(select, "poll"):
            return not select.select([self._socket], [], [], 0)[0]
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return not waiting.poll(0)

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: httpx.Request, timeouts: dict[str, float | None]) -> httpx.Response:
        """Send the request and read its whole answer. Errors: TransportError."""
        # The library has made what is in the head, and refused what cannot be.
        head = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
        head += [b"%b: %b" % header for header in request.headers.raw]
        if any(b"\r" in line or b"\n" in line for line in head):
            raise httpx.LocalProtocolError("A header cannot have a line break.")
        self._send(b"\r\n".join([*head, b"", request.content]), timeouts.get("write"))
        self._wait_at_most(timeouts.get("read"))
        status, headers = self._head()
        while 100 <= status < 200:
            status, headers = self._head()
        body = b"" if request.method == "HEAD" or status in (204, 304) else self._body(headers)
        # More than one answer.
        self.stays = self.stays and not self._received
        return httpx.Response(status, headers=headers, content=body)

    def _wait_at_most(self, seconds: float | None) -> None:
        # To set it is a call of the system.
        if self._socket.gettimeout() != seconds:
            self._socket.settimeout(seconds)

    def _send(self, message: bytes, timeout: float | None) -> None:
        self._wait_at_most(timeout)
        rest = memoryview(message)
        try:
            while rest:
                rest = rest[self._socket.send(rest) :]
        except TimeoutError as error:
            raise httpx.WriteTimeout(str(error)) from error
        except OSError:
            # The hub may have answered before it had read all.
            self.stays = False

    def _receive(self) -> bytes:
        """What comes next; nothing at the end."""
        try:
            return self._socket.recv(PART_BYTES)
        except TimeoutError as error:
            raise httpx.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ReadError(str(error)) from error

    def _required(self) -> bytes:
        part = self._receive()
        if not part:
            raise httpx.RemoteProtocolError("The server closed the connection before its answer was whole.")
        return part

    def _until(self, mark: bytes) -> bytes:
        """What comes before the mark."""
        while (end := self._received.find(mark)) < 0:
            if len(self._received) > LONGEST_HEAD:
                raise httpx.RemoteProtocolError("The head of the answer is too long.")
            self._received += self._required()
        found, self._received = self._received[:end], self._received[end + len(mark) :]
        return found

    def _exactly(self, size: int) -> bytes:
        parts, missing = [self._received], size - len(self._received)
        while missing > 0:
            parts.append(self._required())
            missing -= len(parts[-1])
        found = b"".join(parts)
        self._received = found[size:]
        return found[:size] if self._received else found

    def _head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        first, *lines = self._until(b"\r\n\r\n").split(b"\r\n")
        version, _, rest = first.partition(b" ")
        status = rest[:3]
        if not version.startswith(b"HTTP/1.") or not status.isdigit():
            raise httpx.RemoteProtocolError("The answer is not HTTP/1.1.")
        headers = []
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon or not name or name != name.strip():
                raise httpx.RemoteProtocolError("A header of the answer is malformed.")
            headers.append((name, value.strip()))
        if version != b"HTTP/1.1" or b"close" in _named(headers, b"connection").lower():
            self.stays = False
        return int(status), headers

    def _body(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        if coding := _named(headers, b"transfer-encoding").lower():
            if coding != b"chunked":
                raise httpx.RemoteProtocolError("The answer has an encoding that was not asked for.")
            return self._chunks()
        if length := _named(headers, b"content-length"):
            if not length.isdigit():
                raise httpx.RemoteProtocolError("The length of the answer is no number.")
            return self._exactly(int(length))
        parts, self._received, self.stays = [self._received], b"", False
        while part := self._receive():
            parts.append(part)
        return b"".join(parts)

    def _chunks(self) -> bytes:
        parts = []
        while True:
            digits = self._until(b"\r\n").partition(b";")[0].strip()
            try:
                size = int(digits, 16)
            except ValueError as error:
                raise httpx.RemoteProtocolError("The length of a part is no number.") from error
            if size <= 0:
                break
            parts.append(self._exactly(size))
            if self._until(b"\r\n"):
                raise httpx.RemoteProtocolError("A part of the answer is longer than it says.")
        # Fields behind the body.
        while self._until(b"\r\n"):
            pass
        return b"".join(parts)


def _named(headers: list[tuple[bytes, bytes]], wanted: bytes) -> bytes:
    return b", ".join(value for name, value in headers if name.lower() == wanted)
