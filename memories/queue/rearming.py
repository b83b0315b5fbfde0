"""Turns that came while extraction was off: once it is on, their sessions and windows are armed."""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from memories import conf
from memories.models import SessionQueue, WorkingMemory
from memories.queue import window_queue
from memories.queue.debounce import PendingTurns, due_time

# /readyz must not take what was stored in months for work that the worker neglects.
MOST_DUE = 50


def rearm() -> int:
    """Arm sessions with user turns beyond the watermark that nobody armed, longest waiting first; returns how many.

    It fills up to MOST_DUE due sessions, so it is called again and again. With nothing to do it is one look at an empty
    index.
    """
    return _rearm(SessionQueue.objects.unarmed().order_by("first_pending_at"), _arm_session, ["due_at"])


def rearm_windows() -> int:
    """The same for their working memories."""
    rows = WorkingMemory.objects.filter(unarmed=True).order_by("pk")
    return _rearm(rows, _arm_window, list(window_queue.ARMED))


def _rearm(unarmed: QuerySet[Any], arm: Callable[[Any], None], changed: list[str]) -> int:
    if conf.llm().mode == conf.LLM_OFF:
        return 0
    with transaction.atomic():
        # Rows that somebody holds are passed over: whoever stores a turn arms its session.
        rows = unarmed.with_clock().select_related("session__tenant")  # type: ignore[attr-defined]
        found = list(rows.select_for_update(of=("self",), no_key=True, skip_locked=True)[:MOST_DUE])
        if not found:
            return 0
        objects = unarmed.model._default_manager
        found = found[: max(0, MOST_DUE - objects.due()[:MOST_DUE].count())]
        for row in found:
            arm(row)
        return int(objects.bulk_update(found, changed))


def _arm_session(queue: SessionQueue) -> None:
    """As if it had been armed when its turns came, but not in the past: it is not overdue."""
    rules, last_at = conf.rules(queue.session.tenant), queue.session.last_turn_at
    due = due_time(PendingTurns.of(queue), last_at=last_at, rules=rules, flush=False, now=queue.clock)
    queue.due_at = max(due or queue.clock, queue.clock)


def _arm_window(row: WorkingMemory) -> None:
    row.unarmed = False
    window_queue.arm(row, row.session, rules=conf.rules(row.session.tenant), now=row.clock)
    row.due_at = max(row.due_at, row.clock) if row.due_at else None
