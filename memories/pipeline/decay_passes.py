"""The row of a pass of forgetting: opened once per tenant, worked on under a lease, taken over from whoever died."""

import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from memories import audit, conf
from memories.audit import Actor
from memories.exceptions import DecayRunning, LeaseLost
from memories.models import ActorKind, DecayPass, Tenant

# Much longer than one batch takes.
LEASE = timedelta(seconds=60)
# What the counts of a pass always name; one that is held names, besides, what it would take of how many.
COUNTED = ("facts", "episodes", "expired", "purged", "refreshed")
State = DecayPass.State


@dataclass
class Work:
    """A pass that is ours as long as the token is in its row; `counts` and `reached` go there with each batch."""

    row: DecayPass
    token: uuid.UUID
    rules: conf.Rules
    counts: Counter[str] = field(default_factory=Counter)
    reached: uuid.UUID | None = None

    @property
    def actor(self) -> Actor:
        return Actor(kind=ActorKind.DECAY, id=str(self.row.pk))


def begin(
    *,
    tenant: Tenant,
    trigger: DecayPass.Trigger,
    as_of: datetime,
    now: datetime,
    confirmed: bool = False,
    actor_id: str = "",
) -> DecayPass:
    """Put a pass down to be worked on. Errors: DecayRunning, when one is not done yet."""
    row = DecayPass(tenant=tenant, trigger=trigger, as_of=as_of, confirmed=confirmed, actor_id=actor_id)
    row.started_at, row.counts = now, dict.fromkeys(COUNTED, 0)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise DecayRunning from error
    return row


def claim(row: DecayPass) -> Work | None:
    """Take the pass for as long as a lease; None when it is done, or somebody else works on it."""
    token = uuid.uuid4()
    if not DecayPass.objects.free().filter(pk=row.pk).update(lease_token=token, lease_until=Now() + LEASE):
        return None
    row = DecayPass.objects.select_related("tenant").get(pk=row.pk)
    return Work(row, token, conf.rules(row.tenant), Counter(row.counts), row.reached)


def unfinished() -> list[DecayPass]:
    """Passes that wait for somebody, those last on which somebody failed."""
    return list(DecayPass.objects.free().order_by(F("lease_until").asc(nulls_first=True), "started_at"))


def keep(work: Work) -> None:
    """Note what the batch did and prolong the lease; inside the batch's transaction. Errors: LeaseLost."""
    _write(work, lease_until=Now() + LEASE)


def release(work: Work) -> None:
    """Let somebody else go on, at once. Errors: LeaseLost."""
    _write(work, lease_until=None)


def finish(work: Work, state: DecayPass.State, *, now: datetime) -> None:
    """The pass is done, or held by the brake; what it did is in the audit trail as counts. Errors: LeaseLost."""
    # The id of a person, who may be erased one day.
    work.reached = None
    with transaction.atomic():
        _write(work, lease_until=None, lease_token=None, state=state, finished_at=now)
        tenant = work.row.tenant
        counts = dict(work.counts)
        verb = "hold" if state == State.HELD else "decay"
        audit.record(
            actor=work.actor, verb=verb, target=work.row, object_id=work.row.pk, tenant=tenant, now=now, counts=counts
        )


def _write(work: Work, **changes: object) -> None:
    ours = DecayPass.objects.open().filter(pk=work.row.pk, lease_token=work.token)
    if not ours.update(counts=dict(work.counts), reached=work.reached, **changes):
        raise LeaseLost
