"""Rows that are queues of their own: woken when due, claimed with a lease and a token, given back or parked.

Leases and due times follow the database's clock, so hosts whose clocks differ agree on them.
"""

import random
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from memories import conf
from memories.exceptions import LeaseLost, PersonRestricted
from memories.models import EndUser, Session, SessionQueue, WorkingMemory
from memories.pipeline import endpoint
from memories.pipeline.setbacks import Setback

# Also how long a session waits when a cluster fetched its wake-up ahead of workers that are all busy.
REWAKE = timedelta(seconds=1)
BACKOFF_BASE_SECONDS = 4.0
BACKOFF_FACTOR = 3.0
BACKOFF_LIMIT_SECONDS = 120.0

Row = SessionQueue | WorkingMemory


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right to work on one session's row until the lease ends or the person's generation changes."""

    session: Session
    token: uuid.UUID
    attempt: int
    generation: int
    rules: conf.Rules


def wake(rows: QuerySet[Any], limit: int) -> list[uuid.UUID]:
    """Of the due `rows` those to wake a worker for, oldest first, marked as woken; inside the caller's transaction.

    A wake-up that got lost, or lies with a busy cluster, is sent again after REWAKE; one too many finds nothing.
    """
    if conf.llm().mode == conf.LLM_OFF:
        return []
    asleep = Q(woken_at=None) | Q(woken_at__lte=Now() - REWAKE)
    free = endpoint.free_calls()
    limit = limit if free is None else min(limit, free)
    due = rows.filter(asleep).order_by("due_at").select_for_update(skip_locked=True)
    found = list(due.values_list("pk", flat=True)[:limit])
    rows.model._default_manager.filter(pk__in=found).update(woken_at=Now())
    return found


def take(row: Row, rules: conf.Rules) -> uuid.UUID | None:
    """Count the attempt and begin the lease of a due row, in the transaction that locked it with its clock.

    None when its workers died each time, so that it is parked, or while the model's endpoint is left alone.
    """
    if row.attempts >= rules.max_attempts:
        # It must not take the next worker with it.
        park(row, failure="worker_lost", now=row.clock)
        return None
    if not endpoint.admit(lease=timedelta(seconds=rules.lease_seconds)):
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


def give_back(row: Row, setback: Setback, *, max_attempts: int, now: datetime) -> bool:
    """End the lease of a locked row with its clock after a failure: to be tried again after a back-off, or parked.

    True when it was parked.
    """
    if setback.park or (setback.counts and row.attempts >= max_attempts):
        park(row, failure=setback.failure, now=now)
        return True
    release(row)
    row.failure = setback.failure
    wait = max(setback.delay or 0.0, backoff(row.attempts) if setback.counts else 0.0)
    row.attempts -= 0 if setback.counts else 1
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
    """Whether somebody is at work on it."""
    return row.lease_until is not None and row.lease_until > now


def backoff(attempt: int) -> float:
    """Seconds to wait after the given attempt (1, 2, …): 4 · 3^(n−1), at most 120, give or take a quarter."""
    seconds = min(BACKOFF_LIMIT_SECONDS, BACKOFF_BASE_SECONDS * BACKOFF_FACTOR ** (attempt - 1))
    # The jitter keeps sessions that failed together from coming back together.
    return seconds * random.uniform(0.75, 1.25)  # noqa: S311
