"""Keeps a django-q2 cluster running, and ends it in any state: its own stop waits forever on a hanging queue."""

import logging
import multiprocessing
import os
import signal
import threading
import time
import uuid
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event

from django.db import connections
from django_q.cluster import Sentinel
from django_q.conf import Conf

from memories.jobs.pulse import heartbeat_name
from memories.jobs.roll_call import roll_call
from memories.jobs.supervision import (
    LOOK_SECONDS,
    StopRequests,
    crashes_after,
    has_members,
    kill_group,
    pause_after,
    wait_until,
)
from memories.jobs.watchdog import Watchdog

# A batch that is cut off here has committed nothing. Another worker takes it when its lease ends.
GRACE_SECONDS = 8.0
# At most: a dead process that nobody waits for stays a member of its group forever.
GONE_SECONDS = 2.0

logger = logging.getLogger(__name__)


def keep_cluster() -> None:
    """Run a cluster until a stop signal, and replace one that dies or hangs. No process is left."""
    crashes = 0
    with StopRequests() as requests:
        while not requests.count:
            begun = time.monotonic()
            ended = _run_cluster(requests)
            if not requests.count:
                crashes = crashes_after(crashes, lived=time.monotonic() - begun)
                pause = pause_after(crashes)
                logger.error("The cluster %s; starting another one in %.1f s", ended, pause)
                wait_until(lambda: requests.count > 0, pause)


def _run_cluster(requests: StopRequests) -> str:
    """Run one cluster from its start until no process of it is left. Returns how it ended.

    The cluster is a process group under its sentinel. It ends with this process, by whatever cause: the sentinel reads
    a pipe, and only this process holds the other end.
    """
    # The forked processes must not share a connection.
    connections.close_all()
    context = multiprocessing.get_context("fork")
    stop, started = context.Event(), context.Event()
    watched, held = os.pipe()
    sentinel = context.Process(target=_guard, args=(stop, started, watched, held), daemon=False)
    sentinel.start()
    watchdog = Watchdog(cluster=heartbeat_name(sentinel.pid or 0), pool=Conf.WORKERS)
    watchdog.start()
    while sentinel.is_alive() and not (requests.count or watchdog.wedged.is_set()):
        time.sleep(LOOK_SECONDS)
    ended = "took no work" if watchdog.wedged.is_set() else "died"
    watchdog.end()
    if requests.count:
        # In a thread: set() waits for every waiter to wake up, and a sentinel that died or hangs never does.
        threading.Thread(target=stop.set, name="stop-cluster", daemon=True).start()
        # One more signal ends the waiting.
        wait_until(lambda: not sentinel.is_alive() or requests.count > 1, GRACE_SECONDS)
    _kill(sentinel)
    os.close(watched)
    os.close(held)
    return ended


def _kill(sentinel: BaseProcess) -> None:
    leader = sentinel.pid
    if leader:
        kill_group(leader)
    # The sentinel may not have made its group yet.
    sentinel.kill()
    sentinel.join()
    if leader:
        # A dying process still counts as a user of the embedded database, which would then stay up as if for others.
        wait_until(lambda: not has_members(leader), GONE_SECONDS)


def _guard(stop: Event, started: Event, watched: int, held: int) -> None:
    """The process of the sentinel: the leader of the cluster's process group."""
    os.setpgid(0, 0)
    os.close(held)

    def die_with_parent() -> None:
        os.read(watched, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=die_with_parent, name="die-with-parent", daemon=True).start()
    _Sentinel(stop, started, uuid.uuid4())


class _Sentinel(Sentinel):  # type: ignore[misc]  # django-q has no types
    def status(self) -> str:
        """django-q calls this in each round of its guard. A guard that waits for a lost lock stops judging."""
        # The timer is below 0 for an idle process; above it are the seconds that a busy one has left.
        roll_call.judge(anyone_idle=any(process.timer.value < 0 for process in self.pool), now=time.monotonic())
        return super().status()  # type: ignore[no-any-return]

    def reincarnate(self, process: BaseProcess) -> None:
        """Replace a process of the pool. When the monitor or the pusher dies, end the whole cluster: it may have held
        the lock of a queue, which nobody could take any more."""
        if process in (self.monitor, self.pusher):
            os.killpg(0, signal.SIGKILL)
        super().reincarnate(process)
