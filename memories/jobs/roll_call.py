"""The roll call shows whether the pool of a django-q2 cluster takes work.

The pusher process puts a task into the pool every few seconds. The task needs no database. A pool process answers. The
sentinel alone sees which pool processes are busy, so it judges, and the cluster writes its heartbeat only while all is
well.
"""

import ctypes
import time
from multiprocessing.sharedctypes import RawValue

from django.utils import timezone
from django_q.signing import SignedPackage

# memories/schedules.py has the function under this name.
TASK = "memories.schedules.answer_roll_call"
CALL_SECONDS = 3.0
# An idle process answers within milliseconds.
ANSWER_SECONDS = 8.0
# The sentinel judges twice a second.
JUDGED_WITHIN_SECONDS = 3.0


class RollCall:
    """The state of the roll call, in memory that a cluster's processes share. All times are monotonic seconds."""

    def __init__(self) -> None:
        self._answered_at = RawValue(ctypes.c_double, 0.0)
        self._well_at = RawValue(ctypes.c_double, 0.0)
        # In the sentinel alone: since when each look has found somebody idle.
        self._idle_since: float | None = None

    def answer(self, *, now: float) -> None:
        self._answered_at.value = now

    def judge(self, *, anyone_idle: bool, now: float) -> None:
        """Record that all is well: every process is busy, or an idle one has answered."""
        self._idle_since = (self._idle_since or now) if anyone_idle else None
        silent_since = max(self._answered_at.value, self._idle_since or now)
        if now - silent_since < ANSWER_SECONDS:
            self._well_at.value = now

    def is_well(self, *, now: float) -> bool:
        """False also when the sentinel itself has stopped judging."""
        return bool(now - self._well_at.value < JUDGED_WITHIN_SECONDS)


# The processes of a cluster are forked after this import, so they share it.
roll_call = RollCall()


def roll_call_task() -> tuple[int, str]:
    """The task, as a broker hands it out. It stays in this cluster: row 0 means that there is no row to delete."""
    task = {"id": "", "name": "roll call", "func": TASK, "args": (), "kwargs": {}, "started": timezone.now()}
    return 0, SignedPackage.dumps(task)


def answer_roll_call() -> None:
    """The task itself, in a pool process."""
    roll_call.answer(now=time.monotonic())
