"""Clients that send or read too slowly, against a hub of its own: they hold nobody up and are ended in time."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from tests.commands.hub import RUNNING, Hub, wait_until

pytestmark = pytest.mark.alone

SECONDS = 4
SHORT = {
    "MEMORYHUB_LLM": "off",
    "MEMORYHUB_HEAD_SECONDS": str(SECONDS),
    "MEMORYHUB_BODY_SECONDS": str(SECONDS),
    "MEMORYHUB_KEEPALIVE_SECONDS": str(SECONDS),
    "MEMORYHUB_UNREAD_SECONDS": str(SECONDS),
}
# Beside a busy machine.
PATIENCE_SECONDS = 60.0
HALF_HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
BODY = json.dumps({"user_id": "slow", "session_id": "s", "messages": [{"role": "user", "content": "hello"}]}).encode()


@pytest.fixture(scope="module")
def hub(own_hub: Hub) -> Iterator[Hub]:
    """One for all of these tests, of which the last ends it."""
    own_hub.end()
    wait_until(own_hub.is_gone)
    own_hub.run("up", **SHORT)
    own_hub.wait_for(RUNNING)
    yield own_hub
    own_hub.end()
    wait_until(own_hub.is_gone)


@pytest.fixture
def key(hub: Hub) -> str:
    found: str = json.loads((hub.home / "demo.json").read_text(encoding="utf-8"))["api_key"]
    return found


def connected(hub: Hub) -> socket.socket:
    return socket.create_connection(("127.0.0.1", hub.port), timeout=PATIENCE_SECONDS)


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


def half_body(key: str, number: int) -> bytes:
    """With a valid key, with any, without one; with a length and in chunks."""
    said = (f"Authorization: Bearer {key}", f"Authorization: Bearer mh_any_{'x' * 43}", "X-None: 1")[number % 3]
    if number % 2:
        return head("/api/v1/turns", said, "Transfer-Encoding: chunked") + b"%x\r\n" % len(BODY) + BODY[:20]
    return head("/api/v1/turns", said, "Content-Type: application/json", f"Content-Length: {len(BODY)}") + BODY[:20]


def answer(connection: socket.socket, until: bytes | None = None) -> bytes:
    """All that comes until the server closes, or until the bytes end so: head and body may come apart."""
    received = b""
    while part := connection.recv(65_536):
        received += part
        if until is not None and received.endswith(until):
            break
    return received


def asked(hub: Hub, request: bytes) -> bytes:
    with connected(hub) as connection:
        connection.sendall(request)
        return answer(connection)


def normal(hub: Hub, key: str, number: int) -> int:
    """The status of an ordinary request, on a connection of its own."""
    if number % 2:
        return int(asked(hub, HALF_HEAD + b"no\r\nConnection: close\r\n\r\n")[9:12])
    said = [f"Authorization: Bearer {key}", "Content-Type: application/json", f"Content-Length: {len(BODY)}"]
    return int(asked(hub, head("/api/v1/turns", *said, "Connection: close") + BODY)[9:12])


@contextmanager
def held(hub: Hub, key: str) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(hub)) for _ in range(300)]
        for number, connection in enumerate(slow):
            connection.sendall(HALF_HEAD if number < 200 else half_body(key, number))
        yield slow


def test_three_hundred_half_sent_requests_hold_nobody_up(hub: Hub, key: str) -> None:
    with held(hub, key) as slow:
        found = [normal(hub, key, number) for number in range(40)]
        assert found == [202, 200] * 20
        answers = [answer(connection) for connection in slow]
    assert {one[9:12] for one in answers} == {b"408"}
    document = json.loads(answers[-1].partition(b"\r\n\r\n")[2])
    assert (document["code"], document["status"]) == ("timeout", 408)
    assert b"application/problem+json" in answers[0]
    # And each that was not held went through once more.
    assert normal(hub, key, 0) == 202


def test_a_byte_now_and_then_gains_no_time(hub: Hub) -> None:
    with connected(hub) as connection:
        connection.settimeout(0.2)
        begun = time.monotonic()
        connection.sendall(HALF_HEAD)
        received = b""
        while not received:
            assert time.monotonic() - begun < PATIENCE_SECONDS
            try:
                connection.sendall(b"x")
                received = connection.recv(100)
            except TimeoutError:
                continue
        assert received[9:12] == b"408"
        assert time.monotonic() - begun >= SECONDS


def test_a_slow_body_that_comes_in_time_is_taken(hub: Hub, key: str) -> None:
    said = [f"Authorization: Bearer {key}", "Content-Type: application/json", f"Content-Length: {len(BODY)}"]
    with connected(hub) as connection:
        connection.sendall(head("/api/v1/turns", *said, "Connection: close"))
        for place in range(0, len(BODY), 20):
            connection.sendall(BODY[place : place + 20])
            time.sleep(0.05)
        assert answer(connection)[9:12] == b"202"


def test_an_idle_connection_is_closed_without_a_word(hub: Hub) -> None:
    with connected(hub) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        begun = time.monotonic()
        received = answer(connection)
        assert received.startswith(b"HTTP/1.1 200")
        assert received.count(b"HTTP/1.1") == 1
        assert time.monotonic() - begun >= SECONDS - 1


# A page of the docs: 1 MB and more, so that it does not fit into the buffers of two sockets made small.
LARGE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"


def test_who_does_not_read_holds_no_thread_and_is_ended(hub: Hub, key: str) -> None:
    request = f"GET {LARGE} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    with ExitStack() as stack:
        deaf = [stack.enter_context(deaf_connection(hub)) for _ in range(40)]
        for connection in deaf:
            connection.sendall(request)
        assert [normal(hub, key, number) for number in range(20)] == [202, 200] * 10
        ports = {connection.getsockname()[1] for connection in deaf}
        wait_until(lambda: not ports & served(hub))
    whole = asked(hub, request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert len(whole) > 1_000_000


def deaf_connection(hub: Hub) -> socket.socket:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(PATIENCE_SECONDS)
    connection.connect(("127.0.0.1", hub.port))
    return connection


def served(hub: Hub) -> set[int]:
    """The clients' ports of the connections that the web server holds."""
    web = psutil.Process(hub.pid("web"))
    return {
        found.raddr.port
        for process in web.children()
        for found in process.net_connections("tcp")
        if found.raddr and found.laddr.port == hub.port
    }


def test_a_process_that_dies_is_replaced(hub: Hub, key: str) -> None:
    web = psutil.Process(hub.pid("web"))
    before = {child.pid for child in web.children()}
    for child in web.children():
        child.kill()
    wait_until(lambda: len({child.pid for child in web.children()} - before) == len(before))
    assert normal(hub, key, 0) == 202


def test_the_access_log_names_no_query_and_no_lines_of_a_client(hub: Hub) -> None:
    asked(hub, "GET /healthz?user_id=张三 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    asked(hub, b"GET /a%0Ab HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    asked(hub, b"nonsense\r\n\r\n")
    hub.wait_for('"- -" 400')
    hub.wait_for('"GET /a%0Ab" 404')
    assert '"GET /healthz" 200' in hub.text
    assert "张三" not in hub.text
    assert "?user_id" not in hub.text
    assert "nonsense" not in hub.text


def test_what_is_under_way_ends_before_the_server_does(hub: Hub, key: str) -> None:
    """SIGTERM: the request that came whole is answered, the half-sent one is let go."""
    with connected(hub) as slow, connected(hub) as idle:
        slow.sendall(HALF_HEAD)
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert answer(idle, until=b'{"status": "ok"}').startswith(b"HTTP/1.1 200")
        begun = time.monotonic()
        hub.process.terminate()
        assert answer(slow) == b""
        assert answer(idle) == b""
        hub.process.wait(PATIENCE_SECONDS)
        assert hub.process.returncode == 0
        assert time.monotonic() - begun < PATIENCE_SECONDS
    assert "Memory Hub has stopped." in hub.text
