"""ServedCounts of what applications are served: kept in this process and added to the day's row in the background.

A request costs no statement. A process that is killed loses what it counted since the last flush, a few seconds.
"""

import threading
import uuid
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from django.db import DatabaseError, InterfaceError, connection, transaction

from memories.models.conversations.serving import BUCKETS, CONTEXT_MS

# Nobody is counted who has no tenant: one that is gone is left out. Times add up bucket by bucket.
_ADD = """
    INSERT INTO memories_servedday AS known (tenant_id, day, context_times, recalls)
    SELECT id, %(day)s, %(times)s::bigint[], %(recalls)s FROM memories_tenant WHERE id = %(tenant)s
    ON CONFLICT (tenant_id, day) DO UPDATE SET
        recalls = known.recalls + excluded.recalls,
        context_times = ARRAY(
            SELECT coalesce(a, 0) + coalesce(b, 0)
            FROM unnest(known.context_times, excluded.context_times) WITH ORDINALITY AS pair (a, b, n) ORDER BY n
        )
"""
Key = tuple[uuid.UUID, date]


@dataclass
class ServedCounts:
    """Of a tenant's day."""

    context_times: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    recalls: int = 0

    def add(self, other: "ServedCounts") -> None:
        self.context_times = [a + b for a, b in zip(self.context_times, other.context_times, strict=True)]
        self.recalls += other.recalls


_lock = threading.Lock()
_counted: dict[Key, ServedCounts] = {}
# One flush at a time: the last one, at the end of the process, waits for the thread's.
_flushing = threading.Lock()


def note_context(tenant_id: uuid.UUID, *, seconds: float, now: datetime) -> None:
    """Count a context that took so long."""
    bucket = bisect_left(CONTEXT_MS, seconds * 1_000)
    with _lock:
        _of(tenant_id, now).context_times[bucket] += 1


def note_recalls(tenant_id: uuid.UUID, count: int, *, now: datetime) -> None:
    """Count memories that a query ranked."""
    if count:
        with _lock:
            _of(tenant_id, now).recalls += count


def waits() -> bool:
    return bool(_counted)


def flush() -> None:
    """Add the counts to their rows. In an outage of the database they stay. Errors: DatabaseError, InterfaceError."""
    with _flushing:
        for key, counts in _taken():
            try:
                _write(*key, counts)
            except (DatabaseError, InterfaceError):
                with _lock:
                    _counted.setdefault(key, ServedCounts()).add(counts)
                raise


def _taken() -> Iterator[tuple[Key, ServedCounts]]:
    """Each tenant's day, taken out of what waits when it is its turn."""
    for key in sorted(_counted.copy()):
        with _lock:
            counts = _counted.pop(key)
        yield key, counts


def _write(tenant_id: uuid.UUID, day: date, counts: ServedCounts) -> None:
    given: dict[str, Any] = {"tenant": tenant_id, "day": day, "times": counts.context_times, "recalls": counts.recalls}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_ADD, given)


def _of(tenant_id: uuid.UUID, now: datetime) -> ServedCounts:
    """Under the lock."""
    key = (tenant_id, now.astimezone(UTC).date())
    return _counted.setdefault(key, ServedCounts())
