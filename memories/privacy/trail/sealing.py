"""Sealing the audit trail: a job appends new events to the chain of each tenant, and nobody waits for it.

Ids are given before commits, so an event with a lower id may appear after one with a higher id. Whoever records an
event holds the table's lock of writers from before the id is given until the transaction ends. The job waits for those
who hold it while the highest id is read, as CREATE INDEX CONCURRENTLY does, and does not hold them up.
"""

import time
import uuid
from collections import defaultdict
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Max

from memories.models import AuditEvent, AuditSeal
from memories.privacy.trail import chain, heads

# Events of one transaction.
MOST = 2_000
# Any number, the same for all: one process at a time seals or prunes.
LOCK = 6_110_302
# Transactions of the hub take milliseconds, those of a decision over many memories some seconds.
WAIT_SECONDS = 4.0
LOOK_SECONDS = 0.1
_WRITERS = """
    SELECT virtualtransaction FROM pg_locks
    WHERE relation = 'memories_auditevent'::regclass AND mode = 'RowExclusiveLock' AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND pid IS DISTINCT FROM pg_backend_pid()
"""


def seal(*, now: datetime, seconds: float, wait_seconds: float = WAIT_SECONDS) -> int:
    """Seal events for about so many seconds; how many events that were.

    Nothing is sealed while a transaction that may still record an event takes longer than `wait_seconds`: the next run
    does it. A run that dies leaves whole seals.
    """
    upto = settled_up_to(wait_seconds=wait_seconds)
    if upto is None:
        return 0
    until, newest, sealed = time.monotonic() + seconds, dict[uuid.UUID | None, AuditSeal](), 0
    while True:
        made = _seal_some(upto, now)
        sealed += sum(link.count for link in made)
        newest.update((link.tenant_uuid, link) for link in made)
        if not made or time.monotonic() >= until:
            break
    if newest:
        heads.note(list(newest.values()))
    return sealed


def settled_up_to(*, wait_seconds: float) -> int | None:
    """The highest id below which no more event will appear; None when a writer takes longer than that."""
    highest: int = AuditEvent.objects.aggregate(highest=Max("pk"))["highest"] or 0
    before = writers()
    until = time.monotonic() + wait_seconds
    while before & writers():
        if time.monotonic() >= until:
            return None
        time.sleep(LOOK_SECONDS)
    return highest


def writers() -> set[str]:
    """The other open transactions that may have recorded an event."""
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS)
        return {transaction for (transaction,) in cursor.fetchall()}


def _seal_some(upto: int, now: datetime) -> list[AuditSeal]:
    """The next events in the order of their ids, of all tenants: so what is sealed has one end for all chains."""
    with transaction.atomic():
        if not try_lock():
            return []
        events: dict[uuid.UUID | None, list[AuditEvent]] = defaultdict(list)
        for event in AuditEvent.objects.filter(pk__gt=sealed_up_to(), pk__lte=upto).order_by("pk")[:MOST]:
            events[event.tenant_uuid].append(event)
        return [
            chain.append(
                tenant_uuid,
                AuditSeal.SealKind.SEAL,
                span=(some[0].pk, some[-1].pk),
                count=len(some),
                newest_at=max(event.created_at for event in some),
                leaves=map(chain.leaf, some),
                now=now,
            )
            for tenant_uuid, some in events.items()
        ]


def sealed_up_to() -> int:
    """The id up to which every event, of any tenant, is in a seal."""
    return AuditSeal.objects.filter(kind=AuditSeal.SealKind.SEAL).aggregate(last=Max("last_id"))["last"] or 0


def try_lock() -> bool:
    """Be alone until the end of the transaction; False when another one seals, prunes or checks now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def lock_shared() -> None:
    """Let nobody seal or prune until the end of the transaction; others may check chains, too."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [LOCK])
