"""One verb on many facts, each at the version that the operator saw."""

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial

from memories.audit import Actor
from memories.curation.batches import BatchStep, carry_out
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.keeping import expire_fact, pin_fact
from memories.curation.facts.publishing import promote_fact
from memories.models import Batch, Fact

FactVersions = Mapping[uuid.UUID, int]
Verb = Callable[..., Fact | None]


def forget_facts(*, batch_id: uuid.UUID, expected: FactVersions, actor: Actor, now: datetime, reason: str) -> Batch:
    """Forget the facts with these ids, each at the version that the operator saw. Errors: as batches.carry_out()."""
    act = partial(forget_fact, tenant=None, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb="forget", steps=_steps(act, expected), actor=actor, now=now)


def pin_facts(*, batch_id: uuid.UUID, expected: FactVersions, actor: Actor, now: datetime, reason: str = "") -> Batch:
    """Pin the facts with these ids. Errors: as batches.carry_out()."""
    act = partial(pin_fact, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb="pin", steps=_steps(act, expected), actor=actor, now=now)


def promote_facts(
    *, batch_id: uuid.UUID, expected: FactVersions, actor: Actor, now: datetime, reason: str = ""
) -> Batch:
    """Make agents' facts with these ids their people's own. Errors: as batches.carry_out()."""
    act = partial(promote_fact, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb="promote", steps=_steps(act, expected), actor=actor, now=now)


def expire_facts(
    *, batch_id: uuid.UUID, expected: FactVersions, expires_at: datetime, actor: Actor, now: datetime, reason: str = ""
) -> Batch:
    """Let the facts with these ids expire at this moment. Errors: as batches.carry_out()."""
    act = partial(expire_fact, expires_at=expires_at, actor=actor, now=now, reason=reason)
    return carry_out(batch_id=batch_id, verb="expire", steps=_steps(act, expected), actor=actor, now=now)


def _steps(act: Verb, expected: FactVersions) -> list[BatchStep]:
    return [BatchStep(pk, partial(act, fact_id=pk, expected_version=version)) for pk, version in expected.items()]
