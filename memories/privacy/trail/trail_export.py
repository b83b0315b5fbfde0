"""The audit trail as JSON lines, the oldest first: each event as it was sealed, and the number of its seal."""

from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from memories.models import AuditEvent, AuditSeal
from memories.privacy.trail import chain

CHUNK = 1_000


def in_period(events: QuerySet[AuditEvent], *, since: datetime | None, until: datetime | None) -> QuerySet[AuditEvent]:
    """Events from `since` on and before `until`."""
    after = events.filter(created_at__gte=since) if since else events
    return after.filter(created_at__lt=until) if until else after


def lines(events: QuerySet[AuditEvent]) -> Iterator[str]:
    """A line for each event; `seal` is null while the event is not sealed."""
    seals = _Seals()
    for event in events.order_by("pk").iterator(chunk_size=CHUNK):
        yield chain.canonical({**chain.fields_of(event), "seal": seals.number_of(event)}).decode() + "\n"


class _Seals:
    """The seal that an event is in; the seals of each chain are read once, without their leaves."""

    def __init__(self) -> None:
        self._ends: dict[Any, tuple[list[int], list[int]]] = {}

    def number_of(self, event: AuditEvent) -> int | None:
        if event.tenant_uuid not in self._ends:
            rows = chain.of(event.tenant_uuid).filter(kind=AuditSeal.SealKind.SEAL).order_by("number")
            ends = list(rows.values_list("last_id", "number"))
            self._ends[event.tenant_uuid] = [last for last, _ in ends], [number for _, number in ends]
        lasts, numbers = self._ends[event.tenant_uuid]
        place = bisect_left(lasts, event.pk)
        return numbers[place] if place < len(numbers) else None
