"""Passes of forgetting: how one begins, what it counts, and how it ends."""

from datetime import datetime

from django.db import transaction

from memories import audit
from memories.exceptions import DecayRunning
from memories.models import DecayPass, Tenant
from memories.pipeline import pass_leases

# What the counts of a pass always name; one that is held names, besides, what it would take of how many.
COUNTED = ("facts", "episodes", "expired", "purged", "refreshed")
State = DecayPass.State
Work = pass_leases.Work[DecayPass]


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
    row = DecayPass(tenant=tenant, trigger=trigger, as_of=as_of, confirmed=confirmed, started_at=now, actor_id=actor_id)
    return pass_leases.begin(row, counted=COUNTED, running=DecayRunning)


def claim(row: DecayPass) -> Work | None:
    """Take the pass for as long as a lease; None when it is done, or somebody else works on it."""
    return pass_leases.claim(DecayPass.objects.open(), row)


def unfinished() -> list[DecayPass]:
    """Passes that wait for somebody, those last on which somebody failed."""
    return pass_leases.unfinished(DecayPass.objects.open())


def finish(work: Work, state: DecayPass.State, *, now: datetime) -> None:
    """The pass is done, or held by the brake; what it did is in the audit trail as counts. Errors: LeaseLost."""
    # The id of a person, who may be erased one day.
    work.reached = None
    with transaction.atomic():
        pass_leases.end(work, state=state, finished_at=now)
        tenant = work.row.tenant
        counts = dict(work.counts)
        verb = "hold" if state == State.HELD else "decay"
        audit.record(
            actor=work.actor, verb=verb, target=work.row, object_id=work.row.pk, tenant=tenant, now=now, counts=counts
        )
