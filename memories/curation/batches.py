"""One verb on many memories: a transaction and a batch entry for each, and one undo for all of them."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.exceptions import Conflict, InvalidInput, NotFound, PersonRestricted, PreconditionFailed
from memories.models import Batch, BatchEntry, Fact, FactRevision, ReviewItem, Tenant

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
    """Take each step that has no entry yet; a step that fails is counted, and the others go on.

    The caller makes `batch_id` up before it asks the operator to confirm: a batch that is sent twice, or again after a
    process died halfway, continues where it ended. `counts`: how many were asked for, done and refused.

    Errors: InvalidInput (no step, or more than MOST), Conflict (somebody else's batch, or it is being undone).
    """
    if not 0 < len(steps) <= MOST:
        raise InvalidInput.at("steps", _("Choose between 1 and %(most)d.") % {"most": MOST})
    _begin(batch_id, verb, asked=len(steps), actor=actor, now=now)
    for step in steps:
        _take(batch_id, step)
    with transaction.atomic():
        batch = _locked(batch_id)
        done = batch.entries.count()
        batch.counts |= {"done": done, "refused": batch.counts["asked"] - done}
        _close(batch, verb, actor=actor, now=now)
    return batch


def undo_batch(*, batch_id: uuid.UUID, take_back: Callable[[BatchEntry], object], actor: Actor, now: datetime) -> Batch:
    """Undo what the batch did, the last entry first; what somebody changed since stays as it is and is counted.

    `take_back` undoes one entry, if the memory still has the entry's `version`. A call after a crash continues.
    `counts`: how many are undone, and how many kept. Errors: NotFound.
    """
    with transaction.atomic():
        batch = _locked(batch_id)
        # Written first: from here on no step of the batch is taken any more.
        batch.undone_at = batch.undone_at or now
        batch.save()
    for entry_id in list(batch.entries.filter(undone=False).order_by("-pk").values_list("pk", flat=True)):
        _take_back(batch_id, entry_id, take_back)
    with transaction.atomic():
        batch = _locked(batch_id)
        undone = batch.entries.filter(undone=True).count()
        batch.counts |= {"undone": undone, "kept": batch.entries.count() - undone}
        _close(batch, "undo", actor=actor, now=now)
    return batch


def _begin(batch_id: uuid.UUID, verb: str, *, asked: int, actor: Actor, now: datetime) -> None:
    operator_id = uuid.UUID(actor.id) if actor.is_operator else None
    given = {"operator_id": operator_id, "verb": verb, "counts": {"asked": asked}, "created_at": now}
    batch, _made = Batch.objects.get_or_create(pk=batch_id, defaults=given)
    if (batch.operator_id, batch.verb) != (operator_id, verb):
        raise Conflict(_("This was begun as something else: choose again."))


def _take(batch_id: uuid.UUID, step: BatchStep) -> None:
    """Take one step with its entry, unless it has one already."""
    with transaction.atomic():
        # Before the person and everything else: a batch that is sent twice waits here.
        batch = _locked(batch_id)
        if batch.undone_at:
            raise Conflict(_("This is being undone meanwhile."))
        if batch.entries.filter(Q(item=step.id) | Q(fact=step.id)).exists():
            return
        try:
            with transaction.atomic():
                memory = step.act()
        except REFUSALS:
            return
        if isinstance(memory, ReviewItem):
            batch.entries.create(version=memory.version, item=memory, change_set=memory.change_set)
        elif memory:
            revision = FactRevision.objects.filter(fact=memory, version=memory.version)
            change_set = revision.values_list("change_set", flat=True).first()
            batch.entries.create(version=memory.version, fact=memory, change_set=change_set)


def _take_back(batch_id: uuid.UUID, entry_id: int, take_back: Callable[[BatchEntry], object]) -> None:
    with transaction.atomic():
        _locked(batch_id)
        entry = BatchEntry.objects.filter(pk=entry_id, undone=False).first()
        if entry is None:
            # Another request undid it at the same time, or its person was erased.
            return
        try:
            with transaction.atomic():
                take_back(entry)
        except REFUSALS:
            return
        BatchEntry.objects.filter(pk=entry_id).update(undone=True)


def _locked(batch_id: uuid.UUID) -> Batch:
    batch = Batch.objects.select_for_update(no_key=True).filter(pk=batch_id).first()
    if batch is None:
        raise NotFound
    return batch


def _close(batch: Batch, verb: str, *, actor: Actor, now: datetime) -> None:
    """Save the counts and write the audit event: of the tenant of all memories, or of none when they are of several."""
    batch.save()
    of_entries = Q(pk__in=batch.entries.values("item__tenant")) | Q(pk__in=batch.entries.values("fact__tenant"))
    tenants = Tenant.objects.filter(of_entries)[:2]
    tenant = tenants[0] if len(tenants) == 1 else None
    audit.record(
        actor=actor, verb=verb, target=batch, object_id=batch.pk, tenant=tenant, now=now, counts=dict(batch.counts)
    )
