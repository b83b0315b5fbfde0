"""The row of a retention pass: begin, claim, finish; which data is too old; and which people are passed over."""

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from memories import conf
from memories.exceptions import RetentionRunning
from memories.kinds import PLAIN
from memories.models import CaseState, DecayPass, EndUser, PrivacyCase, RetentionPass, Tenant
from memories.queue import leases, nightly

# The plain kinds that a tenant can keep for a number of days: each has a stage.
LIMITED = tuple(kind for kind in PLAIN if kind.plural in RetentionPass.Stage.values)
COUNTED = (
    "turns",
    "sessions",
    "episodes",
    "runs",
    "audit",
    "exports",
    "contexts",
    "store",
    *(kind.plural for kind in LIMITED),
    "trajectories",
)
# Stage → the rule with the number of days; 0: kept for ever.
DAYS = {
    "turns": "keep_turns_days",
    "episodes": "keep_episodes_days",
    "runs": "keep_runs_days",
    "audit": "keep_audit_days",
    "exports": "keep_exports_days",
    "contexts": "keep_contexts_days",
    "store": "keep_store_days",
    "trajectories": "keep_trajectories_days",
    **{kind.plural: f"keep_{kind.plural}_days" for kind in LIMITED},
}
Work = nightly.ClaimedPass[RetentionPass]


def cutoff(rules: conf.Rules, stage: str, *, as_of: datetime) -> datetime | None:
    """Data older than this is deleted; None: nothing is."""
    days: int = getattr(rules, DAYS[stage])
    return as_of - timedelta(days=days) if days else None


def begin(
    *, tenant: Tenant, trigger: DecayPass.Trigger, as_of: datetime, now: datetime, actor_id: str = ""
) -> RetentionPass:
    """Create a pass for a worker. Errors: RetentionRunning, when one is not done yet."""
    row = RetentionPass(tenant=tenant, trigger=trigger, as_of=as_of, started_at=now, actor_id=actor_id)
    return nightly.begin(row, counted=COUNTED, running=RetentionRunning)


def claim(row: RetentionPass) -> Work | None:
    """Lease the pass; None when it is done, or another worker has it."""
    return nightly.claim(RetentionPass.objects.open(), row, given_up={"finished_at": Now()})


def enter_stage(work: Work, stage: RetentionPass.Stage) -> None:
    """All stages before this one are done. Errors: LeaseLost."""
    work.row.stage, work.reached = stage, None
    leases.renew(work, stage=stage)


def finish(work: Work, *, now: datetime) -> None:
    """End the pass; what it deleted is audited in counts, if it deleted anything. Errors: LeaseLost."""
    with transaction.atomic():
        leases.release(work, finished_at=now)
        counts = {name: count for name, count in work.counts.items() if count}
        if counts:
            nightly.record(work.row, "retain", counts, now=now)


def people() -> QuerySet[EndUser]:
    """The people whose data may be deleted: not under restriction, and without a case on legal hold."""
    held = PrivacyCase.objects.filter(state=CaseState.ON_HOLD, end_user__isnull=False)
    return EndUser.objects.filter(restricted_at=None).exclude(pk__in=held.values("end_user"))


def lock_people(ids: Collection[uuid.UUID]) -> list[uuid.UUID]:
    """Lock those of these people whose data may be deleted and whom nobody else holds, in the order of their ids.

    A restriction and a hold lock the person, so they are seen here or have to wait.
    """
    rows = people().select_for_update(no_key=True, skip_locked=True, of=("self",)).filter(pk__in=ids)
    return list(rows.order_by("pk").values_list("pk", flat=True))
