"""The web server: what it takes of a client and for how long; its processes write the recalls that they noted."""

import json
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest

from memories.context.log import LogWriter
from memories.retrieval.recalls import RecallWriter
from memories.web import front as web_front
from memories.web import threads as web_threads
from memories.web.application import HubServer, limits
from memories.web.connection import ConnectionLimits
from memories.web.front import Environ
from tests.commands.hub import wait_until
from tests.commands.served import PATIENCE_SECONDS, Served, everything, said, served
from tests.each import each

HEAD = b"Host: h\r\n\r\n"
SENT = 3 * 1024 * 1024


def test_each_process_writes_what_it_noted_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, type]] = []
    writers = {RecallWriter, LogWriter}
    for writer in writers:
        for verb in ("start", "end"):
            monkeypatch.setattr(writer, verb, lambda self, verb=verb: done.append((verb, type(self))))
    server, worker = HubServer("127.0.0.1:0"), SimpleNamespace()
    server.cfg.post_worker_init(worker)
    assert set(done) == {("start", writer) for writer in writers}
    server.cfg.worker_exit(None, worker)
    assert set(done) == {(verb, writer) for verb in ("start", "end") for writer in writers}


def test_the_settings_bound_what_a_client_may_do(settings: Any) -> None:
    assert limits() == ConnectionLimits()
    settings.MEMORYHUB_HEAD_SECONDS = 3
    assert HubServer("127.0.0.1:0").limits == ConnectionLimits(head_seconds=3)


class TestRequests:
    """What the application is told."""

    def asked(self, request: bytes) -> Environ:
        with served(said(b"")) as server:
            assert server.answer(request).startswith(b"HTTP/1.1 200 OK")
        return server.asked[0]

    def test_an_address_may_be_written_as_it_is_spoken(self) -> None:
        environ = self.asked("GET /a%20张?user_id=张三&q=é%20a HTTP/1.1\r\n".encode() + HEAD)
        assert environ["QUERY_STRING"] == "user_id=%E5%BC%A0%E4%B8%89&q=%C3%A9%20a"
        assert environ["PATH_INFO"].encode("latin-1").decode() == "/a 张"

    def test_also_when_it_comes_in_pieces(self) -> None:
        with served(said(b"")) as server, server.connected() as connection:
            for part in ("GET /a?q=张".encode()[:-1], "张".encode()[-1:], b" HTTP/1.1\r\n", HEAD):
                connection.sendall(part)
                time.sleep(0.05)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        assert server.asked[0]["QUERY_STRING"] == "q=%E5%BC%A0"

    def test_a_body_stays_as_it_was_sent(self) -> None:
        body = "张三\nx".encode()
        head = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n" % len(body) + HEAD
        environ = self.asked(head + body)
        assert (environ["wsgi.input"].read(), environ["CONTENT_LENGTH"]) == (body, str(len(body)))
        with served(said(b"")) as server, server.connected() as connection:
            for part in (head, body[:1], body[1:]):
                connection.sendall(part)
                time.sleep(0.05)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        assert server.asked[0]["wsgi.input"].read() == body

    def test_chunks_are_put_together(self) -> None:
        chunks = b"3\r\nabc\r\n2\r\nde\r\n0\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n"
        environ = self.asked(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD + chunks)
        assert environ["wsgi.input"].read() == b"abcde"
        assert environ["HTTP_TRANSFER_ENCODING"] == "chunked"
        assert environ["wsgi.input_terminated"] is True
        assert "CONTENT_LENGTH" not in environ
        # What comes behind the body was seen by no proxy.
        assert "HTTP_X_FORWARDED_FOR" not in environ

    def test_headers(self) -> None:
        lines = b"X-A: 1\r\nx-a: 2\r\nX_Forwarded_For: 9.9.9.9\r\nX-Forwarded-For: 1.1.1.1\r\nContent-Type: t\r\n"
        environ = self.asked(b"GET / HTTP/1.1\r\n" + lines + HEAD)
        assert (environ["HTTP_X_A"], environ["HTTP_X_FORWARDED_FOR"], environ["CONTENT_TYPE"]) == (
            "1,2",
            "1.1.1.1",
            "t",
        )
        assert (environ["REMOTE_ADDR"], environ["wsgi.url_scheme"]) == ("127.0.0.1", "http")

    def test_a_proxy_on_this_machine_says_the_scheme(self) -> None:
        environ = self.asked(b"GET / HTTP/1.1\r\nX-Forwarded-Proto: https\r\n" + HEAD)
        assert environ["wsgi.url_scheme"] == "https"
        scope: dict[str, Any] = {
            "server": ("h", 80), "client": ("10.0.0.1", 1), "method": "GET", "raw_path": b"/", "query_string": b"",
            "http_version": "1.1", "scheme": "http", "headers": [(b"x-forwarded-proto", b"https")],
        }  # fmt: skip
        assert web_front.environ_of(scope, b"")["wsgi.url_scheme"] == "http"

    def test_the_longest_ids_fit_into_a_query(self) -> None:
        ids = dict.fromkeys(("user_id", "agent_id"), "😀" * 255)
        target = f"/api/v1/facts?{urlencode(ids)}&page_size=200"
        assert self.asked(f"GET {target} HTTP/1.1\r\n".encode() + HEAD)["PATH_INFO"] == "/api/v1/facts"


REFUSED = [
    (b"GET /a\x00b HTTP/1.1\r\n" + HEAD, 400),
    (b"GET /a\x7fb HTTP/1.1\r\n" + HEAD, 400),
    ("张 /a HTTP/1.1\r\n".encode() + HEAD, 400),
    (b"nonsense\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n" + HEAD + b"0\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD + b"ZZ\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD + b"1;" + b"x" * 200_000, 431),
    (b"POST / HTTP/1.1\r\nContent-Length: 9\r\n" + HEAD + b"{}", 400),
    (b"GET /?" + b"x" * 8_190 + b" HTTP/1.1\r\n" + HEAD, 414),
    (b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 101 + HEAD, 431),
    (b"GET / HTTP/1.1\r\nX: " + b"x" * 8_190 + b"\r\n" + HEAD, 431),
    (b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000, 431),
]


@each(("request_", "status"), REFUSED)
def test_nothing_else_is_let_in(request_: bytes, status: int) -> None:
    with served(said(b"no")) as server:
        head, _, body = server.answer(request_).partition(b"\r\n\r\n")
        assert not server.asked
        assert [line[2] for line in server.refused] == [status]
    document = json.loads(body)
    assert document["status"] == status
    assert int(head[9:12]) == status
    assert b"application/problem+json" in head
    assert b"connection: close" in head


class TestAnswers:
    def test_one_after_another_on_one_connection(self) -> None:
        requests = [b"GET /%d HTTP/1.1\r\n" % number + HEAD for number in range(5)]
        with served(said(b"yes")) as server:
            received = server.answer(b"".join(requests))
        assert received.count(b"HTTP/1.1 200 OK") == 5
        assert [environ["PATH_INFO"] for environ in server.asked] == ["/0", "/1", "/2", "/3", "/4"]

    def test_what_follows_an_upgrade_is_not_read(self) -> None:
        upgrade = b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" + HEAD
        with served(said(b"yes")) as server, server.connected() as connection:
            connection.sendall(upgrade + b"PRI * HTTP/2.0")
            received = everything(connection)
        assert (received.count(b"HTTP/1.1"), b"connection: close" in received) == (1, True)

    def test_an_application_that_breaks_is_a_500_without_its_words(self) -> None:
        def broken(*_: Any) -> Any:
            raise ValueError("a secret")

        with served(broken) as server:
            received = server.answer(b"GET / HTTP/1.1\r\n" + HEAD)
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 500")
        assert b"content-type: application/problem+json" in head
        assert json.loads(body)["code"] == "internal_error"
        assert b"secret" not in received

    @each("size", [10, SENT, 3 * SENT])
    def test_who_stops_halfway_leaves_no_thread_behind(self, size: int) -> None:
        """A part of an answer that comes piece by piece waits for nobody, whatever its length."""
        closed = threading.Event()

        class Pieces(list[bytes]):
            def close(self) -> None:
                closed.set()

        def application(environ: Environ, start_response: Any) -> Any:
            start_response("200 OK", [])
            return Pieces([b"x" * 1000] * (size // 1000) if environ["PATH_INFO"] == "/long" else [b"short"])

        with served(application, threads=1, unread_seconds=1.0) as server, server.connected() as deaf:
            deaf.sendall(b"GET /long HTTP/1.1\r\n" + HEAD)
            assert closed.wait(PATIENCE_SECONDS)
            assert b"short" in server.answer(b"GET / HTTP/1.1\r\n" + HEAD)
            assert server.answer(b"GET /long HTTP/1.1\r\n" + HEAD).count(b"x") == size // 1000 * 1000

    def test_what_is_not_read_is_thrown_away_in_time(self) -> None:
        server_of_much = served(said(b"x" * 4 * SENT), unread_seconds=0.5)
        with server_of_much as server, server.connected() as deaf, server.connected() as reader:
            for connection in (deaf, reader):
                connection.sendall(b"GET / HTTP/1.1\r\nConnection: close\r\n" + HEAD)
            # Slowly, but all the time.
            received = 0
            while part := reader.recv(200_000):
                received += len(part)
                time.sleep(0.005)
            assert received > 4 * SENT
            wait_until(lambda: not server.process.connections)
            assert len(everything(deaf)) < 4 * SENT


class TestBodies:
    def post(self, size: int) -> bytes:
        return b"POST /big HTTP/1.1\r\nContent-Length: %d\r\n" % size + HEAD + b"x" * size

    def test_one_that_is_too_large_is_thrown_away_and_the_next_request_is_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Closed with it unread, the connection would be reset: who sends all before they read saw no answer."""
        monkeypatch.setattr(web_front, "MOST_BODY_BYTES", SENT - 1)
        with served(said(b"too large", "413 Too Large")) as server:
            received = server.answer(self.post(SENT) + b"GET /next HTTP/1.1\r\n" + HEAD)
        assert received.count(b"HTTP/1.1 413") == 2
        assert [environ["PATH_INFO"] for environ in server.asked] == ["/big", "/next"]
        assert (server.asked[0]["CONTENT_LENGTH"], server.asked[0]["wsgi.input"].read()) == (str(SENT), b"")

    def test_one_beyond_all_bounds_ends_the_connection(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(web_front, "MOST_BODY_BYTES", 5)
        monkeypatch.setattr(web_front, "MOST_DRAINED_BYTES", 10)
        with served(said(b"too large", "413 Too Large")) as server, server.connected() as connection:
            connection.sendall(self.post(11)[:-11])
            received = everything(connection)
        assert received.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in received

    def test_chunks_beyond_the_bound_are_known_by_one_byte(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(web_front, "MOST_BODY_BYTES", 100)
        chunk = b"20\r\n" + b"x" * 32 + b"\r\n"
        with served(said(b"")) as server:
            head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD
            server.answer(head + chunk * 1000 + b"0\r\n\r\n")
        assert len(server.asked[0]["wsgi.input"].read()) == 101

    def test_large_ones_wait_for_each_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(web_front, "MOST_HELD_BYTES", SENT)
        gate, most = threading.Event(), [0]

        def application(environ: Environ, start_response: Any) -> list[bytes]:
            most[0] = max(most[0], sum(budget.held.values()))
            if environ["PATH_INFO"] == "/big":
                assert gate.wait(PATIENCE_SECONDS)
            start_response("200 OK", [("Content-Length", "0")])
            return [b""]

        budget = web_front.BodyBudget(SENT)
        monkeypatch.setattr(web_front, "BodyBudget", lambda _: budget)
        with served(application, threads=6) as server:
            answers: list[bytes] = []
            clients = [
                threading.Thread(target=lambda: answers.append(server.answer(self.post(SENT)))) for _ in range(4)
            ]
            for client in clients:
                client.start()
            wait_until(lambda: len(server.asked) == 1 and len(budget.waiting) >= 1)
            # Small ones do not wait.
            assert server.answer(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n" + HEAD + b"{}").startswith(b"HTTP/1.1 200")
            gate.set()
            for client in clients:
                client.join(PATIENCE_SECONDS)
        assert [one[9:12] for one in answers] == [b"200"] * 4
        # The oldest goes on when the budget is used up.
        assert most[0] <= 2 * SENT + 4 * 256 * 1024
        assert not budget.held


class TestDeadlines:
    def test_each_has_its_own(self) -> None:
        with served(said(b"yes"), head_seconds=0.2, body_seconds=0.4, idle_seconds=0.6) as server:
            assert self.ended(server, b"GET / HT", 0.2)[9:12] == b"408"
            assert self.ended(server, b"POST / HTTP/1.1\r\nContent-Length: 9\r\n" + HEAD, 0.4)[9:12] == b"408"
            assert self.ended(server, b"GET / HTTP/1.1\r\n" + HEAD, 0.6)[9:12] == b"200"
            assert self.ended(server, b"", 0.2) == b""
        assert server.refused == [("-", "-", 408), ("POST", "/", 408)]

    def ended(self, server: Served, request: bytes, least: float) -> bytes:
        with server.connected() as connection:
            begun = time.monotonic()
            connection.sendall(request)
            received = everything(connection)
            assert time.monotonic() - begun >= least
        return received

    def test_the_next_head_on_a_connection_has_one_too(self) -> None:
        with served(said(b"yes"), head_seconds=0.3, idle_seconds=PATIENCE_SECONDS) as server:
            assert b"HTTP/1.1 408" in self.ended(server, b"GET / HTTP/1.1\r\n" + HEAD + b"GET /", 0.3)

    def test_a_large_body_has_as_much_time_as_it_needs(self) -> None:
        with served(said(b"yes"), body_seconds=0.2, body_rate=2_000) as server, server.connected() as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 50000\r\n" + HEAD)
            for _ in range(10):
                connection.sendall(b"x" * 5_000)
                time.sleep(0.04)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")

    def test_an_answer_may_take_its_time(self) -> None:
        def slow(environ: Environ, start_response: Any) -> list[bytes]:
            time.sleep(0.5)
            return said(b"yes")(environ, start_response)  # type: ignore[return-value]

        with served(slow, head_seconds=0.1, body_seconds=0.1, idle_seconds=0.1) as server:
            assert server.answer(b"GET / HTTP/1.1\r\n" + HEAD).startswith(b"HTTP/1.1 200")


def test_at_the_limit_who_kept_us_waiting_longest_has_to_go() -> None:
    with served(said(b"yes"), connections=3) as server:
        held: list[socket.socket] = []
        for number in range(3):
            held.append(server.connected())
            held[-1].sendall(b"GET / HT")
            wait_until(lambda number=number: len(server.process.connections) == number + 1)  # type: ignore[misc]
        assert server.answer(b"GET / HTTP/1.1\r\n" + HEAD).startswith(b"HTTP/1.1 200")
        assert everything(held[0]) == b""
        for one in held[1:]:
            one.sendall(b"TP/1.1\r\n" + HEAD)
            assert one.recv(100).startswith(b"HTTP/1.1 200")
        for one in held:
            one.close()


def test_a_thread_without_work_closes_an_old_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = threading.Event()
    monkeypatch.setattr(web_threads, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(web_threads, "close_old_connections", closed.set)
    with served(said(b"yes"), threads=1) as server:
        assert closed.wait(PATIENCE_SECONDS)
        # And it goes on.
        assert server.answer(b"GET / HTTP/1.1\r\n" + HEAD).startswith(b"HTTP/1.1 200")
