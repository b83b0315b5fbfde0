"""A receiver of webhooks with the standard library alone: WEBHOOK_SECRET=whsec_… python webhook_receiver.py [PORT]"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOLERANCE = 300


def is_genuine(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Whether the hub signed this body, within the last five minutes."""
    headers = {name.lower(): value for name, value in headers.items()}
    message, moment = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not moment.isdigit() or abs(time.time() - int(moment)) > TOLERANCE:
        return False
    signed = b".".join([message.encode(), moment.encode(), body])
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # After a rotation there are two signatures for a day.
    given = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(expected.encode(), one.encode()) for one in given)


class Receiver(BaseHTTPRequestHandler):
    secret = os.environ.get("WEBHOOK_SECRET", "")
    # Keep these ids in a database, in the transaction in which you process the event: the hub retries for three days.
    seen: set[str] = set()
    events: list[dict[str, Any]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not is_genuine(dict(self.headers.items()), body, self.secret):
            self.answer(401)
            return
        message = self.headers["webhook-id"]
        if message not in self.seen:
            self.seen.add(message)
            self.events.append(json.loads(body))
            sys.stdout.write(f"{self.events[-1]}\n")
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        """Nothing: the events are printed."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 8400), Receiver).serve_forever()
