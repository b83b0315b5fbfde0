"""Run django-q2's cluster so that it can always be ended: its own stop waits for ever on a wedged queue."""

import multiprocessing
import os
import signal
import threading
import time
import uuid
from multiprocessing.synchronize import Event

from django.db import connections
from django_q.cluster import Sentinel

from memories.management.supervision import LOOK_SECONDS, StopRequests, kill_group

# A batch that is cut off here is taken up again when its lease ends, and nothing of it was committed.
GRACE_SECONDS = 8.0


def run_cluster() -> bool:
    """Blocks until a signal asks for the end (True) or the cluster died by itself (False); nothing is left.

    The cluster is a process group under its sentinel. It ends with this process however that dies: the
    sentinel watches a pipe of which this process alone holds the other end.
    """
    # A connection must not be shared with the processes forked here.
    connections.close_all()
    context = multiprocessing.get_context("fork")
    stop, started = context.Event(), context.Event()
    watched, held = os.pipe()
    sentinel = context.Process(target=_guard, args=(stop, started, watched, held), daemon=False)
    with StopRequests() as requests:
        sentinel.start()
        while sentinel.is_alive() and not requests.count:
            time.sleep(LOOK_SECONDS)
        asked = requests.count > 0
        # In a thread: set() waits for every waiter to wake up, and a sentinel that died or hangs never does.
        threading.Thread(target=stop.set, name="stop-cluster", daemon=True).start()
        deadline = time.monotonic() + GRACE_SECONDS
        while sentinel.is_alive() and requests.count < 2 and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        if sentinel.pid:
            kill_group(sentinel.pid)
        # Should it not have made its group yet.
        sentinel.kill()
        sentinel.join()
    os.close(watched)
    os.close(held)
    return asked


def _guard(stop: Event, started: Event, watched: int, held: int) -> None:
    os.setpgid(0, 0)
    os.close(held)
    threading.Thread(target=_die_with_parent, args=(watched,), name="die-with-parent", daemon=True).start()
    Sentinel(stop, started, uuid.uuid4())


def _die_with_parent(watched: int) -> None:
    os.read(watched, 1)
    os.killpg(0, signal.SIGKILL)
