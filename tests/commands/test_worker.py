"""`manage.py worker` ends when told, takes its whole cluster with it, and never leaves orphans."""

import os
import signal
import subprocess

import pytest

from memories.models import WorkerKind
from memoryhub import embedded_postgres
from memoryhub.embedded_postgres import locks
from memoryhub.embedded_postgres.place import locate
from tests.commands.hub import PATIENCE_SECONDS, Hub, wait_until
from tests.scratch import connect


def sentinel(stopped: Hub) -> int:
    """The process number of the cluster that beat since the worker was started; waits for it and for the embedder.

    An embedder that is still starting when its worker is killed attaches to the database later. It would start the
    server anew, and nobody stops that one if the embedder is slow to load its model and is killed, too.
    """
    found: dict[str, str] = {}

    def look() -> bool:
        if not embedded_postgres.is_running(stopped.home):
            return False
        with connect(stopped.home) as connection:
            found.update(connection.execute("SELECT kind, name FROM memories_workerheartbeat").fetchall())
        return len(found) == len(WorkerKind)

    wait_until(look, lambda: f"no sign of life:\n{stopped.text}")
    return int(found[WorkerKind.CLUSTER].rpartition(":")[2])


def start_worker(stopped: Hub) -> tuple["subprocess.Popen[bytes]", int]:
    with (
        embedded_postgres.attached(stopped.home),
        connect(stopped.home) as connection,
    ):
        connection.execute("DELETE FROM memories_workerheartbeat")
    worker = stopped.run("worker")
    return worker, sentinel(stopped)


def test_killed_it_takes_its_cluster_along(stopped: Hub) -> None:
    worker, _ = start_worker(stopped)
    worker.kill()
    worker.wait()
    users = locate(stopped.home).users_lock
    wait_until(lambda: not locks.is_held(users, by_anyone=True))
    # Nobody was left to stop the server.
    embedded_postgres.stop(stopped.home)


def test_a_wedged_cluster_is_killed(stopped: Hub) -> None:
    worker, cluster = start_worker(stopped)
    os.kill(cluster, signal.SIGSTOP)
    worker.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(timeout=1)
    # Saves the test the rest of GRACE_SECONDS.
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=PATIENCE_SECONDS) == 0
    assert stopped.is_gone()
