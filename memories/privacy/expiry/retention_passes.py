"""Passes of retention: how one begins, what it counts, what is too old for it, and how it ends."""

from datetime import datetime, timedelta

from django.db import transaction

from memories import audit, conf
from memories.exceptions import RetentionRunning
from memories.models import DecayPass, RetentionPass, Tenant
from memories.pipeline import pass_leases

COUNTED = ("turns", "sessions", "episodes", "runs", "audit", "exports")
# The number that says for how many days; 0: for ever.
DAYS = {
    "turns": "keep_turns_days",
    "episodes": "keep_episodes_days",
    "runs": "keep_runs_days",
    "audit": "keep_audit_days",
    "exports": "keep_exports_days",
}
Work = pass_leases.Work[RetentionPass]


def cutoff(rules: conf.Rules, stage: str, *, as_of: datetime) -> datetime | None:
    """What is older than this goes; None: nothing does."""
    days: int = getattr(rules, DAYS[stage])
    return as_of - timedelta(days=days) if days else None


def begin(
    *, tenant: Tenant, trigger: DecayPass.Trigger, as_of: datetime, now: datetime, actor_id: str = ""
) -> RetentionPass:
    """Put a pass down to be worked on. Errors: RetentionRunning, when one is not done yet."""
    row = RetentionPass(tenant=tenant, trigger=trigger, as_of=as_of, started_at=now, actor_id=actor_id)
    return pass_leases.begin(row, counted=COUNTED, running=RetentionRunning)


def claim(row: RetentionPass) -> Work | None:
    """Take the pass for as long as a lease; None when it is done, or somebody else works on it."""
    return pass_leases.claim(RetentionPass.objects.open(), row)


def unfinished() -> list[RetentionPass]:
    """Passes that wait for somebody, those last on which somebody failed."""
    return pass_leases.unfinished(RetentionPass.objects.open())


def reach_stage(work: Work, stage: RetentionPass.Stage) -> None:
    """All before the stage is done. Errors: LeaseLost."""
    work.row.stage, work.reached = stage, None
    pass_leases.keep(work, stage=stage)


def finish(work: Work, *, now: datetime) -> None:
    """The pass is done; what it did is in the audit trail as counts, if it did anything. Errors: LeaseLost."""
    with transaction.atomic():
        pass_leases.end(work, finished_at=now)
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
