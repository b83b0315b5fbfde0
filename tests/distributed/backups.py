"""Backups of a cluster by PostgreSQL's programs: a base backup and the WAL of each node, and one point of all."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.distributed.cluster import USER, Cluster, Node, begun, made, run, start, started

POINT = "all-nodes"
SLOT = "archive"
Wait = Callable[[Callable[[], Any]], Any]


@contextmanager
def archived(programs: Path, cluster: Cluster, folder: Path, *, waits: bool = False) -> Iterator[None]:
    """Base backups of all nodes; the WAL that they write in the block is kept beside them.

    `waits`: a commit ends when its WAL is kept, so that nothing that was accepted is lost with a node.
    """
    with ExitStack() as stack:
        for node in cluster.nodes:
            base, wal = _places(folder, node)
            made(base.parent, base, wal)
            connection = ["--host=127.0.0.1", f"--port={node.port}", f"--username={USER}"]
            # Without a slot the server may remove a file before it is received: the fast checkpoint below does.
            slot = [f"--slot={SLOT}", *connection]
            run(programs / "pg_receivewal", "--create-slot", "--if-not-exists", *slot)
            receiver = begun(programs / "pg_receivewal", "--synchronous", f"--directory={wal}", *slot)
            stack.callback(receiver.wait)
            stack.callback(receiver.terminate)
            run(programs / "pg_basebackup", f"--pgdata={base}", "--wal-method=none", "--checkpoint=fast", *connection)
            if waits:
                _wait_for_receiver(node, yes=True)
                stack.callback(_wait_for_receiver, node, yes=False)
        yield


def _wait_for_receiver(node: Node, *, yes: bool) -> None:
    with node.connect() as connection:
        connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{'pg_receivewal' if yes else ''}'")
        connection.execute("SELECT pg_reload_conf()")


def note_point(cluster: Cluster, folder: Path, wait: Wait) -> None:
    """Name this moment on all nodes: no transaction of several nodes is before it on one and after it on another.

    Then the WAL up to there is waited for.
    """
    with cluster.nodes[0].connect() as connection:
        connection.execute("SELECT citus_create_restore_point(%s)", [POINT])
    for node in cluster.nodes:
        with node.connect() as connection:
            [name] = connection.execute("SELECT pg_walfile_name(pg_current_wal_insert_lsn())").fetchone() or [""]
            connection.execute("SELECT pg_switch_wal()")
        wait((_places(folder, node)[1] / name).is_file)


@contextmanager
def restored(programs: Path, cluster: Cluster, folder: Path, wait: Wait) -> Iterator[None]:
    """The nodes as they were at the point, under their addresses; the servers of before have ended."""
    with ExitStack() as stack:
        for node in cluster.nodes:
            base, wal = _places(folder, node)
            (base / "recovery.signal").touch()
            settings = {
                "unix_socket_directories": str(base.parent),
                "restore_command": f"cp {wal}/%f %p",
                "recovery_target_name": POINT,
                "recovery_target_action": "promote",
            }
            stack.enter_context(started(programs, base, settings))
        for node in cluster.nodes:
            wait(partial(_is_open, node))
        with cluster.nodes[0].connect() as connection:
            # What was between the two phases of its commit.
            connection.execute("SELECT recover_prepared_transactions()")
        yield


def restore_node(programs: Path, cluster: Cluster, node: Node, folder: Path, wait: Wait) -> None:
    """A lost node is there again, from its base backup and all of its WAL that was kept, under its address."""
    base, wal = _places(folder, node)
    data = cluster.data(node)
    run("cp", "-a", base, data)
    (data / "recovery.signal").touch()
    # The last file was not whole when the node went.
    start(programs, data, {"restore_command": f"cp {wal}/%f %p || cp {wal}/%f.partial %p"})
    wait(partial(_is_open, node))
    with cluster.nodes[0].connect() as connection:
        connection.execute("SELECT recover_prepared_transactions()")


def _places(folder: Path, node: Node) -> tuple[Path, Path]:
    return folder / node.name / "base", folder / node.name / "wal"


def _is_open(node: Node) -> bool:
    """Whether the recovery is over, so that it takes writes."""
    with node.connect() as connection:
        return connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
