"""The cluster's broker: it wakes workers for sessions that are due, and shows that the cluster lives.

django-q's own scheduler looks every 30 seconds; a due session waits at most about one. The sessions' rows remain the
queue: a wake-up that gets lost is sent again, and one too many finds nothing to claim.
"""

import ctypes
import logging
import math
import os
import socket
import threading
import time
from datetime import timedelta
from multiprocessing.sharedctypes import RawValue

from django.db import DatabaseError, InterfaceError, close_old_connections, connection, connections, transaction
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule
from django_q.signing import SignedPackage
from django_q.tasks import async_task

from memories import conf, curation
from memories.llm import tokens
from memories.models import WorkerHeartbeat
from memories.pipeline import (
    debounce,
    decay,
    endpoint,
    rearming,
    working_memory,
)
from memories.privacy import exporting, retention, running
from memories.privacy.stores import queue_remains

SWEEP_SECONDS = 0.5
# While more is due than was woken, the next sweep comes sooner.
CROWDED_SWEEP_SECONDS = 0.1
WAKE_UPS_PER_WORKER = 2
OUTAGE_PAUSE_SECONDS = 1.0
BEAT_SECONDS = 5.0
UNWELL_PAUSE_SECONDS = 0.5
FORGOTTEN_AFTER = timedelta(hours=1)
# Privacy cases whose worker died, or whose wake-up was lost.
CASES_SECONDS = 30.0
TASK = "memories.tasks.consolidate_session"
COMPACT_TASK = "memories.tasks.compact_session"
# Of the room for wake-ups: windows wait for nobody, for contexts trim them, and must not wait for ever.
WINDOWS_SHARE = 4
ASK_TASK = "memories.tasks.ask_endpoint"
SEAL_TASK = "memories.tasks.seal_audit"
# How often somebody looks whose night has come, and seals the audit trail; each in a row of django-q2, whose names are
# not unique.
LOOK_MINUTES = 5
FORGETTING = "forgetting"
SCHEDULES = {FORGETTING: decay.FORGET_TASK, "sealing": SEAL_TASK, "retention": retention.TASK}
# Any number, the same for all: one process at a time looks for the row.
SCHEDULE_LOCK = 6_110_301
ROLL_CALL = "memories.schedules.answer_roll_call"
ROLL_CALL_SECONDS = 3.0
# An idle process answers within milliseconds.
ROLL_CALL_PATIENCE_SECONDS = 8.0
# The sentinel judges twice a second.
JUDGED_WITHIN_SECONDS = 3.0

logger = logging.getLogger(__name__)


def heartbeat_name(sentinel: int) -> str:
    """The name under which the cluster of this sentinel (a process id on this host) shows that it lives."""
    return f"{socket.gethostname()}:{sentinel}"


class RollCall:
    """Whether a cluster's pool takes work, in memory shared by its processes: all are forked after this import.

    The pusher calls, by a task that goes through the pool and no database; a pool process answers; the sentinel, who
    alone sees which of them are busy, judges; and the cluster shows life only while all is well. All times are
    monotonic seconds.
    """

    def __init__(self) -> None:
        self._answered_at = RawValue(ctypes.c_double, 0.0)
        self._well_at = RawValue(ctypes.c_double, 0.0)
        # Of the sentinel alone: since when somebody has been idle each time it looked.
        self._idle_since: float | None = None

    def answer(self, *, now: float) -> None:
        self._answered_at.value = now

    def judge(self, *, anyone_idle: bool, now: float) -> None:
        """Note that all is well: everybody is busy, or who is idle has answered."""
        self._idle_since = (self._idle_since or now) if anyone_idle else None
        silent_since = max(self._answered_at.value, self._idle_since or now)
        if now - silent_since < ROLL_CALL_PATIENCE_SECONDS:
            self._well_at.value = now

    def is_well(self, *, now: float) -> bool:
        """False also when the sentinel itself has stopped judging."""
        return bool(now - self._well_at.value < JUDGED_WITHIN_SECONDS)


roll_call = RollCall()


def answer_roll_call() -> None:
    """What a pool process does with the call."""
    roll_call.answer(now=time.monotonic())


class SweepingBroker(ORM):  # type: ignore[misc]  # django-q has no types
    """The documented place for one's own queue: django-q's pusher process calls dequeue() all the time."""

    _next_sweep = 0.0
    _next_call = 0.0
    _pulse: "Pulse | None" = None

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Wake-ups to run, after a sweep when one is due; None when there are none or the database is away."""
        try:
            self._show_life()
            if time.monotonic() >= self._next_call:
                self._next_call = time.monotonic() + ROLL_CALL_SECONDS
                return [_call()]
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
            share = math.ceil(room / WINDOWS_SHARE)
            windows = working_memory.due_sessions(share) if room else []
            sessions = debounce.due_sessions(room - len(windows)) if room > len(windows) else []
            for session_id in sessions:
                async_task(TASK, str(session_id), broker=self)
            for session_id in windows:
                async_task(COMPACT_TASK, str(session_id), broker=self)
        return len(windows) == share or len(sessions) + len(windows) == room

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


def ensure_schedule() -> None:
    """Have django-q2 look for what is to be done now and then: a row each, whoever else makes it, and as this version
    wants it."""
    for name, func in SCHEDULES.items():
        _ensure(name, {"func": func, "schedule_type": Schedule.MINUTES, "minutes": LOOK_MINUTES, "repeats": -1})


def _ensure(name: str, wanted: dict[str, object]) -> None:
    rows = Schedule.objects.filter(name=name)
    if list(rows.values(*wanted)) == [wanted]:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEDULE_LOCK])
        if list(rows.values(*wanted)) != [wanted]:
            rows.delete()
            Schedule.objects.create(name=name, **wanted)


def _call() -> tuple[int, str]:
    """A task for this cluster's own pool; 0 stands for a row that nobody need delete."""
    task = {"id": "", "name": "roll call", "func": ROLL_CALL, "args": (), "kwargs": {}, "started": timezone.now()}
    return 0, SignedPackage.dumps(task)


class Pulse(threading.Thread):
    """Writes the cluster's sign of life while its pool takes work, arms what came while extraction was
    switched off, and takes away what has outlived its use; a thread, because a busy pool makes the pusher wait."""

    def __init__(self) -> None:
        super().__init__(name="pulse", daemon=True)
        # The sentinel's id: it stays when the pusher is replaced.
        self._cluster = heartbeat_name(os.getppid())
        self._started_at = timezone.now()
        self._cases_at = 0.0

    def run(self) -> None:
        tokens.warm()
        while True:
            well = roll_call.is_well(now=time.monotonic())
            if well:
                self.once()
            time.sleep(BEAT_SECONDS if well else UNWELL_PAUSE_SECONDS)

    def once(self) -> None:
        """One beat and its errands; an outage of the database leaves them to the next."""
        try:
            close_old_connections()
            self.beat()
            rearming.rearm()
            rearming.rearm_windows()
            ensure_schedule()
            if endpoint.turn_to_ask(lease=timedelta(seconds=conf.hub_rules().lease_seconds)):
                async_task(ASK_TASK)
            self._look_for_cases()
        except (DatabaseError, InterfaceError):
            connections.close_all()

    def _look_for_cases(self) -> None:
        if time.monotonic() >= self._cases_at:
            self._cases_at = time.monotonic() + CASES_SECONDS
            queue_remains.sweep_remains()
            for case_id in running.abandoned():
                running.wake(case_id)

    def beat(self) -> None:
        """Note that the cluster lives; drop the rows of those that ended long ago, and answers kept for a day."""
        now = timezone.now()
        WorkerHeartbeat.objects.update_or_create(
            name=self._cluster,
            defaults={"beat_at": now},
            create_defaults={"beat_at": now, "started_at": self._started_at},
        )
        WorkerHeartbeat.objects.filter(beat_at__lt=now - FORGOTTEN_AFTER).delete()
        curation.sweep_replays(now=now)
        curation.sweep_sign_ins(now=now)
        exporting.sweep_exports(now)
