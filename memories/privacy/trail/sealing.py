"""Sealing the audit trail: a job appends what was recorded meanwhile to each tenant's chain; nobody waits for it."""

import time
import uuid
from collections import defaultdict
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Max

from memories.models import AuditEvent, AuditSeal
from memories.privacy.trail import chain, heads, horizon

# Events of one transaction.
MOST = 2_000
# Any number, the same for all: whoever seals or prunes is alone.
LOCK = 6_110_302
PATIENCE_SECONDS = 4.0


def seal(*, now: datetime, seconds: float, patience_seconds: float = PATIENCE_SECONDS) -> int:
    """Seal what is decided, for as many seconds; how many events that were.

    Nothing is sealed while a transaction that may yet record an event takes longer than `patience_seconds`: the next
    run does it. A run that dies leaves whole links.
    """
    upto = horizon.decided(patience_seconds=patience_seconds)
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


def sealed_up_to() -> int:
    """The id up to which every event, of any tenant, is in a seal."""
    return AuditSeal.objects.filter(kind=AuditSeal.Kind.SEAL).aggregate(last=Max("last_id"))["last"] or 0


def alone() -> bool:
    """Whether nobody else seals, prunes or checks now; then nobody does until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        return bool(cursor.fetchone()[0])


def keep_still() -> None:
    """Let nobody seal or prune until the end of the transaction; others may read the chains likewise."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [LOCK])


def _seal_some(upto: int, now: datetime) -> list[AuditSeal]:
    """The next events in the order of their ids, whosesoever: so what is sealed has one end for all chains."""
    with transaction.atomic():
        if not alone():
            return []
        events: dict[uuid.UUID | None, list[AuditEvent]] = defaultdict(list)
        for event in AuditEvent.objects.filter(pk__gt=sealed_up_to(), pk__lte=upto).order_by("pk")[:MOST]:
            events[event.tenant_uuid].append(event)
        return [_link(tenant_uuid, some, now) for tenant_uuid, some in events.items()]


def _link(tenant_uuid: uuid.UUID | None, events: list[AuditEvent], now: datetime) -> AuditSeal:
    return chain.append(
        tenant_uuid,
        AuditSeal.Kind.SEAL,
        span=(events[0].pk, events[-1].pk),
        count=len(events),
        newest_at=max(event.created_at for event in events),
        leaves=map(chain.leaf, events),
        now=now,
    )
