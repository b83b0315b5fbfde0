"""Decay passes: how one begins, what it counts, and how it ends."""

from datetime import datetime

from django.db import transaction
from django.db.models.functions import Now

from memories.exceptions import DecayRunning
from memories.models import DecayPass, Tenant
from memories.queue import leases, nightly

# The counts that a pass always has. A held one has two more: what it would take, of how many memories.
COUNTED = ("facts", "episodes", "expired", "purged", "refreshed")
State = DecayPass.PassState
Work = nightly.ClaimedPass[DecayPass]


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
    return nightly.begin(row, counted=COUNTED, running=DecayRunning)


def claim(row: DecayPass) -> Work | None:
    """Take the pass under a lease; None when it is done, or somebody else holds it."""
    return nightly.claim(DecayPass.objects.open(), row, given_up={"state": State.FAILED, "finished_at": Now()})


def finish(work: Work, state: DecayPass.PassState, *, now: datetime) -> None:
    """The pass is done, or held by the brake; the audit trail gets its counts. Errors: LeaseLost."""
    # It is the id of a person, who may be erased one day.
    work.reached = None
    with transaction.atomic():
        leases.release(work, state=state, finished_at=now)
        nightly.record(work.row, "hold" if state == State.HELD else "decay", dict(work.counts), now=now)
