"""The broker of django-q2, which wakes workers for due sessions about once a second.

The sessions' rows remain the queue: a lost wake-up is sent again, and a surplus one finds nothing to claim.
"""

import logging
import math
import time
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, connections, transaction
from django.db.models.functions import Now
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from memories.jobs.pulse import ClusterPulse
from memories.jobs.roll_call import CALL_SECONDS, roll_call_task
from memories.queue import session_queue, window_queue

EXTRACT_TASK = "memories.tasks.consolidate_session"
COMPACT_TASK = "memories.tasks.compact_session"
SWEEP_SECONDS = 0.5
# Sweep sooner while more sessions are due than were woken.
CROWDED_SWEEP_SECONDS = 0.1
WAKE_UPS_PER_WORKER = 2
# One wake-up in so many is for a window. Contexts trim windows themselves, but windows must not wait forever.
WINDOWS_SHARE = 4
OUTAGE_PAUSE_SECONDS = 1.0

logger = logging.getLogger(__name__)


class SweepingBroker(ORM):  # type: ignore[misc]  # django-q has no types
    """A broker class is django-q's documented extension point. Its pusher process calls dequeue() all the time."""

    _next_sweep = 0.0
    _next_call = 0.0
    _pulse: ClusterPulse | None = None

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Tasks to run, after a sweep if one is due. None when there are none or the database is away."""
        try:
            if self._pulse is None:
                self._pulse = ClusterPulse()
                self._pulse.start()
            now = time.monotonic()
            if now >= self._next_call:
                self._next_call = now + CALL_SECONDS
                return [roll_call_task()]
            if now >= self._next_sweep:
                # Drops a connection that an outage has broken.
                self.get_connection()
                crowded = self.sweep()
                self._next_sweep = time.monotonic() + (CROWDED_SWEEP_SECONDS if crowded else SWEEP_SECONDS)
            return self._take()
        except (DatabaseError, InterfaceError) as error:
            # Any exception that leaves here ends the pusher, and django-q takes 10 seconds to start another. Missing
            # migrations count as an outage too.
            logger.warning("The worker cannot use the database: %s", type(error).__name__)
            connections.close_all()
            time.sleep(OUTAGE_PAUSE_SECONDS)
            return None

    def enqueue(self, task: str) -> int:
        """As django-q's own, by the database's clock: those of two hosts may differ, and so in what follows."""
        row: OrmQ = self.get_connection().create(key=self.list_key or Conf.CLUSTER_NAME, payload=task, lock=Now())
        return int(row.pk)

    def _take(self) -> list[tuple[int, str]] | None:
        rows = self.get_connection().filter(key=self.list_key, lock__lt=Now())[: Conf.BULK]
        held = Now() + timedelta(seconds=Conf.RETRY)
        # Another cluster may have been faster.
        found = [(row, self.get_connection().filter(pk=row.pk, lock=row.lock).update(lock=held)) for row in rows]
        if not found:
            time.sleep(Conf.POLL)
            return None
        return [(row.pk, row.payload) for row, is_ours in found if is_ours]

    def sweep(self) -> bool:
        """Send wake-ups for due sessions and mark them in the same transaction. True when more may be due."""
        with transaction.atomic():
            waiting = OrmQ.objects.filter(key=self.list_key, lock__lte=Now()).count()
            free: int = max(0, WAKE_UPS_PER_WORKER * Conf.WORKERS - waiting)
            share = math.ceil(free / WINDOWS_SHARE)
            windows = window_queue.due_sessions(share) if free else []
            sessions = session_queue.due_sessions(free - len(windows)) if free > len(windows) else []
            for session_id in sessions:
                async_task(EXTRACT_TASK, str(session_id), broker=self)
            for session_id in windows:
                async_task(COMPACT_TASK, str(session_id), broker=self)
        return len(windows) == share or len(sessions) + len(windows) == free
