"""`manage.py worker` ends when told, takes its whole cluster with it, and never leaves orphans."""

import os
import signal
import subprocess

import psycopg
import pytest

from memoryhub import embedded_postgres
from memoryhub.embedded_postgres import locks
from memoryhub.embedded_postgres.place import locate
from tests.commands.hub import Hub, wait_until


def sentinel(hub: Hub) -> int:
    """The process number of the cluster that beat since the worker was started; waits for it."""
    found: list[str] = []

    def look() -> bool:
        if not embedded_postgres.is_running(hub.home):
            return False
        with psycopg.connect(**embedded_postgres.connection(hub.home)) as connection:
            found[:] = [name for (name,) in connection.execute("SELECT name FROM memories_workerheartbeat")]
        return bool(found)

    wait_until(look, lambda: f"no sign of life:\n{hub.text}")
    return int(found[0].rpartition(":")[2])


def start_worker(hub: Hub) -> tuple["subprocess.Popen[bytes]", int]:
    with embedded_postgres.attached(hub.home), psycopg.connect(**embedded_postgres.connection(hub.home)) as connection:
        connection.execute("DELETE FROM memories_workerheartbeat")
    worker = hub.run("worker")
    return worker, sentinel(hub)


def test_it_ends_when_told(hub: Hub) -> None:
    worker, _ = start_worker(hub)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=20) == 0
    assert hub.is_gone()


def test_killed_it_takes_its_cluster_along(hub: Hub) -> None:
    worker, _ = start_worker(hub)
    worker.kill()
    worker.wait()
    users = locate(hub.home).users_lock
    wait_until(lambda: not locks.is_held(users, by_anyone=True))
    # Nobody was left to stop the server.
    embedded_postgres.stop(hub.home)


def test_it_fails_with_its_cluster(hub: Hub) -> None:
    worker, cluster = start_worker(hub)
    os.kill(cluster, signal.SIGKILL)
    assert worker.wait(timeout=20) == 1
    assert "The worker's cluster died." in hub.text
    assert hub.is_gone()


def test_a_wedged_cluster_is_killed(hub: Hub) -> None:
    worker, cluster = start_worker(hub)
    os.kill(cluster, signal.SIGSTOP)
    worker.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(timeout=1)
    # Saves the test the rest of GRACE_SECONDS.
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=20) == 0
    assert hub.is_gone()
