"""The stage: a hub as `manage.py up` starts it, in a home of its own, and the floor on the same database."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import django

from benchmarks import load
from benchmarks.load import Server
from tests.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
# What `up` prints at the end of its greeting.
RUNNING = "Ctrl-C stops everything."
PATIENCE_SECONDS = 120.0
# Whoever only sees that it runs names a migrated home here: to make a database and to migrate it takes most of a start.
MIGRATED = "BENCHMARKS_MIGRATED_HOME"


@dataclass(frozen=True)
class Size:
    """How much is measured: rounds, of which the median counts; requests of each client in one; people with facts.

    `shrink`: by what the memories of people who have many are divided.
    """

    rounds: int
    requests: int
    people: int
    shrink: int = 1


SIZES = {
    "full": Size(rounds=5, requests=100, people=2_000),
    "quick": Size(rounds=3, requests=40, people=200, shrink=4),
    "smoke": Size(rounds=1, requests=4, people=4, shrink=200),
}


@dataclass(frozen=True)
class Stage:
    """Both servers; the hub's carries a key for everything. `endpoint`: the port to which the hub's gateway leads."""

    hub: Server
    floor: Server
    size: Size
    endpoint: int = 0


@contextmanager
def opened(size: Size) -> Iterator[Stage]:
    """A stage whose servers answer, and of which nothing is left afterwards."""
    home = Path(tempfile.mkdtemp(prefix="mh-bench-"))
    # As root, the account that runs the database must reach it.
    home.chmod(0o711)
    hub, floor, endpoint = free_port(), free_port(), free_port()
    choose(home, port=hub, endpoint=endpoint)
    _fill(home)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.append(started(home, "manage.py", "up"))
        wait_for(processes[-1], home, lambda: RUNNING in log_of(home))
        django.setup(set_prefix=False)
        processes.append(started(home, "-m", "benchmarks.floor", f"127.0.0.1:{floor}"))
        wait_for(processes[-1], home, lambda: _answers(floor, "/rows?owner=nobody"))
        yield Stage(Server(hub, key()), Server(floor), size, endpoint)
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_SECONDS)
        shutil.rmtree(home)


@contextmanager
def another(chosen: Mapping[str, str]) -> Iterator[Server]:
    """A second hub with these settings, in a home and on a database of its own; the key is its demo's."""
    home = Path(tempfile.mkdtemp(prefix="mh-bench-"))
    home.chmod(0o711)
    _fill(home)
    port = free_port()
    given = {"MEMORYHUB_HOME": str(home / "home"), "MEMORYHUB_PORT": str(port), **chosen}
    process = started(home, "manage.py", "up", environ=given)
    try:
        wait_for(process, home, lambda: RUNNING in log_of(home))
        yield Server(port, json.loads((home / "home" / "demo.json").read_text(encoding="utf-8"))["api_key"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)
        shutil.rmtree(home)


@contextmanager
def unprepared(hub: Server) -> Iterator[Server]:
    """A second web server on the hub's database, which prepares no statements; its keys are the hub's."""
    with another_web(hub, {"DJANGO_SETTINGS_MODULE": "benchmarks.unprepared"}) as server:
        yield server


@contextmanager
def another_web(hub: Server, settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A second web server on the hub's database and home; its keys are the hub's."""
    home, port = Path(tempfile.mkdtemp(prefix="mh-bench-")), free_port()
    process = started(home, "manage.py", "web", "--bind", f"127.0.0.1:{port}", environ=settings)
    try:
        wait_for(process, home, lambda: _answers(port, "/healthz"))
        yield Server(port, hub.key)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)
        shutil.rmtree(home)


def choose(home: Path, *, port: int, endpoint: int) -> None:
    """Make this process and its children users of that home, whatever hub the caller's environment names. The hub asks
    no model; its gateway leads to that port of this machine."""
    for name in list(os.environ):
        if name.startswith(("MEMORYHUB_", "OPENAI_")) or name == "DATABASE_URL":
            del os.environ[name]
    chosen = {"MEMORYHUB_HOME": str(home / "home"), "MEMORYHUB_PORT": str(port), "MEMORYHUB_LLM": "off"}
    chosen["OPENAI_BASE_URL"] = f"http://127.0.0.1:{endpoint}/v1"
    os.environ.update(chosen, DJANGO_SETTINGS_MODULE="memoryhub.settings")


def _fill(home: Path) -> None:
    if migrated := os.environ.get(MIGRATED):
        # The account that runs the server for root keeps its files.
        subprocess.run(["cp", "-a", migrated, home / "home"], check=True)


def key() -> str:
    # Django is set up only now.
    from tests import factories

    return factories.api_key(factories.tenant(slug="bench"))[1]


def started(home: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    with (home / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def wait_for(process: "subprocess.Popen[bytes]", home: Path, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"It does not start:\n{log_of(home)[-2000:]}")
        time.sleep(0.05)


def log_of(home: Path) -> str:
    return (home / "log").read_text(encoding="utf-8", errors="replace")


def _answers(port: int, path: str) -> bool:
    try:
        load.call(Server(port), Server(port).request("GET", path))
    except ConnectionError:
        return False
    return True
