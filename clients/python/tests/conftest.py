"""A fresh hub for the tests that ask one: a process of its own with a home of its own, ended with them."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memoryhub_client import MemoryHub


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


# These are large, so their tests run in environments of their own: `make clients-suite`.
FRAMEWORKS = {"llamaindex": "llama_index.core", "crewai": "crewai", "adk": "google.adk"}
MISSING = [name for name, package in FRAMEWORKS.items() if not _is_there(package)]
collect_ignore = [f"test_{name}.py" for name in MISSING]
ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".venv/bin/python"
RUNNING = "Ctrl-C stops everything."
PATIENCE_SECONDS = 300.0
# Each line is a list of arguments, and is answered by a key: a command of its own loads the hub for seconds each time.
KEYS = """
import json, os, sys
import django
from django.core.management import call_command
from memoryhub import embedded_postgres, roles

os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
roles.choose_role("create_api_key")
with embedded_postgres.attached(embedded_postgres.home_from_environ(os.environ)):
    django.setup()
    for line in sys.stdin:
        call_command(*json.loads(line))
        sys.stdout.flush()
"""


class RunningHub:
    """Where it is, and a key for it."""

    def __init__(self, home: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}"
        # The caller's settings are for another hub.
        ours = ("MEMORYHUB_", "OPENAI_", "DATABASE_URL", "PYTHONPATH")
        own = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self._environ = {**own, "MEMORYHUB_HOME": str(home), "MEMORYHUB_PORT": str(self.port)}
        # As fast as it may be: tests wait for what it extracts.
        self._environ["MEMORYHUB_DEBOUNCE_SECONDS"] = "1"
        self._log = home.parent / "output.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._keys: subprocess.Popen[str] | None = None

    def start(self) -> None:
        # That the hub makes its tables by itself is shown by its own tests, and takes ten seconds of the processor.
        home = self._environ["MEMORYHUB_HOME"]
        subprocess.run([PYTHON, "-m", "tests.homes", home], cwd=ROOT, env=self._environ, check=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [PYTHON, "manage.py", "up"],
                cwd=ROOT,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        process = self._process
        wait_until(lambda: RUNNING in self._log.read_text("utf-8") or process.poll() is not None)
        assert process.poll() is None, self._log.read_text("utf-8")

    def key(self, *options: str, tenant: str = "clients") -> str:
        scopes = "ingest,read,write,privacy"
        return self._made("create_api_key", "--tenant", tenant, "--scopes", scopes, *options)

    def management_key(self) -> str:
        return self._made("create_management_key", "--name", "tests")

    def _made(self, *command: str) -> str:
        if self._keys is None:
            self._keys = subprocess.Popen(
                [PYTHON, "-c", KEYS],
                cwd=ROOT,
                env=self._environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        asked, made = self._keys.stdin, self._keys.stdout
        assert asked
        assert made
        asked.write(json.dumps(command) + "\n")
        asked.flush()
        found = made.readline().strip()
        assert found.startswith("mh"), "no key was made: see what stands on standard error"
        return found

    def end(self) -> None:
        if self._keys:
            self._keys.communicate(timeout=PATIENCE_SECONDS)
        if self._process:
            self._process.terminate()
            self._process.wait(PATIENCE_SECONDS)


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def running() -> Iterator[RunningHub]:
    folder = Path(tempfile.mkdtemp(prefix="mh-clients-"))
    # As root another account runs the database.
    folder.chmod(0o711)
    hub = RunningHub(folder / "home")
    try:
        hub.start()
        yield hub
    finally:
        hub.end()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def key(running: RunningHub) -> str:
    return running.key()


@pytest.fixture
def hub(running: RunningHub, key: str) -> Iterator[MemoryHub]:
    with MemoryHub(key, base_url=running.base_url) as found:
        yield found


@pytest.fixture
def user_id() -> str:
    """Somebody new."""
    return f"u-{uuid.uuid4()}"
