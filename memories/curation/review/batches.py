"""Decisions about many review items at once."""

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

from memories.audit import Actor
from memories.curation.batches import BatchStep, carry_out
from memories.curation.review.deciding import Choice, ExpectedVersions
from memories.curation.review.decisions import approve_item, reject_item
from memories.models import Batch, ReviewItem


def approve_items(
    *,
    batch_id: uuid.UUID,
    expected: Mapping[uuid.UUID, ExpectedVersions],
    actor: Actor,
    now: datetime,
    reason: str = "",
) -> Batch:
    """Approve the items with these ids, each as it was `expected`. Errors: as batches.carry_out()."""
    act = partial(approve_item, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb=Choice.APPROVE, steps=_steps(act, expected), actor=actor, now=now)


def reject_items(
    *, batch_id: uuid.UUID, expected: Mapping[uuid.UUID, ExpectedVersions], actor: Actor, now: datetime, reason: str
) -> Batch:
    """Reject the items with these ids, each as it was `expected`. Errors: as batches.carry_out()."""
    act = partial(reject_item, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb=Choice.REJECT, steps=_steps(act, expected), actor=actor, now=now)


def _steps(act: Callable[..., ReviewItem], expected: Mapping[uuid.UUID, ExpectedVersions]) -> list[BatchStep]:
    return [BatchStep(pk, partial(act, item_id=pk, expected=versions)) for pk, versions in expected.items()]
