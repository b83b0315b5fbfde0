"""One verb on many memories: a transaction and a change set for each, and one undo for all of them."""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.reverting import revert
from memories.exceptions import Conflict, InvalidInput, NotFound, PersonRestricted, PreconditionFailed
from memories.models import Batch, ChangeSet, Fact, FactRevision, ReviewItem, Tenant

MOST = 200
# Above this number, the operator confirms by typing how many there are.
TYPED_ABOVE = 25
# Errors that concern one memory alone: the other steps go on.
REFUSALS = (Conflict, NotFound, PersonRestricted, PreconditionFailed)
Memory = ReviewItem | Fact


@dataclass(frozen=True)
class BatchStep:
    """The id of one memory, and the verb on it.

    `act` checks the version that the operator saw, and returns the changed memory, or None if there was nothing to do.
    """

    id: uuid.UUID
    act: Callable[[], Memory | None]


def carry_out(*, batch_id: uuid.UUID, verb: str, steps: Sequence[BatchStep], actor: Actor, now: datetime) -> Batch:
    """Take each step that has not been taken yet; a step that fails is counted, and the others go on.

    The caller makes `batch_id` up before it asks the operator to confirm: a batch that is sent twice, or again after a
    process died halfway, continues where it ended. `counts`: how many were asked for, done and refused.

    Errors: InvalidInput (no step, or more than MOST), Conflict (somebody else's batch, or it is being undone).
    """
    if not 0 < len(steps) <= MOST:
        raise InvalidInput.at("steps", _("Choose between 1 and %(most)d.") % {"most": MOST})
    operator_id = uuid.UUID(actor.id) if actor.is_operator else None
    given = {"operator_id": operator_id, "verb": verb, "counts": {"asked": len(steps)}, "created_at": now}
    begun, _made = Batch.objects.get_or_create(pk=batch_id, defaults=given)
    if (begun.operator_id, begun.verb) != (operator_id, verb):
        raise Conflict(_("This was started as a different action. Select the items again."))
    for step in steps:
        _take(batch_id, step)
    with transaction.atomic():
        batch = _locked(batch_id)
        done = batch.steps.count()
        batch.counts |= {"done": done, "refused": batch.counts["asked"] - done}
        _close(batch, verb, actor=actor, now=now)
    return batch


def undo_batch(*, batch_id: uuid.UUID, actor: Actor, now: datetime) -> Batch:
    """Revert the steps of the batch, the last one first; what somebody changed since stays as it is and is counted.

    A call after a crash continues. `counts`: how many are undone, and how many kept. Errors: NotFound.
    """
    with transaction.atomic():
        batch = _locked(batch_id)
        # Written first: from here on no step of the batch is taken any more.
        batch.undone_at = batch.undone_at or now
        batch.save()
    for step in list(batch.steps.filter(undone_at=None).order_by("-pk").values_list("pk", flat=True)):
        with transaction.atomic():
            _locked(batch_id)
            # Another request may have reverted it at the same time, or its person was erased.
            with suppress(*REFUSALS), transaction.atomic():
                revert(change_set=step, actor=actor, now=now)
    with transaction.atomic():
        batch = _locked(batch_id)
        undone = batch.steps.exclude(undone_at=None).count()
        batch.counts |= {"undone": undone, "kept": batch.steps.count() - undone}
        _close(batch, "undo", actor=actor, now=now)
    return batch


def _take(batch_id: uuid.UUID, step: BatchStep) -> None:
    """Take one step, unless it has been taken already."""
    with transaction.atomic():
        # Before the person and everything else: a batch that is sent twice waits here.
        batch = _locked(batch_id)
        if batch.undone_at:
            raise Conflict(_("Somebody is undoing this at the moment."))
        if batch.steps.filter(Q(item=step.id) | Q(fact=step.id)).exists():
            return
        try:
            with transaction.atomic():
                memory = step.act()
        except REFUSALS:
            return
        if isinstance(memory, Fact):
            revisions = FactRevision.objects.filter(fact=memory, version=memory.version)
            ChangeSet.objects.filter(pk__in=revisions.values("change_set")).update(batch=batch)
        elif memory and memory.change_set:
            ChangeSet.objects.filter(pk=memory.change_set).update(batch=batch)


def _locked(batch_id: uuid.UUID) -> Batch:
    batch = Batch.objects.select_for_update(no_key=True).filter(pk=batch_id).first()
    if batch is None:
        raise NotFound
    return batch


def _close(batch: Batch, verb: str, *, actor: Actor, now: datetime) -> None:
    """Save the counts and write the audit event: of the tenant of all memories, or of none when they are of several."""
    batch.save()
    tenants = Tenant.objects.filter(pk__in=batch.steps.values("tenant"))[:2]
    tenant = tenants[0] if len(tenants) == 1 else None
    audit.record(
        actor=actor, verb=verb, target=batch, object_id=batch.pk, tenant=tenant, now=now, counts=dict(batch.counts)
    )
