"""HTTP of our own to a hub that is reached without TLS and proxy, beside the library's: what both do with an answer."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from memoryhub_client import MemoryHub
from memoryhub_client import _plain as plain
from memoryhub_client._http import httpx

PATIENCE_SECONDS = 10.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Serve = Callable[[socket.socket, int], None]


class Peer:
    """A server that does with each connection what it is told; it is given the connection's number from 0 on."""

    def __init__(self, serve: Serve) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.taken = 0
        self._serve = serve
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            number, self.taken = self.taken, self.taken + 1
            threading.Thread(target=self._one, args=(connection, number), daemon=True).start()

    def _one(self, connection: socket.socket, number: int) -> None:
        with connection:
            connection.settimeout(PATIENCE_SECONDS)
            self._serve(connection, number)

    def close(self) -> None:
        # This ends accept(), too.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def read_request(connection: socket.socket) -> bytes:
    """The whole request; nothing at the end of the connection."""
    found = b""
    while b"\r\n\r\n" not in found:
        part = connection.recv(65536)
        if not part:
            return b""
        found += part
    head, _, body = found.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def always(answer: bytes) -> Serve:
    def serve(connection: socket.socket, _number: int) -> None:
        while read_request(connection):
            connection.sendall(answer)

    return serve


@pytest.fixture
def serve() -> Iterator[Callable[[Serve], Peer]]:
    peers: list[Peer] = []

    def made(what: Serve) -> Peer:
        peers.append(Peer(what))
        return peers[-1]

    yield made
    for peer in peers:
        peer.close()


@pytest.fixture(params=["plain", "library"])
def client(request: pytest.FixtureRequest) -> Callable[[str], httpx.Client]:
    def made(url: str) -> httpx.Client:
        own = plain.PlainTransport(url) if request.param == "plain" else None
        return httpx.Client(base_url=url, transport=own, timeout=PATIENCE_SECONDS, trust_env=False)

    return made


Client = Callable[[str], httpx.Client]
Serving = Callable[[Serve], Peer]


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 1\r\n\r\nx", 201, b"x"),
        (b"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", 404, b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nX: y\r\n\r\n",
            200,
            b"hello",
        ),
    ],
)
def test_answers_are_read_and_the_connection_stays(
    serve: Serving, client: Client, answer: bytes, status: int, body: bytes
) -> None:
    peer = serve(always(answer))
    with client(peer.url) as asked:
        found = [asked.post("/a?b=c", content=b"question") for _ in range(3)]
    assert [(one.status_code, one.content) for one in found] == [(status, body)] * 3
    assert peer.taken == 1


def test_the_body_ends_with_the_connection(serve: Serving, client: Client) -> None:
    def ends(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nhel")
        connection.sendall(b"lo")

    peer = serve(ends)
    with client(peer.url) as asked:
        assert [asked.get("/").content for _ in range(2)] == [b"hello"] * 2
    assert peer.taken == 2


def test_the_request_is_whole_and_one_write(serve: Serving) -> None:
    seen: list[bytes] = []

    def note(connection: socket.socket, _number: int) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(OK)

    peer = serve(note)
    with httpx.Client(base_url=peer.url, transport=plain.PlainTransport(peer.url)) as asked:
        asked.post("/a b?c=d", json={"e": "f"}, headers={"X-Own": "1"})
    [request] = seen
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /a%20b?c=d HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-Own: 1" in head
    assert b"\r\nContent-Length: " in head
    assert b"".join(body.split()) == b'{"e":"f"}'


def test_a_connection_that_the_hub_closed_is_not_used_again(serve: Serving, client: Client) -> None:
    closed = threading.Event()

    def once(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(OK)
        if number == 0:
            connection.close()
            closed.set()

    peer = serve(once)
    with client(peer.url) as asked:
        asked.post("/", content=b"1")
        assert closed.wait(PATIENCE_SECONDS)
        assert asked.post("/", content=b"2").status_code == 200
    assert peer.taken == 2


def test_an_old_connection_is_not_used_again(serve: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = serve(always(OK))
    with httpx.Client(base_url=peer.url, transport=plain.PlainTransport(peer.url)) as asked:
        asked.get("/")
        asked.get("/")
        assert peer.taken == 1
        monkeypatch.setattr(plain, "IDLE_SECONDS", -1.0)
        asked.get("/")
    assert peer.taken == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", httpx.RemoteProtocolError),
        (b"SSH-2.0-OpenSSH\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000, httpx.RemoteProtocolError),
    ],
)
def test_what_is_no_answer_is_an_error_and_ends_the_connection(
    serve: Serving, client: Client, answer: bytes, error: type[Exception]
) -> None:
    def broken(connection: socket.socket, number: int) -> None:
        read_request(connection)
        connection.sendall(OK if number else answer)

    peer = serve(broken)
    with client(peer.url) as asked:
        with pytest.raises(error):
            asked.get("/")
        assert asked.get("/").status_code == 200
    assert peer.taken == 2


def test_timeouts(serve: Serving, client: Client) -> None:
    let_go = threading.Event()

    def silent(connection: socket.socket, _number: int) -> None:
        read_request(connection)
        let_go.wait(PATIENCE_SECONDS)

    peer = serve(silent)
    with client(peer.url) as asked, pytest.raises(httpx.ReadTimeout):
        asked.get("/", timeout=0.05)
    let_go.set()


def test_nobody_listens(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with client(f"http://127.0.0.1:{port}") as asked, pytest.raises(httpx.ConnectError):
        asked.get("/")


def test_no_more_connections_than_there_may_be(serve: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "MOST_CONNECTIONS", 1)
    asked, let_go = threading.Event(), threading.Event()

    def slow(connection: socket.socket, _number: int) -> None:
        while read_request(connection):
            asked.set()
            let_go.wait(PATIENCE_SECONDS)
            connection.sendall(OK)

    peer = serve(slow)
    with httpx.Client(base_url=peer.url, transport=plain.PlainTransport(peer.url)) as http:
        first = threading.Thread(target=http.get, args=("/",))
        first.start()
        assert asked.wait(PATIENCE_SECONDS)
        with pytest.raises(httpx.PoolTimeout):
            http.get("/", timeout=httpx.Timeout(PATIENCE_SECONDS, pool=0.01))
        let_go.set()
        first.join()
        assert http.get("/").status_code == 200


def test_threads_share_the_client(serve: Serving) -> None:
    def echo(connection: socket.socket, _number: int) -> None:
        while request := read_request(connection):
            body = request.partition(b"\r\n\r\n")[2]
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    peer, wrong = serve(echo), []
    with httpx.Client(base_url=peer.url, transport=plain.PlainTransport(peer.url)) as http:

        def ask(number: int) -> None:
            for turn in range(20):
                mine = f"{number} {turn}".encode()
                if http.post("/", content=mine).content != mine:
                    wrong.append(mine)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
    assert peer.taken <= 8


def test_an_answer_before_the_request_was_read_is_heard(serve: Serving, client: Client) -> None:
    def early(connection: socket.socket, _number: int) -> None:
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 20):
            pass

    peer = serve(early)
    with client(peer.url) as asked:
        assert asked.post("/", content=b"x" * 3_000_000).status_code == 413


@pytest.mark.parametrize(
    ("url", "proxy", "is_ours"),
    [
        ("http://127.0.0.1:8000", {}, True),
        ("https://hub.example", {}, False),
        ("http://hub.example", {"HTTP_PROXY": "http://127.0.0.1:1"}, False),
        ("http://hub.example", {"ALL_PROXY": "http://127.0.0.1:1"}, False),
        ("http://hub.example", {"HTTPS_PROXY": "http://127.0.0.1:1"}, True),
    ],
)
def test_tls_and_proxies_are_the_librarys(
    monkeypatch: pytest.MonkeyPatch, url: str, proxy: dict[str, str], is_ours: bool
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in proxy.items():
        monkeypatch.setenv(name, value)
    with MemoryHub("k", base_url=url) as hub:
        assert isinstance(hub._http._transport, plain.PlainTransport) is is_ours
