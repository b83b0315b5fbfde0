"""A stream of events through the web server: each part is sent while the next is made, by a thread that is free again
once the client has left."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.servers.basehttp import get_internal_wsgi_application

from memories import leaving
from memories.models import ModelUse
from memories.web import front
from tests import factories
from tests.commands.served import PATIENCE_SECONDS, Served, served
from tests.llm import endpoint as at
from tests.vectors import embed_all

ASK = b"POST /api/v1/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


class Events:
    """An application whose second part waits for the gate."""

    def __init__(self) -> None:
        self.gate, self.closed = threading.Event(), threading.Event()
        self.has_left: Callable[[], bool] | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> "Events":
        self.has_left = leaving.of_request(environ)
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        return self

    def __iter__(self) -> Iterator[bytes]:
        yield b"data: 1\n\n"
        self.gate.wait(PATIENCE_SECONDS)
        yield b"data: 2\n\n"
        yield b"data: 3\n\n"

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def events() -> Events:
    return Events()


def asked(server: Served) -> socket.socket:
    connection = server.connected()
    connection.sendall(ASK)
    return connection


def read_until(connection: socket.socket, end: bytes) -> bytes:
    received = b""
    while end not in received:
        part = connection.recv(4_096)
        assert part, received
        received += part
    return received


def test_a_part_is_sent_before_the_next_is_made(events: Events) -> None:
    with served(events) as server, asked(server) as connection:
        assert b"200 OK" in read_until(connection, b"data: 1")
        assert not events.closed.is_set()
        events.gate.set()
        read_until(connection, b"0\r\n\r\n")
        assert events.closed.wait(PATIENCE_SECONDS)
        # The connection serves the next request.
        connection.sendall(ASK)
        read_until(connection, b"0\r\n\r\n")


def test_a_silent_stream_is_kept_alive(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "KEEP_ALIVE_SECONDS", 0.01)
    with served(events) as server, asked(server) as connection:
        read_until(connection, b"data: 1")
        read_until(connection, front.KEEP_ALIVE)
        events.gate.set()
        assert b"data: 2" in read_until(connection, b"data: 3")


def test_who_leaves_ends_the_stream_and_frees_its_thread(events: Events) -> None:
    with served(events, threads=1) as server:
        with asked(server) as connection:
            read_until(connection, b"data: 1")
            assert events.has_left is not None
            assert not events.has_left()
        waiting = threading.Event()
        while not events.has_left():
            waiting.wait(0.01)
        events.gate.set()
        assert events.closed.wait(PATIENCE_SECONDS)
        # There is one thread, and it is free.
        with asked(server) as another:
            read_until(another, b"data: 3")


@pytest.mark.django_db(transaction=True)
def test_an_answer_of_the_hub_itself(settings: LazySettings) -> None:
    gate, closed = threading.Event(), threading.Event()
    person = factories.end_user(external_id="u1")
    factories.session(person, [("user", "I moved to Ghent in May.")], session_id="s1")
    embed_all(person)
    _, key = factories.api_key(person.tenant)
    first = json.dumps({"sentences": [{"text": "The user moved to Ghent in May.", "memories": [1]}]})[:-2]
    body = json.dumps({"user_id": "u1", "question": "Where did I move to?", "searches": 1, "stream": True})
    head = f"POST /api/v1/answer HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with at.running() as endpoint, served(get_internal_wsgi_application(), threads=1) as server:
        settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "openai", endpoint.url, "k"
        settings.ALLOWED_HOSTS = ["localhost"]
        endpoint.responds(
            at.streams(first, gate, "]}"), at.streams(first, at.sees_end(closed), ends=False), at.streams(first, "]}")
        )
        with server.connected() as connection:
            connection.sendall((head + body).encode())
            told = read_until(connection, b"event: sentence")
            assert b"event: done" not in told
            gate.set()
            assert b'"status":"answered"' in read_until(connection, b"0\r\n\r\n")
        # Whoever leaves while the model is silent ends its call: the only thread is free for the next.
        with server.connected() as connection:
            connection.sendall((head + body).encode())
            read_until(connection, b"event: sentence")
        assert closed.wait(at.SLOWEST)
        with server.connected() as connection:
            connection.sendall((head + body).encode())
            read_until(connection, b"event: done")
    assert ModelUse.objects.get(tenant=person.tenant).calls == 3
