"""A receiver on loopback, and webhooks that lead to it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memories.curation.tenants.webhooks import WebhookSettings, add_webhook
from memories.models import Event, Tenant, WebhookEndpoint
from tests.factories import COMMAND, NOW

ALL = [event for event in Event.values if event != Event.TEST]


class Receiver:
    """Keeps what it is sent, headers and body, and answers with `status` and `said`; `meanwhile` runs before that."""

    def __init__(self, port: int) -> None:
        self.port, self.status, self.location, self.said = port, 204, "", ""
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.meanwhile: Callable[[], Any] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @contextmanager
    def listening(self, handler: type[BaseHTTPRequestHandler] | None = None) -> Iterator[None]:
        server = ThreadingHTTPServer(("127.0.0.1", self.port), handler or _handler(self))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            receiver.meanwhile()
            self.send_response(receiver.status)
            if receiver.location:
                self.send_header("location", receiver.location)
            self.end_headers()
            self.wfile.write(receiver.said.encode())

        def log_message(self, *_args: Any) -> None:
            """Nothing."""

    return Handler


def webhook(tenant: Tenant, url: str, *, events: list[str] | None = None, content: bool = False) -> tuple[Any, str]:
    settings = WebhookSettings("CRM", url, events or ALL, content=content)
    made, secret = add_webhook(tenant_id=tenant.pk, settings=settings, actor=COMMAND, now=NOW)
    tenant.refresh_from_db()
    return WebhookEndpoint.objects.get(pk=made.pk), secret
