"""One verb on many facts, each at the version that the operator saw, and one undo for all of them."""

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

from memories import audit
from memories.audit import Actor
from memories.curation.batches import BatchStep, carry_out, undo_batch
from memories.curation.change_sets import ChangeSet
from memories.curation.facts.changing import check_allowed, locked_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.keeping import expire_fact, pin_fact
from memories.curation.facts.merging import check_no_rival
from memories.curation.review import item_states
from memories.exceptions import Conflict
from memories.models import Batch, BatchEntry, Fact, FactRefusal, FactRevision, ReviewItem

Seen = Mapping[uuid.UUID, int]
Verb = Callable[..., Fact | None]


def forget_facts(*, batch_id: uuid.UUID, seen: Seen, actor: Actor, now: datetime, reason: str) -> Batch:
    """Forget the facts with these ids, each at the version that the operator saw. Errors: as batches.carry_out()."""
    act = partial(forget_fact, tenant=None, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb="forget", steps=_steps(act, seen), actor=actor, now=now)


def pin_facts(*, batch_id: uuid.UUID, seen: Seen, actor: Actor, now: datetime, reason: str = "") -> Batch:
    """Pin the facts with these ids. Errors: as batches.carry_out()."""
    act = partial(pin_fact, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb="pin", steps=_steps(act, seen), actor=actor, now=now)


def expire_facts(
    *, batch_id: uuid.UUID, seen: Seen, expires_at: datetime, actor: Actor, now: datetime, reason: str = ""
) -> Batch:
    """Let the facts with these ids expire at this moment. Errors: as batches.carry_out()."""
    act = partial(expire_fact, expires_at=expires_at, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb="expire", steps=_steps(act, seen), actor=actor, now=now)


def undo_facts(*, batch_id: uuid.UUID, actor: Actor, now: datetime) -> Batch:
    """Undo a batch on facts, except those that somebody has changed since. Errors: NotFound."""
    return undo_batch(
        batch_id=batch_id,
        take_back=lambda entry: _undo(entry, ChangeSet(actor=actor, now=now)),
        actor=actor,
        now=now,
    )


def _steps(act: Verb, seen: Seen) -> list[BatchStep]:
    return [BatchStep(pk, partial(act, fact_id=pk, expected_version=version)) for pk, version in seen.items()]


def _undo(entry: BatchEntry, changes: ChangeSet) -> None:
    """Put the fact back to what it was before this step, lift what the step refused, reopen what it answered."""
    if entry.fact_id is None or entry.change_set is None:
        raise Conflict
    fact = locked_fact(entry.fact_id, None)
    check_allowed(fact, actor=changes.actor, expected_version=entry.version)
    done = FactRevision.objects.filter(fact=fact, change_set=entry.change_set).first()
    if done is None:
        raise Conflict
    with changes.changing(fact, "undo"):
        audit.put_back(fact, done.before)
    item_states.follow(fact, since=done.version - 1)
    check_no_rival([fact], now=changes.now)
    # A refusal from before the step has another moment; the step took none away.
    FactRefusal.objects.filter(fact=fact, created_at=done.created_at).delete()
    answered = ReviewItem.objects.filter(change_set=entry.change_set).select_for_update(of=("self",))
    item_states.reopen(answered.order_by("pk"))
    item_states.settle(changes)
    audit.record(actor=changes.actor, verb="undo", target=fact, object_id=fact.pk, tenant=fact.tenant, now=changes.now)
