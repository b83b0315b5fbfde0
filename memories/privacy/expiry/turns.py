"""Deletes turns that are too old, and sessions of which nothing is left, a session at a time.

Turns that are not extracted yet, or still in an open window, stay until then. Facts stay and keep their evidence
without the quotes, which are the turn's own text. Nothing waits for a lock: locked sessions are left to the next pass.
"""

import uuid
from collections.abc import Iterator
from datetime import datetime
from functools import reduce
from operator import and_
from typing import Any

from django.db import transaction
from django.db.models import Case, Count, Exists, F, Min, OuterRef, Q, QuerySet, Sum, When
from django.db.models.functions import Least

from memories.db import quotes
from memories.models import (
    Change,
    Episode,
    ExtractionRun,
    FactEvidence,
    Role,
    Session,
    SessionQueue,
    Tenant,
    Turn,
    WorkingMemory,
)
from memories.privacy.expiry import passes
from memories.privacy.expiry.passes import Work
from memories.queue import leases, window_queue

SESSIONS = 100
_REFERRING: tuple[Any, ...] = (Episode, FactEvidence, ExtractionRun)
# Turns of one transaction.
STEP = 1_000


def is_over(cutoff: datetime, session: str = "") -> Q:
    """Sessions without a turn for so long and without work for any job; `session` is the look-up of the session, like
    `session__`."""
    queue, window = f"{session}queue__", f"{session}working_memory__"
    quiet = {f"{row}{name}": None for row in (queue, window) for name in ("due_at", "lease_until", "parked_at")}
    waits = {f"{queue}pending_user": False, f"{window}unarmed": False}
    return Q(**quiet, **waits, **{f"{session}last_turn_at__lt": cutoff})


def deletable_up_to(cutoff: datetime, session: str = "") -> Case:
    """The number up to which turns can go: all turns of a session that is over; else what every job is done with."""
    done = Least(
        F(f"{session}queue__extracted_number"),
        F(f"{session}working_memory__left_number"),
        F(f"{session}working_memory__episode_number"),
    )
    return Case(When(is_over(cutoff, session), then=F(f"{session}turn_count")), default=done)


def turns(tenant: Tenant, cutoff: datetime) -> QuerySet[Turn]:
    """Turns that are older, deletable or not; `deletable` is the number up to which those of the session are."""
    rows = Turn.objects.filter(tenant=tenant, created_at__lt=cutoff, end_user__in=passes.people())
    return rows.annotate(deletable=deletable_up_to(cutoff, "session__"))


def empty(tenant: Tenant, cutoff: datetime) -> QuerySet[Session]:
    """Sessions whose turns are all gone, and to which nothing refers any more."""
    return Session.objects.filter(_is_empty(cutoff), tenant=tenant, end_user__in=passes.people())


def _is_empty(cutoff: datetime) -> Q:
    references = (Exists(model.objects.filter(session=OuterRef("pk"))) for model in _REFERRING)
    gone = is_over(cutoff) & Q(deleted_number=F("turn_count"))
    return reduce(and_, (~Q(one) for one in references), gone)


def delete(work: Work, cutoff: datetime) -> Iterator[None]:
    """Delete turns that are older; yields after each step. Errors: LeaseLost."""
    tenant = work.row.tenant
    while found := _next_sessions(tenant, cutoff, work.reached):
        for session_id in found:
            while _trim(work, session_id, cutoff):
                yield
            work.reached = session_id
            leases.renew(work)
            yield


def _next_sessions(tenant: Tenant, cutoff: datetime, reached: uuid.UUID | None) -> list[uuid.UUID]:
    """The next sessions with turns that are older, or with nothing left."""
    # Turns of a session are in the order of their age, and their numbers have no gaps: the first is the oldest.
    old = Turn.objects.filter(session=OuterRef("pk"), number=OuterRef("deleted_number") + 1, created_at__lt=cutoff)
    rows = Session.objects.filter(tenant=tenant, created_at__lt=cutoff, end_user__in=passes.people())
    rows = rows.filter(Q(Exists(old)) | _is_empty(cutoff))
    rest = rows.filter(pk__gt=reached) if reached else rows
    return list(rest.order_by("pk").values_list("pk", flat=True)[:SESSIONS])


def _trim(work: Work, session_id: uuid.UUID, cutoff: datetime) -> bool:
    """Delete some old turns of the session, and the session when it is empty; whether more old turns are left."""
    with transaction.atomic():
        session = _lock(session_id, cutoff)
        if session is None:
            return False
        # No more than may go now is read: a session has so many steps that each must not look through the rest of it.
        last: int = min(session.deletable, session.deleted_number + STEP)
        step = Turn.objects.filter(session=session, number__gt=session.deleted_number, number__lte=last)
        # Turns of a session are in the order of their age.
        kept: int | None = step.filter(created_at__gte=cutoff).aggregate(first=Min("number"))["first"]
        gone: int = (kept - 1 if kept else last) - session.deleted_number
        if gone > 0:
            work.counts["turns"] += gone
            _delete_up_to(session, session.deleted_number + gone)
        if empty(work.row.tenant, cutoff).filter(pk=session_id).exists():
            session.delete()
            work.counts["sessions"] += 1
        leases.renew(work)
        return gone == STEP


def _lock(session_id: uuid.UUID, cutoff: datetime) -> Any:
    """The session, annotated with `deletable`; None when somebody holds one of its rows, or the person.

    The locks are taken in the order of everybody else: queue, working memory, session, person.
    """
    for model in (SessionQueue, WorkingMemory, Session):
        rows = model.objects.select_for_update(skip_locked=True, of=("self",))
        if not rows.filter(pk=session_id).exists():
            return None
    session = Session.objects.annotate(deletable=deletable_up_to(cutoff)).get(pk=session_id)
    return session if passes.lock_people([session.end_user_id]) else None


def _delete_up_to(session: Session, last: int) -> None:
    """Delete the turns with their vectors and quotes; the counts of the session stay true."""
    gone = Turn.objects.filter(session=session, number__lte=last)
    sums = gone.aggregate(tokens=Sum("token_count"), rounds=Count("pk", filter=Q(role=Role.USER)))
    quotes.forget(session.tenant_id, list(gone.values_list("pk", flat=True)))
    gone.delete()
    session.deleted_number = last
    session.deleted_tokens += sums["tokens"] or 0
    session.deleted_rounds += sums["rounds"]
    session.embedded_number = max(session.embedded_number, last)
    session.save(update_fields=["deleted_number", "deleted_tokens", "deleted_rounds", "embedded_number"])
    _move_window(session, last)


def _move_window(session: Session, last: int) -> None:
    """The window of a session that is over loses its turns, too; the summary goes with the last turn."""
    window = WorkingMemory.objects.get(pk=session.pk)
    if window.left_number < last:
        window.left_number = last
        window_queue.count_left(window, session)
    window.episode_number = max(window.episode_number, last)
    if last == session.turn_count:
        window.summary = ""
        Change.objects.of_summary(session.pk).delete()
    window.save(update_fields=["left_number", "left_tokens", "left_rounds", "episode_number", "summary"])
