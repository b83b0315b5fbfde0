"""Decay passes: how one begins, what it counts, and how it ends."""

from datetime import datetime

from django.db import transaction

from memories import audit
from memories.exceptions import DecayRunning
from memories.models import DecayPass, Tenant
from memories.queue import pass_leases

# The counts that a pass always has. A held one has two more: what it would take, of how many memories.
COUNTED = ("facts", "episodes", "expired", "purged", "refreshed")
State = DecayPass.PassState
Work = pass_leases.ClaimedPass[DecayPass]


def begin(
    *,
    tenant: Tenant,
    trigger: DecayPass.Trigger,
    as_of: datetime,
    now: datetime,
    confirmed: bool = False,
    actor_id: str = "",
) -> DecayPass:
    """Insert a pass for workers to claim. Errors: DecayRunning, when the tenant has an open one."""
    row = DecayPass(tenant=tenant, trigger=trigger, as_of=as_of, confirmed=confirmed, started_at=now, actor_id=actor_id)
    return pass_leases.begin(row, counted=COUNTED, running=DecayRunning)


def claim(row: DecayPass) -> Work | None:
    """Take the pass under a lease; None when it is done, or somebody else holds it."""
    return pass_leases.claim(DecayPass.objects.open(), row)


def unfinished() -> list[DecayPass]:
    """Passes that nobody holds. Those on which a worker died come last."""
    return pass_leases.unfinished(DecayPass.objects.open())


def finish(work: Work, state: DecayPass.PassState, *, now: datetime) -> None:
    """The pass is done, or held by the brake; the audit trail gets its counts. Errors: LeaseLost."""
    # It is the id of a person, who may be erased one day.
    work.reached = None
    with transaction.atomic():
        pass_leases.end(work, state=state, finished_at=now)
        tenant = work.row.tenant
        counts = dict(work.counts)
        verb = "hold" if state == State.HELD else "decay"
        audit.record(
            actor=work.actor, verb=verb, target=work.row, object_id=work.row.pk, tenant=tenant, now=now, counts=counts
        )
