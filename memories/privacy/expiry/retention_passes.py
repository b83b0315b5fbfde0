"""The row of a pass of retention: opened once per tenant, worked on under a lease, taken over from whoever died."""

import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from memories import audit, conf
from memories.audit import Actor
from memories.exceptions import LeaseLost, RetentionRunning
from memories.models import ActorKind, DecayPass, RetentionPass, Tenant

# Much longer than one step takes.
LEASE = timedelta(seconds=60)
COUNTED = ("turns", "sessions", "episodes", "runs", "audit", "exports")
# The number that says for how many days; 0: for ever.
DAYS = {
    "turns": "keep_turns_days",
    "episodes": "keep_episodes_days",
    "runs": "keep_runs_days",
    "audit": "keep_audit_days",
    "exports": "keep_exports_days",
}


def cutoff(rules: conf.Rules, stage: str, *, as_of: datetime) -> datetime | None:
    """What is older than this goes; None: nothing does."""
    days: int = getattr(rules, DAYS[stage])
    return as_of - timedelta(days=days) if days else None


@dataclass
class Work:
    """A pass that is ours as long as the token is in its row; what it did goes there with each step."""

    row: RetentionPass
    token: uuid.UUID
    rules: conf.Rules
    stage: str
    counts: Counter[str] = field(default_factory=Counter)
    reached: uuid.UUID | None = None

    def cutoff(self, stage: str) -> datetime | None:
        return cutoff(self.rules, stage, as_of=self.row.as_of)

    @property
    def actor(self) -> Actor:
        return Actor(kind=ActorKind.DECAY, id=str(self.row.pk))


def begin(
    *, tenant: Tenant, trigger: DecayPass.Trigger, as_of: datetime, now: datetime, actor_id: str = ""
) -> RetentionPass:
    """Put a pass down to be worked on. Errors: RetentionRunning, when one is not done yet."""
    row = RetentionPass(tenant=tenant, trigger=trigger, as_of=as_of, started_at=now, actor_id=actor_id)
    row.counts = dict.fromkeys(COUNTED, 0)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise RetentionRunning from error
    return row


def claim(row: RetentionPass) -> Work | None:
    """Take the pass for as long as a lease; None when it is done, or somebody else works on it."""
    token = uuid.uuid4()
    if not RetentionPass.objects.free().filter(pk=row.pk).update(lease_token=token, lease_until=Now() + LEASE):
        return None
    row = RetentionPass.objects.select_related("tenant").get(pk=row.pk)
    return Work(row, token, conf.rules(row.tenant), row.stage, Counter(row.counts), row.reached)


def unfinished() -> list[RetentionPass]:
    """Passes that wait for somebody, those last on which somebody failed."""
    return list(RetentionPass.objects.free().order_by(F("lease_until").asc(nulls_first=True), "started_at"))


def keep(work: Work) -> None:
    """Note what the step did and prolong the lease; inside the step's transaction. Errors: LeaseLost."""
    _write(work, lease_until=Now() + LEASE)


def release(work: Work) -> None:
    """Let somebody else go on, at once. Errors: LeaseLost."""
    _write(work, lease_until=None)


def finish(work: Work, *, now: datetime) -> None:
    """The pass is done; what it did is in the audit trail as counts, if it did anything. Errors: LeaseLost."""
    with transaction.atomic():
        _write(work, lease_until=None, lease_token=None, finished_at=now)
        counts = {name: count for name, count in work.counts.items() if count}
        if counts:
            audit.record(
                actor=work.actor,
                verb="retain",
                target=work.row,
                object_id=work.row.pk,
                tenant=work.row.tenant,
                now=now,
                counts=counts,
            )


def _write(work: Work, **changes: object) -> None:
    ours = RetentionPass.objects.open().filter(pk=work.row.pk, lease_token=work.token)
    if not ours.update(counts=dict(work.counts), stage=work.stage, reached=work.reached, **changes):
        raise LeaseLost
