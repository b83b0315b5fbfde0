"""Nightly passes: when one is due, how it begins, and who works on it.

A tenant has at most one open pass of a kind. One worker at a time works on it, and another takes it over from one that
died. A pass that ends its workers is given up; the next night begins another.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import F

from memories import audit, conf
from memories.audit import Actor
from memories.db import tenancy
from memories.exceptions import Conflict
from memories.models import ActorKind, DecayPass, RetentionPass
from memories.models.leases import LeasedQuerySet
from memories.queue import leases
from memories.queue.leases import LEASE, Lease
from memories.time_zones import zone_or_utc

Pass = TypeVar("Pass", DecayPass, RetentionPass)


@dataclass(kw_only=True)
class ClaimedPass(Lease[Pass]):
    """A pass that is ours: each step is over with a renewal, which stores `counts` and `reached`."""

    rules: conf.Rules
    counts: Counter[str] = field(default_factory=Counter)
    reached: uuid.UUID | None = None

    def progress(self) -> dict[str, Any]:
        return {"counts": dict(self.counts), "reached": self.reached, "attempts": 0}


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


@transaction.atomic
def claim(
    undone: LeasedQuerySet[Pass], row: Pass, *, given_up: dict[str, Any], lasts: timedelta = LEASE
) -> ClaimedPass[Pass] | None:
    """Take the row under a lease; None when it is no longer one of the `undone`, or somebody else holds it.

    After too many attempts it gets the values `given_up` instead, which end it.
    """

    def give_up(row: Pass) -> None:
        ended = {"failure": leases.WORKER_LOST, "reached": None, **given_up}
        leases.revoke(type(row)._default_manager.filter(pk=row.pk), attempts=0, **ended)
        record(row, "fail", {leases.WORKER_LOST: 1}, now=row.clock)

    found = leases.lock(undone.free().select_related("tenant"), row.pk)
    token = leases.take(found, give_up=give_up, lasts=lasts) if found else None
    if found is None or token is None:
        return None
    rules, counts = conf.rules(found.tenant), Counter(found.counts)
    return ClaimedPass(row=found, token=token, lasts=lasts, rules=rules, counts=counts, reached=found.reached)


def unfinished(undone: LeasedQuerySet[Pass]) -> list[Pass]:
    """Passes that nobody holds. Those on which a worker died come last."""
    return list(undone.free().order_by(F("lease_until").asc(nulls_first=True), "started_at"))


def run_slice(
    undone: LeasedQuerySet[Pass],
    claim: Callable[[Pass], ClaimedPass[Pass] | None],
    carry_on: Callable[[ClaimedPass[Pass], float], bool],
    *,
    seconds: float,
) -> bool:
    """Carry on passes that nobody holds, for about so long; True when more is left to do now. Errors: LeaseLost.

    `carry_on` works on one until a moment of the monotonic clock, and returns False when that came before the end.
    """
    until = time.monotonic() + seconds
    for row in unfinished(undone):
        work = claim(row)
        if work is None:
            continue
        with tenancy.of_tenant(work.row.tenant_id):
            if not carry_on(work, until):
                return True
    return False


def actor_of(row: DecayPass | RetentionPass) -> Actor:
    return Actor(kind=ActorKind.DECAY, id=str(row.pk))


def record(row: DecayPass | RetentionPass, verb: str, counts: dict[str, int], *, now: datetime) -> None:
    """Audit what a pass did."""
    audit.record(actor=actor_of(row), verb=verb, target=row, now=now, counts=counts)
