"""A model endpoint on loopback that answers, or misbehaves, exactly as a test says."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from email.message import Message as Headers
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Seconds after which a slow response ends by itself, so that a client without a deadline fails its test.
SLOWEST = 10.0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: "Endpoint"
    # The request being answered: the last one of the endpoint may be another client's.
    asked: dict[str, Any]

    def do_GET(self) -> None:
        self.endpoint.get(self)

    def do_POST(self) -> None:
        self.asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.endpoint.lock:
            number = len(self.endpoint.requests)
            self.endpoint.requests.append(self.asked)
            self.endpoint.headers.append(self.headers)
            respond = self.endpoint.responses[min(number, len(self.endpoint.responses) - 1)]
        try:
            respond(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Silent."""

    def whole(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


Response = Callable[[Handler], None]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """Silent: clients that go away are what these tests are about."""


class Endpoint:
    """The n-th request gets the n-th response, further ones the last."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Headers] = []
        self.responses: list[Response] = [says("{}")]
        self.get: Response = fails(404)
        self.lock = threading.Lock()
        self.ended = threading.Event()
        handler = type("BoundHandler", (Handler,), {"endpoint": self})
        self.server = Server(("127.0.0.1", port), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def responds(self, *responses: Response) -> None:
        self.responses = list(responses)

    def formats(self) -> list[str | None]:
        """The type of each request's response_format, None where it had none."""
        return [request.get("response_format", {}).get("type") for request in self.requests]


@contextlib.contextmanager
def running(port: int = 0) -> Iterator[Endpoint]:
    """Listens on any free port, or on the one that is named."""
    endpoint = Endpoint(port)
    thread = threading.Thread(target=endpoint.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.ended.set()
        endpoint.server.shutdown()
        endpoint.server.server_close()
        thread.join()


def envelope(content: Any, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "finish_reason": finish_reason,
    }
    usage = {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


Piece = str | threading.Event | Callable[[Handler], None]


def streams(*pieces: Piece, usage: bool = True, finish_reason: str = "stop", ends: bool = True) -> Response:
    """Writes the pieces of an answer one after the other, waits for gates among them, and calls what is callable."""

    def respond(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        handler.close_connection = True
        for piece in pieces:
            if isinstance(piece, threading.Event):
                piece.wait(SLOWEST)
            elif isinstance(piece, str):
                _say(handler, choices=[{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
            else:
                piece(handler)
        if ends:
            _say(handler, choices=[{"index": 0, "delta": {}, "finish_reason": finish_reason}])
            if usage:
                _say(handler, choices=[], usage=envelope("")["usage"])
            handler.wfile.write(b"data: [DONE]\n\n")

    return respond


def _say(handler: Handler, **chunk: Any) -> None:
    handler.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")


def sees_end(closed: threading.Event) -> Callable[[Handler], None]:
    """Waits until the client closes the connection."""

    def wait(handler: Handler) -> None:
        handler.connection.settimeout(SLOWEST)
        # A client that leaves before it has read all that came closes with a reset.
        with contextlib.suppress(ConnectionResetError):
            if handler.connection.recv(1):
                return
        closed.set()

    return wait


def says(content: Any, finish_reason: str = "stop", **message: Any) -> Response:
    return sends(json.dumps(envelope(content, finish_reason, **message)).encode())


def sends(body: bytes, status: int = 200, **headers: str) -> Response:
    return lambda handler: handler.whole(status, body, **headers)


def fails(status: int, message: str = "no", **headers: str) -> Response:
    return sends(json.dumps({"error": {"message": message, "type": "t"}}).encode(), status, **headers)


def hangs(handler: Handler) -> None:
    handler.endpoint.ended.wait(SLOWEST)


def drips_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _drip(handler)


def drips_body(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    _drip(handler)


def _drip(handler: Handler) -> None:
    for _ in range(int(SLOWEST / 0.02)):
        if handler.endpoint.ended.wait(0.02):
            return
        handler.wfile.write(b" ")


def speaks_ssh(handler: Handler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n")


def resets(handler: Handler) -> None:
    # Linger of 0 s: closing sends RST.
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def closes(handler: Handler) -> None:
    handler.close_connection = True


def ends_early(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


def never_ends(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(1_000):
        handler.wfile.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
