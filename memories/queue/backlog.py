"""What waits in the queue, and for how long: /readyz and the watchdog see by it whether workers do their work."""

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Case, DateTimeField, F, Max, QuerySet, Value, When
from django.db.models.functions import Greatest, Now

from memories import conf
from memories.models import EndpointState, SessionQueue, WorkerHeartbeat, WorkingMemory
from memories.queue import circuit_breaker


@dataclass(frozen=True)
class Backlog:
    """The queue at one moment: session and attempts of the work that is first in line (None: nothing is due), for how
    many seconds a worker could have taken it, how many leases are live, and the age in seconds of the cluster's
    heartbeat (None: it has none)."""

    first: tuple[uuid.UUID, int] | None
    waited: float
    claimed: int
    beat_age: float | None


def overdue_seconds() -> float:
    """For how many seconds work has been due and free to be taken, at most; 0 when there is none."""
    if conf.llm().mode == conf.LLM_OFF:
        # Nobody is to do what was armed before extraction was switched off.
        return 0.0
    waited = _waited()
    waits: list[timedelta | None] = [rows.aggregate(longest=Max(waited))["longest"] for rows in _due()]
    return max(0.0, *(wait.total_seconds() for wait in waits if wait), 0.0)


def look(*, cluster: str) -> Backlog:
    """The queue as it is now, for the cluster whose heartbeat has this name."""
    first, waited = _first_in_line() if conf.llm().mode != conf.LLM_OFF else (None, timedelta())
    beats = WorkerHeartbeat.objects.filter(name=cluster).values_list(Now() - F("beat_at"), flat=True)
    age: timedelta | None = beats.first()
    leased = [model.objects.filter(model.IN_WORK, lease_until__gt=Now()) for model in (SessionQueue, WorkingMemory)]
    return Backlog(
        first=first,
        waited=waited.total_seconds(),
        claimed=sum(rows.count() for rows in leased),
        beat_age=age.total_seconds() if age is not None else None,
    )


def _due() -> tuple[QuerySet[Any], ...]:
    return SessionQueue.objects.due(), WorkingMemory.objects.due()


def _waited() -> Any:
    """Since when a worker could have taken it: if a worker died, from the end of its lease; if its endpoint is paused,
    from the end of the pause. PostgreSQL's GREATEST passes over NULL."""
    paused = EndpointState.objects.annotate(until_both=Greatest("until", "stated_until")).exclude(until_both=None)
    ends = [
        When(circuit_breaker.rows_of(owner), then=Value(until))
        for owner, until in paused.values_list("tenant", "until_both")
    ]
    pause = [Case(*ends, default=None, output_field=DateTimeField())] if ends else []
    return Now() - Greatest(F("due_at"), F("lease_until"), *pause)


def _first_in_line() -> tuple[tuple[uuid.UUID, int] | None, timedelta]:
    """The work that a worker would take first: rows that somebody holds are passed over."""
    waited_for = _waited()
    found: list[tuple[uuid.UUID, int, timedelta]] = []
    with transaction.atomic():
        # Otherwise one tenant's outage would hide that others wait.
        may_ask = [~circuit_breaker.rows_of(owner) for owner, count in circuit_breaker.limited().items() if not count]
        for rows in _due():
            free = rows.filter(*may_ask).order_by("due_at").select_for_update(skip_locked=True)
            found += free.values_list("pk", "attempts", waited_for)[:1]
    session, attempts, waited = max(found, key=lambda row: row[2], default=(None, 0, timedelta()))
    return ((session, attempts) if session else None), waited
