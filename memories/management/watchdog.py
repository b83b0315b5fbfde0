"""Notices a cluster that looks alive and takes no work, as django-q's does once an idle worker was killed while it
held the queue's lock."""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from django.db import DatabaseError, InterfaceError, connections

from memories.pipeline import backlog
from memories.pipeline.backlog import Look

LOOK_SECONDS = 1.0
# So many looks in a row must agree: one may fall between two batches, or just after an outage.
LOOKS = 8
OVERDUE_SECONDS = 12.0
BEAT_SECONDS = 15.0

logger = logging.getLogger(__name__)


def is_wedged(looks: Sequence[Look], *, pool: int) -> bool:
    """Whether a cluster of `pool` processes does nothing that it should: the same work stays first in line though
    not even its own processes can all be busy, or it gives no sign of life, which it does only while its own pool
    takes work (`schedules.RollCall`): so it is noticed beside a cluster that does all the work, too.

    `looks` are the last LOOKS, about a second apart, of a database that answered each time.
    """
    if len(looks) < LOOKS:
        return False
    silent = all(look.beat_age is None or look.beat_age > BEAT_SECONDS for look in looks)
    # Leases of other clusters count as ours: this errs on the side of patience.
    stuck = all(look.first == looks[0].first and look.claimed < pool for look in looks)
    return silent or (stuck and looks[0].first is not None and looks[-1].waited > OVERDUE_SECONDS)


class Watchdog(threading.Thread):
    """Looks at the queue while a cluster runs, in a thread: a database that hangs must not keep signals waiting."""

    def __init__(self, *, cluster: str, pool: int) -> None:
        """`cluster` is the name of its heartbeat."""
        super().__init__(name="watchdog", daemon=True)
        self.wedged = threading.Event()
        self._ended = threading.Event()
        self._cluster, self._pool = cluster, pool
        self._looks: deque[Look] = deque(maxlen=LOOKS)
        # A cluster that has yet to start has no sign of life to show.
        self._patient_until = time.monotonic() + BEAT_SECONDS

    def run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS) and not self.wedged.is_set():
            self._look()
        connections.close_all()

    def end(self) -> None:
        self._ended.set()

    def _look(self) -> None:
        try:
            look = backlog.look(cluster=self._cluster)
        except (DatabaseError, InterfaceError):
            # An outage says nothing of the cluster, and after it the cluster is given time to find out.
            self._looks.clear()
            connections.close_all()
            return
        if look.beat_age is None and time.monotonic() < self._patient_until:
            return
        self._looks.append(look)
        if is_wedged(self._looks, pool=self._pool):
            self.wedged.set()
