"""The web server: its processes write the recalls that they noted; who sends too much still reads the answer."""

import socket
from contextlib import suppress
from threading import Thread
from types import SimpleNamespace

import pytest
from gunicorn.http import get_parser

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


def test_a_client_that_stops_halfway_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "DRAIN_SECONDS", 0.01)
    server, (here, there) = HubServer("127.0.0.1:0"), socket.socketpair()
    with here, there:
        there.sendall(HEAD + b"x" * 1000)
        parser = get_parser(server.cfg, here, ("127.0.0.1", 1))
        server.cfg.post_request(None, next(parser), {}, None)
        assert parser.finish_body() is False
