"""A hub that is started for an evaluation, as `manage.py up` starts it, in a temporary home without a model."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
# What `up` prints at the end of its greeting.
RUNNING = "Ctrl-C stops everything."
PATIENCE_SECONDS = 120.0


class Hub:
    """Requests of one key over one connection that is kept."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON; SystemExit for an error, with what the hub says about it."""
        sent = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, f"/api/v1{path}", sent, self._headers)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError):
            # The server ends connections that rested for a while.
            self._connection.close()
            self._connection.request(method, f"/api/v1{path}", sent, self._headers)
            answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path} answered {answer.status}: {text[:1000]!r}")
        return json.loads(text)


@contextmanager
def started(**environ: str) -> Iterator[Hub]:
    """A hub that answers, of which nothing is left afterwards; with these variables and none of the caller's."""
    home = Path(tempfile.mkdtemp(prefix="mh-eval-"))
    # As root, the account that runs the database must reach it.
    home.chmod(0o711)
    own = {name: value for name, value in os.environ.items() if not _is_of_a_hub(name)}
    port = free_port()
    own |= {"MEMORYHUB_HOME": str(home / "home"), "MEMORYHUB_PORT": str(port), "MEMORYHUB_LLM": "off", **environ}
    own["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up"], cwd=ROOT, env=own, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        _wait_for(process, home / "log")
        yield Hub(port, _key(own))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)
        shutil.rmtree(home)


def _is_of_a_hub(name: str) -> bool:
    return name.startswith(("MEMORYHUB_", "OPENAI_", "DJANGO_")) or name == "DATABASE_URL"


def _key(environ: dict[str, str]) -> str:
    asked = ["manage.py", "create_api_key", "--tenant", "evaluation", "--scopes", "ingest,read,write"]
    made = subprocess.run([sys.executable, *asked], cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    return made.stdout.strip()


def _wait_for(process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while RUNNING not in log.read_text(encoding="utf-8", errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"The hub does not start:\n{log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
        time.sleep(0.05)
