"""The cluster's broker: it wakes workers for sessions that are due, and shows that the cluster lives.

django-q's own scheduler looks every 30 seconds; a due session waits at most about one. The sessions' rows remain the
queue: a wake-up that gets lost is sent again, and one too many finds nothing to claim.
"""

import logging
import os
import socket
import threading
import time
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, close_old_connections, connections, transaction
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from memories.llm import tokens
from memories.models import WorkerHeartbeat
from memories.pipeline import debounce

SWEEP_SECONDS = 0.5
# While more is due than was woken, the next sweep comes sooner.
CROWDED_SWEEP_SECONDS = 0.1
WAKE_UPS_PER_WORKER = 2
OUTAGE_PAUSE_SECONDS = 1.0
BEAT_SECONDS = 5.0
FORGOTTEN_AFTER = timedelta(hours=1)
TASK = "memories.tasks.consolidate_session"

logger = logging.getLogger(__name__)


def heartbeat_name(sentinel: int) -> str:
    """The name under which the cluster of this sentinel (a process id on this host) shows that it lives."""
    return f"{socket.gethostname()}:{sentinel}"


class SweepingBroker(ORM):  # type: ignore[misc]  # django-q has no types
    """The documented place for one's own queue: django-q's pusher process calls dequeue() all the time."""

    _next_sweep = 0.0
    _pulse: "Pulse | None" = None

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Wake-ups to run, after a sweep when one is due; None when there are none or the database is away."""
        try:
            self._show_life()
            self._sweep_in_time()
            return super().dequeue()  # type: ignore[no-any-return]
        except (DatabaseError, InterfaceError) as error:
            # Anything that leaves here ends the pusher, and django-q takes 10 seconds to make another. Tables that
            # are not migrated yet are an outage too.
            logger.warning("The worker cannot use the database: %s", type(error).__name__)
            connections.close_all()
            time.sleep(OUTAGE_PAUSE_SECONDS)
            return None

    def sweep(self) -> bool:
        """Send wake-ups for due sessions, marked in the same transaction; True when more may be due."""
        with transaction.atomic():
            waiting = OrmQ.objects.filter(key=self.list_key, lock__lte=timezone.now()).count()
            room: int = max(0, WAKE_UPS_PER_WORKER * Conf.WORKERS - waiting)
            woken = debounce.due_sessions(room) if room else []
            for session_id in woken:
                async_task(TASK, str(session_id), broker=self)
        return len(woken) == room

    def _sweep_in_time(self) -> None:
        if time.monotonic() < self._next_sweep:
            return
        # Drops a connection that an outage has broken.
        self.get_connection()
        crowded = self.sweep()
        self._next_sweep = time.monotonic() + (CROWDED_SWEEP_SECONDS if crowded else SWEEP_SECONDS)

    def _show_life(self) -> None:
        if self._pulse is None:
            self._pulse = Pulse()
            self._pulse.start()


class Pulse(threading.Thread):
    """Writes the cluster's sign of life; a thread, because a pusher whose workers are all busy waits for them."""

    def __init__(self) -> None:
        super().__init__(name="pulse", daemon=True)
        # The sentinel's id: it stays when the pusher is replaced.
        self._cluster = heartbeat_name(os.getppid())
        self._started_at = timezone.now()

    def run(self) -> None:
        tokens.warm()
        while True:
            try:
                close_old_connections()
                self.beat()
            except (DatabaseError, InterfaceError):
                connections.close_all()
            time.sleep(BEAT_SECONDS)

    def beat(self) -> None:
        """Note that the cluster lives, and drop the rows of those that ended long ago."""
        now = timezone.now()
        WorkerHeartbeat.objects.update_or_create(
            name=self._cluster,
            defaults={"beat_at": now},
            create_defaults={"beat_at": now, "started_at": self._started_at},
        )
        WorkerHeartbeat.objects.filter(beat_at__lt=now - FORGOTTEN_AFTER).delete()
