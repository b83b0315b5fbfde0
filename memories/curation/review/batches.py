"""Decisions about many review items at once, and their one undo."""

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

from memories.audit import Actor
from memories.curation.batches import BatchStep, carry_out, undo_batch
from memories.curation.review.deciding import Choice, Seen
from memories.curation.review.decisions import approve_item, reject_item
from memories.curation.review.undo import undo_decision
from memories.exceptions import Conflict
from memories.models import Batch, BatchEntry, ReviewItem


def approve_items(
    *, batch_id: uuid.UUID, seen: Mapping[uuid.UUID, Seen], actor: Actor, now: datetime, reason: str = ""
) -> Batch:
    """Approve the items with these ids, each as it was `seen`. Errors: as batches.carry_out()."""
    act = partial(approve_item, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb=Choice.APPROVE, steps=_steps(act, seen), actor=actor, now=now)


def reject_items(
    *, batch_id: uuid.UUID, seen: Mapping[uuid.UUID, Seen], actor: Actor, now: datetime, reason: str
) -> Batch:
    """Reject the items with these ids, each as it was `seen`. Errors: as batches.carry_out()."""
    act = partial(reject_item, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb=Choice.REJECT, steps=_steps(act, seen), actor=actor, now=now)


def _steps(act: Callable[..., ReviewItem], seen: Mapping[uuid.UUID, Seen]) -> list[BatchStep]:
    return [BatchStep(pk, partial(act, item_id=pk, seen=versions)) for pk, versions in seen.items()]


def undo_items(*, batch_id: uuid.UUID, actor: Actor, now: datetime) -> Batch:
    """Undo a batch of decisions, except those whose memories somebody has changed since. Errors: NotFound."""

    def take_back(entry: BatchEntry) -> ReviewItem:
        if entry.item_id is None:
            raise Conflict
        return undo_decision(item_id=entry.item_id, expected_version=entry.version, actor=actor, now=now)

    return undo_batch(batch_id=batch_id, take_back=take_back, actor=actor, now=now)
