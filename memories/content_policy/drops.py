"""The log of what was dropped: counts of a tenant's day by category, version and road, without content or person.

A text is mostly refused with an error, in a transaction that is then rolled back, and its count with it. So it is noted
on the thread, and written when whoever carries out the work is outside of all transactions: a request, a call, a task.
"""

import threading
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.utils import timezone

from memories.db import tenancy

# Nothing is counted for a tenant that is gone.
_ADD = """
    INSERT INTO memories_policydrop AS known (tenant_id, day, version, category, road, count, last_at)
    SELECT id, %(day)s, %(version)s, %(category)s, %(road)s, %(count)s, %(now)s
    FROM memories_tenant WHERE id = %(tenant)s
    ON CONFLICT (tenant_id, day, version, category, road) DO UPDATE SET
        count = known.count + excluded.count, last_at = greatest(known.last_at, excluded.last_at)
"""


@dataclass(frozen=True, order=True)
class Drop:
    """A text that was dropped, by what is kept of it."""

    version: int
    category: str
    road: str


class _Noted(threading.local):
    def __init__(self) -> None:
        self.drops: list[tuple[uuid.UUID, Drop]] = []


_noted = _Noted()


def add(tenant_id: uuid.UUID, dropped: Iterable[Drop], *, now: datetime) -> None:
    """Count these. Inside a transaction the counts stand or fall with what is stored beside them."""
    counted = Counter(dropped)
    if not counted:
        return
    # In one order, so that two transactions never wait for each other.
    with tenancy.of_tenant(tenant_id), transaction.atomic(), connection.cursor() as cursor:
        for one in sorted(counted):
            given: dict[str, Any] = {"tenant": tenant_id, "day": now.astimezone(UTC).date(), "now": now}
            given |= {"count": counted[one]}
            cursor.execute(_ADD, given | {"version": one.version, "category": one.category, "road": one.road})


def note(tenant_id: uuid.UUID, drop: Drop) -> None:
    """Count this one when the work of this thread is done, whatever becomes of its transaction."""
    _noted.drops.append((tenant_id, drop))


def flush() -> None:
    """Write what this thread noted; outside of the work's transactions. In an outage of the database it is lost."""
    if not _noted.drops:
        return
    noted, _noted.drops = _noted.drops, []
    for tenant_id in dict.fromkeys(tenant_id for tenant_id, _ in noted):
        try:
            add(tenant_id, [drop for owner, drop in noted if owner == tenant_id], now=timezone.now())
        except (DatabaseError, InterfaceError):
            return
