"""One verb on many memories: a transaction for each, noted with what its undo goes by, and one undo for all of it."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from memories import audit
from memories.audit import Actor
from memories.exceptions import Conflict, InvalidInput, NotFound, PersonRestricted, PreconditionFailed
from memories.models import Batch, BatchEntry, Fact, FactRevision, ReviewItem, Tenant

MOST = 200
# More than these are confirmed by typing how many they are.
TYPED_ABOVE = 25
# What a step may meet that is about its own memory alone: the others go on.
REFUSALS = (Conflict, NotFound, PersonRestricted, PreconditionFailed)
Memory = ReviewItem | Fact


@dataclass(frozen=True)
class Step:
    """The id of one memory, and the verb on it: `act` checks what was seen of it and returns it as it is left, or None
    where there was nothing to do."""

    id: uuid.UUID
    act: Callable[[], Memory | None]


def carry_out(*, batch_id: uuid.UUID, verb: str, steps: Sequence[Step], actor: Actor, now: datetime) -> Batch:
    """Take each step that is still to take; what refuses one memory is counted and stops none of the others.

    The caller makes up `batch_id` before it asks the operator to confirm: sent twice, or again after a process died
    halfway, the same batch goes on where it ended. `counts` tell how many were asked for, done and refused.

    Errors: InvalidInput (no step, or more than MOST), Conflict (somebody else's batch, or it is being undone).
    """
    if not 0 < len(steps) <= MOST:
        raise InvalidInput.at("steps", f"Choose between 1 and {MOST}.")
    _begin(batch_id, verb, asked=len(steps), actor=actor, now=now)
    for step in steps:
        _take(batch_id, step)
    with transaction.atomic():
        batch = _held(batch_id)
        done = batch.entries.count()
        batch.counts |= {"done": done, "refused": batch.counts["asked"] - done}
        _close(batch, verb, actor=actor, now=now)
    return batch


def undo_batch(*, batch_id: uuid.UUID, take_back: Callable[[BatchEntry], object], actor: Actor, now: datetime) -> Batch:
    """Take back what the batch did, the last first; what somebody changed since stays as it is and is counted.

    `take_back` undoes one entry, whose `version` it has to find there. Cut short, it goes on when called again.
    `counts` tell how many are undone, and how many stay. Errors: NotFound.
    """
    with transaction.atomic():
        batch = _held(batch_id)
        # Written first: from here on no step of the batch is taken any more.
        batch.undone_at = batch.undone_at or now
        batch.save()
    for entry_id in list(batch.entries.filter(undone=False).order_by("-pk").values_list("pk", flat=True)):
        _take_back(batch_id, entry_id, take_back)
    with transaction.atomic():
        batch = _held(batch_id)
        undone = batch.entries.filter(undone=True).count()
        batch.counts |= {"undone": undone, "kept": batch.entries.count() - undone}
        _close(batch, "undo", actor=actor, now=now)
    return batch


def _begin(batch_id: uuid.UUID, verb: str, *, asked: int, actor: Actor, now: datetime) -> None:
    operator_id = uuid.UUID(actor.id) if actor.is_operator else None
    given = {"operator_id": operator_id, "verb": verb, "counts": {"asked": asked}, "created_at": now}
    batch, _ = Batch.objects.get_or_create(pk=batch_id, defaults=given)
    if (batch.operator_id, batch.verb) != (operator_id, verb):
        raise Conflict("This was begun as something else: choose again.")


def _take(batch_id: uuid.UUID, step: Step) -> None:
    """One step, unless it was taken already; it is done and noted, or neither."""
    with transaction.atomic():
        # Before the person and everything else: who sends the same batch twice waits here.
        batch = _held(batch_id)
        if batch.undone_at:
            raise Conflict("This is being undone meanwhile.")
        if batch.entries.filter(Q(item=step.id) | Q(fact=step.id)).exists():
            return
        try:
            with transaction.atomic():
                memory = step.act()
        except REFUSALS:
            return
        if memory:
            BatchEntry.objects.create(batch=batch, version=memory.version, **_named(memory))


def _take_back(batch_id: uuid.UUID, entry_id: int, take_back: Callable[[BatchEntry], object]) -> None:
    with transaction.atomic():
        _held(batch_id)
        entry = BatchEntry.objects.filter(pk=entry_id, undone=False).first()
        if entry is None:
            # Undone by whoever pressed the button, too; or its person was erased.
            return
        try:
            with transaction.atomic():
                take_back(entry)
        except REFUSALS:
            return
        BatchEntry.objects.filter(pk=entry_id).update(undone=True)


def _held(batch_id: uuid.UUID) -> Batch:
    batch = Batch.objects.select_for_update(no_key=True).filter(pk=batch_id).first()
    if batch is None:
        raise NotFound
    return batch


def _named(memory: Memory) -> dict[str, object]:
    if isinstance(memory, ReviewItem):
        return {"item": memory, "change_set": memory.change_set}
    revision = FactRevision.objects.filter(fact=memory, version=memory.version)
    return {"fact": memory, "change_set": revision.values_list("change_set", flat=True).first()}


def _close(batch: Batch, verb: str, *, actor: Actor, now: datetime) -> None:
    batch.save()
    tenant = _tenant_of(batch)
    audit.record(
        actor=actor, verb=verb, target=batch, object_id=batch.pk, tenant=tenant, now=now, counts=dict(batch.counts)
    )


def _tenant_of(batch: Batch) -> Tenant | None:
    """The tenant of all its memories; None when they are of several."""
    of_entries = Q(pk__in=batch.entries.values("item__tenant")) | Q(pk__in=batch.entries.values("fact__tenant"))
    tenants = Tenant.objects.filter(of_entries)[:2]
    return tenants[0] if len(tenants) == 1 else None
