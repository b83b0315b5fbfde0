"""The hub and its peers as things that can be asked, killed and started again, each in a home of its own."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks import load, processes, stage
from benchmarks.compare.ground import TOP, Ground
from benchmarks.load import Measured, Server
from tests.clients_suite import environments
from tests.ports import free_port

PEERS = Path(__file__).with_name("peers").absolute()
FILL_SECONDS, LOAD_SECONDS, START_SECONDS, ORPHANS_SECONDS = 900.0, 7_200.0, 120.0, 5.0
TENANT = "bench"
# The hub brings it along; the peers are on the same one.
DATABASE = ("postgres",)


class Product(ABC):
    """One that is compared. Its requests go over HTTP to `server`."""

    name: str
    title: str
    server: Server

    @abstractmethod
    def search(self, person: str, question: str, limit: int = TOP) -> bytes:
        """A request for the best rows."""

    @abstractmethod
    def add(self, person: str, text: str, key: str) -> bytes:
        """A request that adds a row; the same key again is the same row, where the product has such keys."""

    @abstractmethod
    def found(self, answer: Any) -> list[str]:
        """What a search names: ids of the hub's, texts of a peer's."""

    def has(self, person: str) -> bool:
        """Whether it was filled with all rows of that person."""
        return True

    @abstractmethod
    def texts(self, person: str) -> list[str]:
        """Of all rows that it has of them."""

    @abstractmethod
    def erase(self, person: str) -> None:
        """Delete them and all that is theirs, in the product's own way."""

    @abstractmethod
    def database(self) -> str:
        """The address of its database, for looking into it."""

    @abstractmethod
    def folder(self) -> Path:
        """Where its files lie."""

    @abstractmethod
    def start(self) -> None:
        """Start it on what it has; returns when it answers."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL to all of its processes at once."""

    @abstractmethod
    def megabytes(self) -> float:
        """Memory (Pss) of its processes, without PostgreSQL's."""


class Hub(Product):
    """The hub as `manage.py up` starts it, on loopback, without a model."""

    name, title = "hub", "Memory Hub"

    def __init__(self, home: Path) -> None:
        self._home, self._port = home, free_port()
        # Where its gateway leads.
        self.endpoint = free_port()
        self._started: list[subprocess.Popen[bytes]] = []
        stage.choose(home, port=self._port, endpoint=self.endpoint)

    def start(self) -> None:
        process = stage.started(self._home, "manage.py", "up")
        self._started.append(process)
        # Each start greets in the same log.
        greetings = len(self._started)
        stage.wait_for(process, self._home, lambda: stage.log_of(self._home).count(stage.RUNNING) == greetings)

    def make_key(self) -> None:
        """Its tenant and a key of it, once Django is set up."""
        self.server = Server(self._port, stage.key())

    def search(self, person: str, question: str, limit: int = TOP) -> bytes:
        return self.server.request("POST", "/api/v1/search", searched(person, question, limit))

    def add(self, person: str, text: str, key: str) -> bytes:
        message = {"role": "user", "content": text}
        given = {"user_id": person, "session_id": f"added-{person}", "messages": [message]}
        return self.server.request("POST", "/api/v1/turns", given, **{"Idempotency-Key": key})

    def found(self, answer: Any) -> list[str]:
        return [one["id"] for one in answer["results"]]

    def texts(self, person: str) -> list[str]:
        from django.db import connections

        from memories.models import Turn

        found = list(Turn.objects.filter(end_user__external_id=person).values_list("content", flat=True))
        connections.close_all()
        return found

    def erase(self, person: str) -> None:
        from io import StringIO

        from django.core.management import call_command
        from django.db import connections

        call_command("erase_user", tenant=TENANT, user=person, stdout=StringIO(), stderr=StringIO())
        connections.close_all()

    def database(self) -> str:
        from memoryhub import embedded_postgres

        return make_conninfo(**embedded_postgres.connection(Path(os.environ["MEMORYHUB_HOME"])))

    def folder(self) -> Path:
        return Path(os.environ["MEMORYHUB_HOME"])

    def kill(self) -> None:
        processes.end(self._mark, signal.SIGKILL)
        self._started[-1].wait(stage.PATIENCE_SECONDS)
        # PostgreSQL's other processes see for themselves that their parent is gone.
        time.sleep(ORPHANS_SECONDS)

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        for process in self._started[-1:]:
            process.send_signal(signal.SIGTERM)
            process.wait(stage.PATIENCE_SECONDS)

    def megabytes(self) -> float:
        return processes.megabytes(self._mark, without=DATABASE)

    @property
    def _mark(self) -> str:
        return f"MEMORYHUB_HOME={os.environ['MEMORYHUB_HOME']}"


@dataclass
class Peer(Product):
    """A peer in an environment of its own, its library behind a minimal HTTP view; its tables lie in a database of its
    own on the hub's PostgreSQL."""

    name: str
    says: Mapping[str, Any]
    dsn: str
    home: Path
    ground: Ground
    # So long a peer that writes row by row has for filling; what it cannot take by then it is not asked about.
    fill_seconds: float = FILL_SECONDS

    def __post_init__(self) -> None:
        self.rows = len(self.ground.texts)
        self.title = self.says["title"]
        # Then its answers are not the nearest rows, and nothing is wrong with that.
        self.ranks_by_words: bool = self.says.get("ranks_by_words", False)
        self.server = Server(free_port())
        self._log = self.home / "log"

    @cached_property
    def _program(self) -> Path:
        return environment(self.name, self.says)

    def setup(self) -> None:
        """Its tables, empty. Errors: subprocess.SubprocessError."""
        self._run("setup")

    def load(self) -> float:
        """All rows of the ground, or those for which there is time; seconds that its index took.

        Errors: subprocess.SubprocessError.
        """
        told: dict[str, Any] = json.loads(self._run("load").splitlines()[-1])
        if told["rows"] is not None:
            self.rows = told["rows"]
        seconds: float = told["index_seconds"]
        return seconds

    def has(self, person: str) -> bool:
        return self.ground.has(person, self.rows)

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [*self._command, "serve", str(self.server.port), str(self.says["processes"])]
            process = subprocess.Popen(command, env=self._environ, cwd=self.home, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                load.call(self.server, self.server.request("GET", "/"))
            except ConnectionError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise load.RefusedError(self._said("start", process.returncode)) from None
                time.sleep(0.1)
            else:
                return

    def search(self, person: str, question: str, limit: int = TOP) -> bytes:
        return self.server.request("POST", "/search", searched(person, question, limit))

    def add(self, person: str, text: str, key: str) -> bytes:
        return self.server.request("POST", "/add", {"user_id": person, "text": text, "key": key})

    def inside(self, person: str, scripts: Sequence[Sequence[str]]) -> Measured:
        """The same searches as calls of the library: a thread of one process for each script."""
        given = {"user_id": person, "scripts": scripts, "limit": TOP}
        told = load.call(self.server, self.server.request("POST", "/inside", given))
        return Measured(told["seconds"], told["milliseconds"])

    def found(self, answer: Any) -> list[str]:
        return [one["text"] for one in answer["results"]]

    def texts(self, person: str) -> list[str]:
        found: list[str] = load.call(self.server, self.server.request("POST", "/texts", {"user_id": person}))["texts"]
        return found

    def erase(self, person: str) -> None:
        load.call(self.server, self.server.request("POST", "/delete", {"user_id": person}))

    def database(self) -> str:
        return self.dsn

    def folder(self) -> Path:
        return self.home

    def kill(self) -> None:
        processes.end(self._mark, signal.SIGKILL)

    def megabytes(self) -> float:
        return processes.megabytes(self._mark)

    @property
    def _mark(self) -> str:
        return f"COMPARE_FOLDER={self.home}"

    @property
    def _command(self) -> list[str]:
        return [str(self._program), str(PEERS / f"{self.name}.py")]

    @cached_property
    def _environ(self) -> Mapping[str, str]:
        own = {
            "COMPARE_FOLDER": str(self.home),
            "COMPARE_GROUND": str(self.ground.folder),
            "COMPARE_DSN": self.dsn,
            "COMPARE_DIMENSIONS": str(self.ground.vectors.shape[1]),
            "COMPARE_FILL_SECONDS": str(self.fill_seconds),
            "HOME": str(self.home),
            # What it finds installed is its own.
            "PATH": f"{self._program.parent}:{os.environ['PATH']}",
        }
        return environments.bare(**own)

    def _run(self, what: str) -> str:
        with self._log.open("ab") as log:
            done = subprocess.run(
                [*self._command, what],
                env=self._environ,
                cwd=self.home,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                timeout=LOAD_SECONDS,
                check=False,
            )
        if done.returncode:
            raise load.RefusedError(self._said(what, done.returncode))
        return done.stdout

    def _said(self, what: str, code: int | None) -> str:
        """How that ended, and the end of its log. A signal lets it say nothing."""
        how = f"{what}: {_ended(code)}"
        if code is not None and code < 0:
            return how
        lines = self._log.read_text("utf-8", errors="replace").strip().splitlines()
        return f"{how}. {' '.join(lines[-3:])[-400:]}".strip()


def environment(name: str, says: Mapping[str, Any]) -> Path:
    """The interpreter of its environment, made when it is not there. Errors: as of `environments.python`."""
    return environments.python(f"compare-{name}", says["packages"], version=says.get("python", ""))


def _ended(code: int | None) -> str:
    if code is None:
        return "no answer in time"
    return f"ended by signal {-code}" if code < 0 else f"ended with {code}"


def searched(person: str, question: str, limit: int) -> dict[str, Any]:
    """What a search is sent; peers ignore the kind."""
    return {"user_id": person, "query": question, "kinds": ["turn"], "limit": limit}


@contextmanager
def opened_hub() -> Iterator[Hub]:
    """A hub that answers, of which nothing is left afterwards; Django is set up for it."""
    import django

    home = Path(temporary("mh-compare-"))
    hub = Hub(home)
    try:
        hub.start()
        django.setup(set_prefix=False)
        hub.make_key()
        yield hub
    finally:
        hub.stop()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def opened_peer(
    name: str, says: Mapping[str, Any], hub: Hub, ground: Ground, fill_seconds: float = FILL_SECONDS
) -> Iterator[Peer]:
    """A peer with empty tables that does not run yet. Its processes end with the block."""
    home = Path(temporary(f"compare-{name}-"))
    peer = Peer(name, says, _made(hub.database(), f"compare_{name}"), home, ground, fill_seconds)
    try:
        yield peer
    finally:
        peer.kill()
        shutil.rmtree(home, ignore_errors=True)


def temporary(prefix: str) -> str:
    """A folder that the account which runs the database for root can pass through."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o711)
    return str(folder)


def _made(dsn: str, name: str) -> str:
    """The address of an empty database with pgvector, beside that one."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    made = make_conninfo(dsn, dbname=name)
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    return made
