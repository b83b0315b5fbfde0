"""The two queue rows of a session: a due one wakes a worker, is claimed, and is postponed or parked after a failure."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from memories import conf, outbox
from memories.exceptions import LeaseLost, PersonRestricted
from memories.llm import client
from memories.models import EndUser, Event, LanguageModel, Session, SessionQueue
from memories.models.conversations.conversations import QueueRow, QueueRowQuerySet
from memories.outbox import WebhookEvent
from memories.queue import circuit_breaker, leases, own_models, spending
from memories.queue.attempts import Attempt, Row, SessionLease
from memories.queue.retry_policy import INTERRUPTED, RESTRICTED, RetryDecision
from memories.telemetry import log_fields
from memories.telemetry.families import ATTEMPTS, FAILURES

AnyLease = TypeVar("AnyLease", bound=SessionLease[Any])
# Also how long a session waits when a cluster fetched its wake-up ahead of workers that are all busy.
REWAKE = timedelta(seconds=1)


def enqueue(rows: QueueRowQuerySet[Any], limit: int) -> list[uuid.UUID]:
    """Mark the oldest of the due `rows` as woken, and return them to send wake-ups for; in the caller's transaction.

    A wake-up that is lost, or that a busy cluster keeps, is sent again after REWAKE. A spare one finds nothing.
    """
    if conf.llm().mode == conf.LLM_OFF:
        return []
    asleep = Q(woken_at=None) | Q(woken_at__lte=Now() - REWAKE)
    due = rows.filter(asleep).order_by("due_at").select_for_update(skip_locked=True)
    found: list[uuid.UUID] = []
    for owner, free in circuit_breaker.limited().items():
        theirs = circuit_breaker.rows_of(owner)
        found += due.filter(theirs).values_list("pk", flat=True)[: min(limit, free)] if free else []
        due = due.exclude(theirs)
    found += due.values_list("pk", flat=True)[: max(0, limit - len(found))]
    rows.model._default_manager.filter(pk__in=found).update(woken_at=Now())
    return found


def take(kind: type[AnyLease], row: QueueRow, session: Session, rules: conf.Rules, **more: Any) -> AnyLease | None:
    """Begin a lease of this kind on a locked row, in the transaction that locked it.

    None when all attempts ended without a result, and the row is parked, when the circuit breaker admits no batch, or
    when a daily cap is reached, and the row waits for the end of the tenant's day.
    """
    log_fields.note_tenant(session.tenant.slug)
    own = own_models.own_of(session.tenant_id)
    config = conf.llm(own)
    if own and client.is_configured(config) and _waits_for_cap(row, session, own):
        return None
    lasts = timedelta(seconds=rules.lease_seconds)
    token = leases.take(
        row,
        lasts=lasts,
        most_attempts=rules.max_attempts,
        give_up=lambda row: _park(row, failure=leases.WORKER_LOST, now=row.clock),
        admit=partial(circuit_breaker.admit, lease=lasts, owner=config.tenant_id),
        woken_at=None,
    )
    if token is None:
        return None
    generation = session.end_user.generation
    return kind(
        row=row, token=token, lasts=lasts, session=session, generation=generation, rules=rules, config=config, **more
    )


def _waits_for_cap(row: QueueRow, session: Session, own: LanguageModel) -> bool:
    """Whether the locked row has to wait for the end of the tenant's day; no attempt counts."""
    until = spending.wait_until(session.tenant, own, now=row.clock)
    if until is None:
        return False
    row.due_at, row.failure = until, spending.CAPPED
    end_lease(row)
    row.save(update_fields=["due_at", "failure", "lease_token", "lease_until", "woken_at"])
    reached = WebhookEvent(Event.BUDGET_REACHED, {"until": until}, once=f"budget:{until.isoformat()}")
    outbox.publish(session.tenant_id, [reached], now=row.clock, tenant=session.tenant)
    return True


def renew(lease: SessionLease[Any]) -> None:
    """Prolong the lease before a model call. Errors: LeaseLost, PersonRestricted."""
    unrestricted = lease.ours.filter(session__end_user__restricted_at=None)
    if not unrestricted.update(lease_until=Now() + lease.lasts):
        raise PersonRestricted if lease.ours.exists() else LeaseLost


def fence(lease: SessionLease[Row]) -> Row:
    """Lock the row and then the person for the commit; the row with its clock.

    Errors: LeaseLost (taken over, or the session or the person erased), PersonRestricted.
    """
    row = leases.fence(lease)
    # Serialises the commits of one person's sessions; no_key lets new turns refer to the person meanwhile.
    person = EndUser.objects.select_for_update(no_key=True).filter(pk=lease.session.end_user_id).first()
    if person is None or person.generation != lease.generation:
        raise LeaseLost
    if person.restricted_at:
        raise PersonRestricted
    return row


@contextmanager
def given_back_on_error(attempt: Attempt) -> Iterator[None]:
    """A lost lease ends the attempt. A restriction of the person postpones its work until it is lifted. Any other
    error, even the task's timeout, postpones the work and is raised."""
    retry: RetryDecision | None = INTERRUPTED
    try:
        yield
        retry = None
    except LeaseLost as lost:
        attempt.discard(lost.code)
        retry = None
    except PersonRestricted:
        retry = RESTRICTED
    finally:
        if retry:
            if not attempt.calls:
                circuit_breaker.release_probe(attempt.claim.config.tenant_id)
            attempt.release(retry)


def postpone(lease: SessionLease[Any], retry: RetryDecision, *, now: datetime, **changes: Any) -> bool:
    """Give the row back after a failure, to be tried again after a back-off; True when it was parked instead."""
    with transaction.atomic():
        try:
            row: QueueRow = leases.fence(lease)
        except LeaseLost:
            return False
        for name, value in changes.items():
            setattr(row, name, value)
        if retry.parks(row.attempts, lease.rules):
            _park(row, failure=retry.failure, now=now)
            return True
        row.due_at, row.failure = row.clock + timedelta(seconds=retry.wait(row.attempts)), retry.failure
        row.attempts -= 0 if retry.counts else 1
        end_lease(row)
        row.save()
        _count(row, "failed")
        return False


def end_lease(row: QueueRow) -> None:
    """Nobody works on the locked row any more; the caller saves it."""
    row.lease_token = row.lease_until = row.woken_at = None


def release(row: QueueRow) -> None:
    """End the lease on the locked row: its holder finds that at its commit. The attempt is not counted; the caller
    saves it."""
    end_lease(row)
    row.attempts = max(0, row.attempts - 1)


def _park(row: QueueRow, *, failure: str, now: datetime) -> None:
    """Leave the row alone until new turns or a person revive it."""
    row.parked_at, row.failure, row.due_at = now, failure, None
    end_lease(row)
    row.save()
    _count(row, "parked")


def _count(row: QueueRow, result: str) -> None:
    queue = "extraction" if isinstance(row, SessionQueue) else "working_memory"
    ATTEMPTS.count(queue, result)
    FAILURES.count(queue, row.failure or "unknown")
