"""A small OpenID provider on the loopback: whoever comes is who the test says."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

CLIENT, SECRET = "hub", "the-secret-of-the-client-for-tests-only"


class Provider(ThreadingHTTPServer):
    """`claims` is what it says of the person, `token_claims` what the ID token alone says, or leaves out (None)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.claims: dict[str, Any] = {}
        self.token_claims: dict[str, Any] = {}
        self.token_requests: list[dict[str, str]] = []
        self.challenge = ""

    def settings(self) -> dict[str, Any]:
        app = {"provider_id": "sso", "name": "Acme", "client_id": CLIENT, "secret": SECRET}
        return {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": [{**app, "settings": {"server_url": self.url}}]}}


class _Answers(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        if self.path.startswith("/.well-known/"):
            names = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
            self._say({**{f"{name}_endpoint": f"{self.server.url}/{path}" for name, path in names.items()},
                       "issuer": self.server.url, "jwks_uri": f"{self.server.url}/keys"})  # fmt: skip
        else:
            self._say(self.server.claims)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self.server.token_requests.append(form)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != self.server.challenge:
            self.send_error(400)
            return
        claims = {"iss": self.server.url, "aud": CLIENT, "exp": 4_000_000_000, "iat": 0, **self.server.claims}
        said = {name: value for name, value in {**claims, **self.server.token_claims}.items() if value is not None}
        token = jwt.encode(said, "k" * 32, algorithm="HS256")
        self._say({"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": token})

    def _say(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@contextmanager
def running() -> Iterator[Provider]:
    server = Provider()
    # Its end is waited for at each test's end: it looks for it every half second unless it is told otherwise.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def query_of(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
