"""Decay passes: operators start one now, or confirm one that the brake holds."""

import uuid
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.exceptions import Conflict, NotFound
from memories.forgetting import decay, decay_passes
from memories.models import DecayPass, Tenant


def run_decay(*, tenant: Tenant, actor: Actor, now: datetime) -> DecayPass:
    """Have a worker run a pass for the tenant now, with its brake. Errors: DecayRunning."""
    return _begin(tenant, "run", actor=actor, as_of=now, now=now)


def confirm_decay(*, pass_id: uuid.UUID, actor: Actor, now: datetime) -> DecayPass:
    """Have a worker trash what the held pass would have trashed, except what was confirmed or recalled since.

    The new pass judges by the same moment, so it trashes nothing that the operator did not see counted. Errors:
    NotFound; Conflict, when it is not held, or not the tenant's newest any more; DecayRunning.
    """
    held = DecayPass.objects.select_related("tenant").filter(pk=pass_id).first()
    if held is None:
        raise NotFound
    if not is_confirmable(held):
        raise Conflict(_("You can confirm only the newest pass of a tenant, and only while it waits for confirmation."))
    return _begin(held.tenant, "confirm", actor=actor, as_of=held.as_of, now=now, confirmed=True)


def is_confirmable(row: DecayPass) -> bool:
    """Whether the pass is held, and the newest of its tenant."""
    newest = DecayPass.objects.filter(tenant=row.tenant_id).first()
    return row.state == DecayPass.PassState.HELD and newest is not None and newest.pk == row.pk


def _begin(
    tenant: Tenant, verb: str, *, actor: Actor, as_of: datetime, now: datetime, confirmed: bool = False
) -> DecayPass:
    with transaction.atomic():
        row = decay_passes.begin(
            tenant=tenant,
            trigger=DecayPass.Trigger.OPERATOR,
            as_of=as_of,
            now=now,
            confirmed=confirmed,
            actor_id=actor.id,
        )
        audit.record(actor=actor, verb=verb, target=row, object_id=row.pk, tenant=tenant, now=now)
        # In the row's transaction; if the task gets lost, the next sweep finds the row.
        decay.enqueue()
    return row
