"""`manage.py doctor`: a line for each thing that the hub needs, and what to do about what is wrong."""

import io
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from memories.api import health
from memories.conf import shared_keys
from memories.llm import tokenizers
from memories.management import policies
from memories.management.commands import doctor
from memories.models import WorkerHeartbeat
from tests.ports import free_port

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def port(settings: Any) -> int:
    settings.PORT = free_port()
    settings.RUNTIME = connection.get_connection_params()
    for name in ("cursor_factory", "context", "client_encoding", "prepare_threshold"):
        settings.RUNTIME.pop(name)
    return int(settings.PORT)


def told(*, wrong: int) -> dict[str, str]:
    """Each look's verdict and what it says; checks that so many are wrong."""
    out = io.StringIO()
    refused = pytest.raises(CommandError, match=f"^{wrong} of {len(doctor.LOOKS)} lines ") if wrong else nullcontext()
    with refused:
        call_command("doctor", stdout=out)
    lines = [line.split(None, 1) for line in out.getvalue().splitlines()]
    return {text.partition(": ")[0]: f"{verdict} {text.partition(': ')[2]}" for verdict, text in lines}


def test_all_is_well() -> None:
    said = told(wrong=0)
    assert list(said) == list(doctor.LOOKS)
    assert {verdict.split()[0] for verdict in said.values()} == {"ok"}, said


def test_tokenizers_that_are_not_installed_are_told_with_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(wrong=0)["tokenizers"] == f"ok {', '.join(tokenizers.TOKENIZERS)}"
    monkeypatch.setattr(tokenizers, "_is_installed", lambda package: package != "llama-models")
    others = ", ".join(name for name in tokenizers.TOKENIZERS if name != "llama-4")
    assert told(wrong=0)["tokenizers"] == f"ok {others}; llama-4 with memory-hub[llama4]"


def test_it_says_what_is_wrong_and_what_to_do(monkeypatch: pytest.MonkeyPatch, settings: Any, port: int) -> None:
    settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL = "openai", f"http://127.0.0.1:{free_port()}/v1"
    settings.MEMORYHUB_LEASE_SECONDS = 1
    settings.MEMORYHUB_BACKUP_NIGHTLY, settings.MEMORYHUB_BACKUP_DAYS = "dump", 14
    monkeypatch.setattr(doctor, "FREE_BYTES", 2**60)
    monkeypatch.setattr(doctor, "CLOCK_SECONDS", -1.0)
    monkeypatch.setattr(doctor, "VECTOR", (99, 0))
    monkeypatch.setattr(doctor, "version", lambda name: {"memoryhub": "9.9"}[name])
    monkeypatch.setattr(health, "lacking_migrations", lambda: "The database lacks migrations: run manage.py migrate.")
    with socket.create_server(("127.0.0.1", port)):
        monkeypatch.setattr(doctor, "PATIENCE_SECONDS", 0.1)
        said = told(wrong=9)
    well = {"database", "roles", "row security", "embedding", "pooler", "keys", "archive", "tokenizers"}
    assert {name for name, verdict in said.items() if verdict.startswith("ok")} == well
    for name, advice in {
        "package": "Uninstall both",
        "settings": "Raise MEMORYHUB_LEASE_SECONDS",
        "disk": "set MEMORYHUB_HOME to another disk",
        "extension": "ALTER EXTENSION vector UPDATE",
        "tables": "run manage.py migrate",
        "clock": "NTP",
        "port": "set MEMORYHUB_PORT",
        "backup": "Does a worker run?",
        "model": "does not answer",
    }.items():
        assert advice in said[name], said


@contextmanager
def behind_https(port: int, reasons: str = "") -> Iterator[None]:
    """A server on the port which, as a hub with an https address, sends away who comes without a proxy's header."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_https = self.headers["X-Forwarded-Proto"] == "https"
            self.send_response(503 if reasons and is_https else 200 if is_https else 301)
            if not is_https:
                self.send_header("Location", f"https://127.0.0.1{self.path}")
            self.end_headers()
            if is_https:
                self.wfile.write(b'{"checks": {}, "reasons": [%s]}' % reasons.encode())

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", port), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_a_hub_with_an_https_address_is_known_again(settings: Any, port: int) -> None:
    """What a container's doctor said of its own web server: that another program uses the port."""
    settings.SECURE_SSL_REDIRECT, settings.SECURE_PROXY_SSL_HEADER = True, ("HTTP_X_FORWARDED_PROTO", "https")
    # The control: so the hub itself answers.
    assert Client().get("/readyz").status_code == 301
    assert "checks" in Client().get("/readyz", headers={"X-Forwarded-Proto": "https"}).json()
    with behind_https(port):
        assert told(wrong=0)["port"] == f"ok a hub answers on {port} and is ready"
    with behind_https(port, '"No worker."'):
        assert told(wrong=1)["port"] == f"wrong a hub answers on {port} and is not ready: No worker."


def test_several_hosts(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    now = timezone.now()
    WorkerHeartbeat.objects.create(name="other:1", started_at=now, beat_at=now, keys=shared_keys.fingerprints())
    assert told(wrong=0)["keys"] == "ok as the workers have them"
    settings.SECRET_KEY = "another" * 9
    assert told(wrong=1)["keys"].startswith("wrong MEMORYHUB_SECRET_KEY differs from that of other:1.")
    WorkerHeartbeat.objects.all().delete()
    # Both addresses of the test lead to the server itself.
    settings.DIRECT = settings.RUNTIME
    assert "DATABASE_URL keeps sessions" in told(wrong=0)["pooler"]
    processes = iter(range(1_000))
    monkeypatch.setattr(doctor, "_process_of", lambda _: next(processes))
    assert "MEMORYHUB_DIRECT_URL leads through a pooler" in told(wrong=1)["pooler"]
    settings.DIRECT = None
    assert "Set MEMORYHUB_POOLER=transaction" in told(wrong=1)["pooler"]
    settings.RUNTIME = {**settings.RUNTIME, "user": "nobody-there"}
    assert "cannot connect as nobody-there" in told(wrong=1)["pooler"]


def test_row_security(settings: Any) -> None:
    settings.MEMORYHUB_ROW_SECURITY = "off"
    policies.lift()
    assert told(wrong=0)["row security"] == "ok off"
    role: str = settings.RUNTIME_ROLE[0]
    policies.give(role, enforced=False)
    settings.MEMORYHUB_ROW_SECURITY = "on"
    assert "run manage.py migrate" in told(wrong=1)["row security"]
    policies.give(role, enforced=True)
    assert told(wrong=0)["row security"].startswith("ok on, for ")
    settings.MEMORYHUB_ROW_SECURITY = "off"
    assert "show web and worker nothing" in told(wrong=1)["row security"]
