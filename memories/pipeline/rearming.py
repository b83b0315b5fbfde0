"""Turns that came while extraction was switched off: their sessions and windows are armed once there is a model, or
rules."""

from datetime import datetime

from django.db import transaction

from memories import conf
from memories.models import SessionQueue, WorkingMemory
from memories.pipeline import working_memory
from memories.pipeline.pending import Pending, due_time

# So many sessions may be due at once: what was stored in months must not pass for work that the worker neglects.
ROOM = 50


def rearm() -> int:
    """Arm sessions with user turns beyond the watermark that nobody armed, longest waiting first; returns how many.

    Fills up to ROOM due sessions, so it is called again and again; with nothing to do it is one look at an empty
    index. Rows that somebody holds are passed over: whoever stores a turn arms its session.
    """
    if conf.llm().mode == conf.LLM_OFF:
        return 0
    with transaction.atomic():
        rows = SessionQueue.objects.unarmed().order_by("first_pending_at").with_clock()
        rows = rows.select_related("session__tenant").select_for_update(of=("self",), no_key=True, skip_locked=True)
        found = list(rows[:ROOM])
        if not found:
            return 0
        found = found[: max(0, ROOM - SessionQueue.objects.due()[:ROOM].count())]
        for queue in found:
            queue.due_at = _due(queue)
        return SessionQueue.objects.bulk_update(found, ["due_at"])


def rearm_windows() -> int:
    """The same for their working memories."""
    if conf.llm().mode == conf.LLM_OFF:
        return 0
    with transaction.atomic():
        rows = WorkingMemory.objects.filter(unarmed=True).order_by("pk").with_clock().select_related("session__tenant")
        found = list(rows.select_for_update(of=("self",), no_key=True, skip_locked=True)[:ROOM])
        if not found:
            return 0
        found = found[: max(0, ROOM - WorkingMemory.objects.due()[:ROOM].count())]
        for row in found:
            row.unarmed = False
            working_memory.arm(row, row.session, rules=conf.rules(row.session.tenant), now=row.clock)
            row.due_at = max(row.due_at, row.clock) if row.due_at else None
        return WorkingMemory.objects.bulk_update(found, list(working_memory.ARMED))


def _due(queue: SessionQueue) -> datetime:
    """As if it had been armed when its turns came, but not in the past: it is not overdue."""
    rules = conf.rules(queue.session.tenant)
    last_at = queue.session.last_turn_at
    due = due_time(Pending.of(queue), last_at=last_at, rules=rules, flush=False, now=queue.clock)
    return max(due or queue.clock, queue.clock)
