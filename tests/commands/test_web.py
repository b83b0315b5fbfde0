"""The web server: its processes write the recalls that they noted; who sends too much still reads the answer."""

import socket
from contextlib import suppress
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from gunicorn.http import get_parser
from gunicorn.http.errors import ParseException

from memories.management import web
from memories.management.hub_server import HubServer
from memories.pipeline.recalls import Flusher


def test_each_process_writes_its_recalls_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for verb in ("start", "end"):
        monkeypatch.setattr(Flusher, verb, lambda _, verb=verb: done.append(verb))
    server, worker = HubServer("127.0.0.1:0"), SimpleNamespace()
    server.cfg.post_worker_init(worker)
    assert done == ["start"]
    server.cfg.worker_exit(None, worker)
    assert done == ["start", "end"]


SENT = 3 * 1024 * 1024
HEAD = f"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {SENT}\r\n\r\n".encode()


@pytest.mark.parametrize(("most", "reused"), [(SENT, True), (SENT // 2, False)])
def test_a_body_that_nobody_read_is_thrown_away(monkeypatch: pytest.MonkeyPatch, most: int, reused: bool) -> None:
    monkeypatch.setattr(web, "MOST_DRAINED_BYTES", most)
    server, (here, there) = HubServer("127.0.0.1:0"), socket.socketpair()

    def send() -> None:
        with suppress(OSError):
            there.sendall(HEAD + b"x" * SENT)

    sending = Thread(target=send)
    with here, there:
        sending.start()
        parser = get_parser(server.cfg, here, ("127.0.0.1", 1))
        server.cfg.post_request(None, next(parser), {}, None)
        # What is too much still stands in the way of its sender.
        sending.join(5 if reused else 0)
        assert sending.is_alive() is not reused
        assert parser.finish_body() is reused


def test_the_next_request_is_not_thrown_away_with_it() -> None:
    server, (here, there) = HubServer("127.0.0.1:0"), socket.socketpair()
    with here, there:
        there.sendall(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyzGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
        parser = get_parser(server.cfg, here, ("127.0.0.1", 1))
        server.cfg.post_request(None, next(parser), {}, None)
        assert next(parser).path == "/b"


def test_a_client_that_stops_halfway_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "DRAIN_SECONDS", 0.01)
    server, (here, there) = HubServer("127.0.0.1:0"), socket.socketpair()
    with here, there:
        there.sendall(HEAD + b"x" * 1000)
        parser = get_parser(server.cfg, here, ("127.0.0.1", 1))
        server.cfg.post_request(None, next(parser), {}, None)
        assert parser.finish_body() is False


def asked(line: str) -> Any:
    """The request that the server reads of this line."""
    server, (here, there) = HubServer("127.0.0.1:0"), socket.socketpair()
    with here, there:
        there.sendall(f"{line} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        return next(get_parser(server.cfg, here, ("127.0.0.1", 1)))


def test_an_address_may_be_written_as_it_is_spoken() -> None:
    request = asked("GET /api/v1/facts?user_id=张三&q=é%20a")
    assert (request.path, request.query) == ("/api/v1/facts", "user_id=%E5%BC%A0%E4%B8%89&q=%C3%A9%20a")


@pytest.mark.parametrize("line", ["GET /a\x00b", "GET /a\x7fb", "张 /a"])
def test_nothing_else_is_let_in(line: str) -> None:
    with pytest.raises(ParseException):
        asked(line)


def test_the_longest_ids_fit_into_a_query() -> None:
    ids = dict.fromkeys(("user_id", "agent_id"), "😀" * 255)
    assert asked(f"GET /api/v1/facts?{urlencode(ids)}&page_size=200").path == "/api/v1/facts"
