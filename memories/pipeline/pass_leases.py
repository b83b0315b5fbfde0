"""The lease of a nightly pass: its row is opened once per tenant, worked on by one at a time, and taken over from
whoever died."""

import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from memories import conf
from memories.audit import Actor
from memories.exceptions import Conflict, LeaseLost
from memories.models import ActorKind, DecayPass, RetentionPass
from memories.models.leases import unleased

Pass = TypeVar("Pass", DecayPass, RetentionPass)
# Much longer than one step takes.
LEASE = timedelta(seconds=60)


@dataclass
class Work(Generic[Pass]):
    """A pass that is ours as long as the token is in its row; `counts` and `reached` go there with each step."""

    row: Pass
    rules: conf.Rules
    # The row, until it is somebody else's or done.
    ours: QuerySet[Pass]
    lease: timedelta
    counts: Counter[str] = field(default_factory=Counter)
    reached: uuid.UUID | None = None

    @property
    def actor(self) -> Actor:
        return Actor(kind=ActorKind.DECAY, id=str(self.row.pk))


def begin(row: Pass, *, counted: Iterable[str], running: type[Conflict]) -> Pass:
    """Put the pass down to be worked on, with the names that its counts always have. Errors: `running`, when one of
    its tenant is not done yet."""
    row.counts = dict.fromkeys(counted, 0)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise running from error
    return row


def claim(undone: QuerySet[Pass], row: Pass, *, lease: timedelta = LEASE) -> Work[Pass] | None:
    """Take one of those that are `undone` for as long as a lease; None when it is none of them any more, or somebody
    else works on it."""
    token = uuid.uuid4()
    rows = undone.filter(pk=row.pk)
    if not rows.filter(unleased()).update(lease_token=token, lease_until=Now() + lease):
        return None
    row = type(row)._default_manager.select_related("tenant").get(pk=row.pk)
    ours = rows.filter(lease_token=token)
    return Work(row, conf.rules(row.tenant), ours, lease, Counter(row.counts), row.reached)


def unfinished(undone: QuerySet[Pass]) -> list[Pass]:
    """Those that wait for somebody, those last on which somebody failed."""
    return list(undone.filter(unleased()).order_by(F("lease_until").asc(nulls_first=True), "started_at"))


def keep(work: Work[Pass], **changes: object) -> None:
    """Note what the step did and prolong the lease; inside the step's transaction. Errors: LeaseLost."""
    _write(work, lease_until=Now() + work.lease, **changes)


def release(work: Work[Pass]) -> None:
    """Let somebody else go on, at once. Errors: LeaseLost."""
    _write(work, lease_until=None)


def end(work: Work[Pass], **changes: object) -> None:
    """Note the last of it, and that it is done. Errors: LeaseLost."""
    _write(work, lease_until=None, lease_token=None, **changes)


def _write(work: Work[Pass], **changes: object) -> None:
    if not work.ours.update(counts=dict(work.counts), reached=work.reached, **changes):
        raise LeaseLost
