"""Retrying work that failed: one run's batch, one session's working memory, or all that was parked for one failure."""

from collections import Counter
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.exceptions import Conflict, PersonRestricted
from memories.models import ExtractionRun, Session, SessionQueue, Tenant, WorkingMemory
from memories.queue import session_queue, window_queue

# At once, the longest parked first: what is due at once must not delay today's sessions for long.
MOST = 500
EXTRACTION, WINDOW = "extraction", "window"
_ROWS: dict[str, Any] = {EXTRACTION: SessionQueue, WINDOW: WorkingMemory}


def retry_extraction(*, run: ExtractionRun, actor: Actor, now: datetime) -> None:
    """Make the run's batch due at once, with its attempts counted anew.

    Errors: Conflict when it is already done, PersonRestricted for a key.
    """
    if run.end_user.restricted_at and not actor.is_operator:
        raise PersonRestricted
    with transaction.atomic():
        if not session_queue.revive(session_id=run.session_id, range_end=run.last_number):
            raise Conflict(
                _("There is nothing to retry. The turns of this run are already extracted, or are being extracted now.")
            )
        audit.record(actor=actor, verb="retry", target=run, now=now)


def retry_working_memory(*, session: Session, actor: Actor, now: datetime) -> None:
    """Make a session's working memory that failed due at once, with its attempts counted anew.

    Errors: Conflict when nothing of it has failed, or a worker is compacting it now.
    """
    with transaction.atomic():
        if not window_queue.revive(session.pk):
            message = _(
                "There is nothing to retry. The session's working memory has not failed, or it is being processed now."
            )
            raise Conflict(message)
        audit.record(actor=actor, verb="retry", target=session, now=now)


def retry_parked(*, work: str, failure: str, tenants: QuerySet[Tenant], actor: Actor, now: datetime) -> int:
    """Make what these tenants have parked for this failure due now, attempts counted anew; returns how many sessions.

    `work` is EXTRACTION or WINDOW. Rows that somebody else revives meanwhile are left to them. One audit event per
    tenant.
    """
    rows = _ROWS[work].objects.filter(parked_at__isnull=False, failure=failure)
    rows = rows.filter(session__tenant__in=tenants.order_by().values("pk")).order_by("parked_at")
    # Locked, in one order, and without waiting: a row that is in use is no longer parked in a moment.
    rows = rows.select_for_update(of=("self",), skip_locked=True).select_related("session__tenant")
    with transaction.atomic():
        revived = [row.session for row in rows[:MOST] if _revive(work, row.session)]
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


def _revive(work: str, session: Session) -> bool:
    if work == WINDOW:
        return window_queue.revive(session.pk)
    return session_queue.revive(session_id=session.pk, range_end=session.turn_count)
