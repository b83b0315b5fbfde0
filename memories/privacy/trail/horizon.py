"""How far the audit trail is decided: up to which id every event is there for good, or never will be.

Ids are given before commits, so an event with a lower id may appear after one with a higher id. Whoever records an
event holds the table's lock of writers from before the id is given until the transaction ends: those who hold it while
the highest id is looked up are waited for, as CREATE INDEX CONCURRENTLY does, without being held up themselves.
"""

import time

from django.db import connection
from django.db.models import Max

from memories.models import AuditEvent

# Transactions of the hub take milliseconds, those of a decision over many memories some seconds.
LOOK_SECONDS = 0.1
WRITERS = """
    SELECT virtualtransaction FROM pg_locks
    WHERE relation = 'memories_auditevent'::regclass AND mode = 'RowExclusiveLock' AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND pid IS DISTINCT FROM pg_backend_pid()
"""


def decided(*, patience_seconds: float) -> int | None:
    """The highest id below which nothing more will appear; None when somebody is at work for longer than that."""
    highest: int = AuditEvent.objects.aggregate(highest=Max("pk"))["highest"] or 0
    before = writers()
    until = time.monotonic() + patience_seconds
    while before & writers():
        if time.monotonic() >= until:
            return None
        time.sleep(LOOK_SECONDS)
    return highest


def writers() -> set[str]:
    """The other transactions that may have recorded an event and are not over."""
    with connection.cursor() as cursor:
        cursor.execute(WRITERS)
        return {transaction for (transaction,) in cursor.fetchall()}
