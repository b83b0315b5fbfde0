"""One verb on many facts, each as it was seen, and the one undo of all of it."""

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

from memories import audit
from memories.audit import Actor
from memories.curation import item_states
from memories.curation.batches import Step, carry_out, undo_batch
from memories.curation.change_sets import ChangeSet
from memories.curation.fact_changes import check_allowed, locked
from memories.curation.facts import forget_fact
from memories.curation.keeping import expire_fact, pin_fact
from memories.curation.merging_facts import check_no_rival
from memories.exceptions import Conflict
from memories.models import Batch, BatchEntry, Fact, FactRefusal, FactRevision, ReviewItem

Seen = Mapping[uuid.UUID, int]
Verb = Callable[..., Fact | None]


def forget_facts(*, batch_id: uuid.UUID, seen: Seen, actor: Actor, now: datetime, reason: str) -> Batch:
    """Forget the facts with these ids, each at the version that was seen. Errors: as batches.carry_out()."""
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
    """Take a batch on facts back, but for those that somebody changed since. Errors: NotFound."""

    def take_back(entry: BatchEntry) -> None:
        _undo(entry, ChangeSet(actor=actor, now=now))

    return undo_batch(batch_id=batch_id, take_back=take_back, actor=actor, now=now)


def _steps(act: Verb, seen: Seen) -> list[Step]:
    return [Step(pk, partial(act, fact_id=pk, expected_version=version)) for pk, version in seen.items()]


def _undo(entry: BatchEntry, changes: ChangeSet) -> None:
    """The fact is what it was before this step, what the step refused may be said again, and what it answered waits."""
    if entry.fact_id is None or entry.change_set is None:
        raise Conflict
    fact = locked(entry.fact_id, None)
    check_allowed(fact, actor=changes.actor, expected_version=entry.version)
    done = FactRevision.objects.filter(fact=fact, change_set=entry.change_set).first()
    if done is None:
        raise Conflict
    with changes.changing(fact, "undo"):
        audit.put_back(fact, done.before)
    item_states.follow(fact, since=done.version - 1)
    check_no_rival([fact], now=changes.now)
    # A refusal that stood before is of another moment; the step took none away.
    FactRefusal.objects.filter(fact=fact, created_at=done.created_at).delete()
    answered = ReviewItem.objects.filter(change_set=entry.change_set).select_for_update(of=("self",))
    item_states.reopen(answered.order_by("pk"))
    item_states.settle(changes)
    audit.record(actor=changes.actor, verb="undo", target=fact, object_id=fact.pk, tenant=fact.tenant, now=changes.now)
