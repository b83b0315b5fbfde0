"""Nightly passes: when one is due, and its lease.

A tenant has at most one open pass, and one worker at a time holds it. Another worker takes it over from one that died.
"""

import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Generic, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from memories import conf
from memories.audit import Actor
from memories.exceptions import Conflict, LeaseLost
from memories.models import ActorKind, DecayPass, RetentionPass
from memories.models.leases import unleased
from memories.time_zones import zone_or_utc

Pass = TypeVar("Pass", DecayPass, RetentionPass)
# Much longer than one step takes.
LEASE = timedelta(seconds=60)


@dataclass
class ClaimedPass(Generic[Pass]):
    """A pass under our lease while our token is in its row; each step writes `counts` and `reached` there."""

    row: Pass
    rules: conf.Rules
    # The row, as long as the lease is ours and the pass is not done.
    ours: QuerySet[Pass]
    lease: timedelta
    counts: Counter[str] = field(default_factory=Counter)
    reached: uuid.UUID | None = None

    @property
    def actor(self) -> Actor:
        return Actor(kind=ActorKind.DECAY, id=str(self.row.pk))


def due_day(*, now: datetime, time_zone: str, hour: int, last: date | None) -> date | None:
    """The tenant's own day whose pass is due; None before that hour, and when the day had its pass.

    A pass is due once a day from the hour on, or later if no worker ran then. An hour that a change of clocks skips is
    over once the next one begins; one that comes twice counts once. An unknown zone is UTC.
    """
    local = now.astimezone(zone_or_utc(time_zone))
    if local.hour < hour or (last is not None and last >= local.date()):
        return None
    return local.date()


def begin(row: Pass, *, counted: Iterable[str], running: type[Conflict]) -> Pass:
    """Insert a pass for workers to claim; its counts always have the names `counted`.

    Errors: `running`, when the tenant has an open one.
    """
    row.counts = dict.fromkeys(counted, 0)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise running from error
    return row


def claim(undone: QuerySet[Pass], row: Pass, *, lease: timedelta = LEASE) -> ClaimedPass[Pass] | None:
    """Take the row under a lease; None when it is no longer one of the `undone`, or somebody else holds it."""
    token = uuid.uuid4()
    rows = undone.filter(pk=row.pk)
    if not rows.filter(unleased()).update(lease_token=token, lease_until=Now() + lease):
        return None
    row = type(row)._default_manager.select_related("tenant").get(pk=row.pk)
    ours = rows.filter(lease_token=token)
    return ClaimedPass(row, conf.rules(row.tenant), ours, lease, Counter(row.counts), row.reached)


def unfinished(undone: QuerySet[Pass]) -> list[Pass]:
    """Passes that nobody holds. Those on which a worker died come last."""
    return list(undone.filter(unleased()).order_by(F("lease_until").asc(nulls_first=True), "started_at"))


def keep(work: ClaimedPass[Pass], **changes: object) -> None:
    """Store the progress and renew the lease; inside the step's transaction. Errors: LeaseLost."""
    _write(work, lease_until=Now() + work.lease, **changes)


def release(work: ClaimedPass[Pass]) -> None:
    """Store the progress and end the lease: another worker may go on at once. Errors: LeaseLost."""
    _write(work, lease_until=None)


def end(work: ClaimedPass[Pass], **changes: object) -> None:
    """Store the progress and that the pass is done. Errors: LeaseLost."""
    _write(work, lease_until=None, lease_token=None, **changes)


def _write(work: ClaimedPass[Pass], **changes: object) -> None:
    if not work.ours.update(counts=dict(work.counts), reached=work.reached, **changes):
        raise LeaseLost
