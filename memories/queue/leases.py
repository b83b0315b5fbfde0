"""Leases on the rows of the queue: a due row wakes a worker, is claimed with a token, renewed, released or parked.

Leases and due times follow the database's clock, so hosts whose clocks differ agree on them.
"""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from memories import conf
from memories.exceptions import LeaseLost, PersonRestricted
from memories.models import EndUser, SessionQueue, WorkingMemory
from memories.queue import circuit_breaker
from memories.queue.attempts import Lease
from memories.queue.retry_policy import Retry, backoff

# Also how long a session waits when a cluster fetched its wake-up ahead of workers that are all busy.
REWAKE = timedelta(seconds=1)

Row = SessionQueue | WorkingMemory


def wake(rows: QuerySet[Any], limit: int) -> list[uuid.UUID]:
    """Mark the oldest of the due `rows` as woken, and return them to send wake-ups for; in the caller's transaction.

    A wake-up that is lost, or that a busy cluster keeps, is sent again after REWAKE. A spare one finds nothing.
    """
    if conf.llm().mode == conf.LLM_OFF:
        return []
    asleep = Q(woken_at=None) | Q(woken_at__lte=Now() - REWAKE)
    free = circuit_breaker.free_calls()
    limit = limit if free is None else min(limit, free)
    due = rows.filter(asleep).order_by("due_at").select_for_update(skip_locked=True)
    found = list(due.values_list("pk", flat=True)[:limit])
    rows.model._default_manager.filter(pk__in=found).update(woken_at=Now())
    return found


def take(row: Row, rules: conf.Rules) -> uuid.UUID | None:
    """Count the attempt and begin the lease of a due row, in the transaction that locked it with its clock.

    None when the circuit breaker admits no batch, or when all attempts ended without a result: then the row is parked.
    """
    if row.attempts >= rules.max_attempts:
        # Its batch killed each worker: it must not kill the next one.
        park(row, failure="worker_lost", now=row.clock)
        return None
    if not circuit_breaker.admit(lease=timedelta(seconds=rules.lease_seconds)):
        return None
    row.attempts += 1
    row.lease_token = uuid.uuid4()
    row.lease_until = row.clock + timedelta(seconds=rules.lease_seconds)
    row.woken_at = None
    row.save(update_fields=["attempts", "lease_token", "lease_until", "woken_at"])
    return row.lease_token


def renew(rows: QuerySet[Any], lease: Lease) -> None:
    """Prolong the lease before a model call. Errors: LeaseLost, PersonRestricted."""
    own = rows.filter(pk=lease.session.pk, lease_token=lease.token)
    until = Now() + timedelta(seconds=lease.rules.lease_seconds)
    if not own.filter(session__end_user__restricted_at=None).update(lease_until=until):
        raise PersonRestricted if own.exists() else LeaseLost


def hold_person(lease: Lease) -> None:
    """Lock the person for the commit, after the session's rows.

    Errors: LeaseLost (the person was erased), PersonRestricted.
    """
    # Serialises the commits of one person's sessions; no_key lets new turns refer to the person meanwhile.
    person = EndUser.objects.select_for_update(no_key=True).filter(pk=lease.session.end_user_id).first()
    if person is None or person.generation != lease.generation:
        raise LeaseLost
    if person.restricted_at:
        raise PersonRestricted


def give_back(row: Row, retry: Retry, *, max_attempts: int, now: datetime) -> bool:
    """End the lease of a locked row with its clock after a failure: to be tried again after a back-off, or parked.

    True when it was parked.
    """
    if retry.park or (retry.counts and row.attempts >= max_attempts):
        park(row, failure=retry.failure, now=now)
        return True
    release(row)
    row.failure = retry.failure
    wait = max(retry.delay or 0.0, backoff(row.attempts) if retry.counts else 0.0)
    row.attempts -= 0 if retry.counts else 1
    row.due_at = row.clock + timedelta(seconds=wait)
    row.save()
    return False


def park(row: Row, *, failure: str, now: datetime) -> None:
    """Leave the row alone until new turns or a person revive it."""
    row.parked_at, row.failure, row.due_at = now, failure, None
    release(row)
    row.save()


def release(row: Row) -> None:
    """End the lease; the caller saves the row."""
    row.lease_token = row.lease_until = row.woken_at = None


def is_leased(row: Row, *, now: datetime) -> bool:
    """Whether a worker holds the row."""
    return row.lease_until is not None and row.lease_until > now
