"""Work that was given up after every attempt failed, tried anew all at once: say, after the model came back."""

from collections import Counter
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from memories import audit
from memories.audit import Actor
from memories.models import Session, SessionQueue, Tenant, WorkingMemory
from memories.pipeline import debounce, working_memory

# Of one go, the longest parked first: what is due at once must not keep today's talk waiting for long.
MOST = 500
EXTRACTION, WINDOW = "extraction", "window"
_ROWS: dict[str, Any] = {EXTRACTION: SessionQueue, WINDOW: WorkingMemory}


def retry_parked(*, work: str, failure: str, tenants: QuerySet[Tenant], actor: Actor, now: datetime) -> int:
    """Make what these tenants have parked for this failure due now, attempts counted anew; how many sessions.

    `work` is EXTRACTION or WINDOW. What somebody else revives meanwhile is left to them. One audit event per tenant.
    """
    with transaction.atomic():
        revived = [session for session in _parked(work, failure, tenants) if _revive(work, session)]
        for tenant, count in Counter(session.tenant for session in revived).items():
            audit.record(
                actor=actor,
                verb="retry_parked",
                target=tenant,
                object_id=tenant.pk,
                tenant=tenant,
                now=now,
                counts={work: count},
            )
    return len(revived)


def _parked(work: str, failure: str, tenants: QuerySet[Tenant]) -> list[Session]:
    rows = _ROWS[work].objects.filter(parked_at__isnull=False, failure=failure)
    rows = rows.filter(session__tenant__in=tenants.order_by().values("pk")).order_by("parked_at")
    # Locked, in one order, and without waiting: a row that is in use is no longer parked in a moment.
    found = rows.select_for_update(of=("self",), skip_locked=True).select_related("session__tenant")[:MOST]
    return [row.session for row in found]


def _revive(work: str, session: Session) -> bool:
    if work == WINDOW:
        return working_memory.revive(session.pk)
    return debounce.revive(session_id=session.pk, range_end=session.turn_count)
