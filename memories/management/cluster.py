"""Keep django-q2's cluster running, and end it whatever its state: its own stop waits for ever on a wedged queue."""

import logging
import multiprocessing
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event

from django.db import connections
from django_q.cluster import Sentinel
from django_q.conf import Conf

from memories.management.supervision import (
    HEALTHY_SECONDS,
    LOOK_SECONDS,
    StopRequests,
    has_members,
    kill_group,
    pause_after,
)
from memories.management.watchdog import Watchdog
from memories.schedules import heartbeat_name, roll_call

# A batch that is cut off here is taken up again when its lease ends, and nothing of it was committed.
GRACE_SECONDS = 8.0
# At most: where nobody fetches the dead, they stay members of their group for ever.
GONE_SECONDS = 2.0

logger = logging.getLogger(__name__)


def keep_cluster() -> None:
    """Blocks until a signal asks for the end; a cluster that dies or wedges before is replaced. Nothing is left."""
    crashes = 0
    with StopRequests() as requests:
        while not requests.count:
            begun = time.monotonic()
            ended = _run_cluster(requests)
            if not requests.count:
                crashes = 1 if time.monotonic() - begun >= HEALTHY_SECONDS else crashes + 1
                pause = pause_after(crashes)
                logger.error("The cluster %s; starting another one in %.1f s", ended, pause)
                _wait(lambda: requests.count > 0, pause)


def _run_cluster(requests: StopRequests) -> str:
    """One cluster, from its start until none of it is left; returns how it ended.

    The cluster is a process group under its sentinel. It ends with this process however that dies: the
    sentinel watches a pipe of which this process alone holds the other end.
    """
    # A connection must not be shared with the processes forked here.
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
        _ask(sentinel, stop, requests)
    _kill(sentinel)
    os.close(watched)
    os.close(held)
    return ended


def _ask(sentinel: BaseProcess, stop: Event, requests: StopRequests) -> None:
    """Have the cluster end by itself; one more signal ends the waiting."""
    # In a thread: set() waits for every waiter to wake up, and a sentinel that died or hangs never does.
    threading.Thread(target=stop.set, name="stop-cluster", daemon=True).start()
    _wait(lambda: not sentinel.is_alive() or requests.count > 1, GRACE_SECONDS)


def _kill(sentinel: BaseProcess) -> None:
    if sentinel.pid:
        kill_group(sentinel.pid)
    # Should it not have made its group yet.
    sentinel.kill()
    sentinel.join()
    if sentinel.pid:
        # What dies still holds our lock of the database's users: we would leave the server running as if for others.
        leader = sentinel.pid
        _wait(lambda: not has_members(leader), GONE_SECONDS)


def _wait(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def _guard(stop: Event, started: Event, watched: int, held: int) -> None:
    os.setpgid(0, 0)
    os.close(held)
    threading.Thread(target=_die_with_parent, args=(watched,), name="die-with-parent", daemon=True).start()
    _Sentinel(stop, started, uuid.uuid4())


class _Sentinel(Sentinel):  # type: ignore[misc]  # django-q has no types
    def status(self) -> str:
        """Asked by django-q in each round of its guard: a guard that waits for a dead process's lock shows as well."""
        # Below 0 is idle, above it the seconds that a busy one has left.
        roll_call.judge(anyone_idle=any(process.timer.value < 0 for process in self.pool), now=time.monotonic())
        return super().status()  # type: ignore[no-any-return]

    def reincarnate(self, process: BaseProcess) -> None:
        """Replace a pool process. The two others may have died with a lock of a queue in hand, which nobody would
        get any more: without them the whole cluster is replaced."""
        if process in (self.monitor, self.pusher):
            os.killpg(0, signal.SIGKILL)
        super().reincarnate(process)


def _die_with_parent(watched: int) -> None:
    os.read(watched, 1)
    os.killpg(0, signal.SIGKILL)
