"""An endpoint that notes each request as it came, and a client that sends a request exactly as it is written."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message as Headers
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.commands.served import Served, everything

# What it answers to everything: nobody else has these words.
WORDS = b'{"id": "x1",  "object": "noted", "data": []}'
KEY = "sk-of-the-hub"


@dataclass(frozen=True)
class Asked:
    """A request that came to the endpoint."""

    method: str
    target: str
    headers: Headers
    body: bytes


@dataclass
class Noting:
    """The endpoint: what came, and its base address."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)

    def targets(self) -> list[tuple[str, str]]:
        """Methods and addresses of what came, which is forgotten then."""
        found = [(one.method, one.target) for one in self.asked]
        self.asked.clear()
        return found


@contextmanager
def noting() -> Iterator[Noting]:
    noted = Noting()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65_537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            noted.asked.append(Asked(self.command, self.path, self.headers, body))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(WORDS)))
            self.end_headers()
            self.wfile.write(WORDS)

        def log_message(self, *args: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    noted.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield noted
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class Reply:
    """An answer of the hub."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """The error, whose form is checked: OpenAI's, or with a type beside it Anthropic's."""
        assert self.headers["content-type"] == "application/json"
        document = json.loads(self.body)
        error: dict[str, Any] = document["error"]
        assert isinstance(error["message"], str)
        assert isinstance(error["type"], str)
        assert set(document) == ({"error"} if "code" in error else {"error", "type"})
        return {**error, "is_anthropic": document.get("type") == "error"}


@dataclass(frozen=True)
class Wire:
    """Sends requests as they are written: no library makes another address of one."""

    server: Served
    key: str

    def ask(self, method: str, target: str | bytes, body: bytes = b"", *headers: str, key: str | None = None) -> Reply:
        """`headers` in place of the key, if there are any; `key` in place of the client's."""
        own = headers or (f"Authorization: Bearer {key or self.key}",)
        lines = ["Host: hub", "Connection: close", f"Content-Length: {len(body)}", *own]
        named = target if isinstance(target, bytes) else target.encode("latin-1")
        head = method.encode() + b" " + named + b" HTTP/1.1\r\n" + "\r\n".join(lines).encode() + b"\r\n\r\n"
        with self.server.connected() as connection:
            # A body that is refused by its length may not be read.
            with suppress(OSError):
                connection.sendall(head + body)
            return replied(everything(connection))


def replied(answer: bytes) -> Reply:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *fields = head.decode("latin-1").split("\r\n")
    found = dict(one.split(": ", 1) for one in fields)
    return Reply(int(status.split()[1]), {name.lower(): value for name, value in found.items()}, body)
