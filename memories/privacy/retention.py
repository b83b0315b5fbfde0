"""Retention: a pass each night deletes data that a tenant keeps for so many days and no longer.

The pass is idempotent and resumable: the age of each row decides, and an unfinished pass continues where it was. People
under restriction, and people whose case is on legal hold, are passed over.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django_q.tasks import async_task

from memories import audit, conf
from memories.audit import Actor
from memories.exceptions import RetentionRunning
from memories.models import DecayPass, RetentionPass, Tenant
from memories.privacy.expiry import passes, records, store_items, turns
from memories.privacy.expiry.passes import DAYS, Work
from memories.queue import leases, nightly
from memories.queue.nightly import due_day

TASK = "memories.tasks.retain"
Stage = RetentionPass.Stage


def preview(tenant: Tenant, now: datetime) -> dict[str, int]:
    """What a pass would delete at `now`: turns, sessions that are empty already, episodes, runs, audit events, exports,
    logged contexts, items of the store, memories of plain kinds.

    `waiting`: turns that are old enough and stay, as they are not extracted yet or still in an open window.
    """
    rules = conf.rules(tenant)
    cutoffs = {stage: passes.cutoff(rules, stage, as_of=now) for stage in DAYS}
    counts = dict.fromkeys((*passes.COUNTED, "waiting"), 0)
    if at := cutoffs["turns"]:
        old = turns.turns(tenant, at)
        counts["turns"] = old.filter(number__lte=F("deletable")).count()
        counts["waiting"] = old.filter(number__gt=F("deletable")).count()
        counts["sessions"] = turns.empty(tenant, at).count()
    if at := cutoffs["audit"]:
        counts["audit"] = sum(seal.count for seal in records.prunable(tenant.pk, at))
    if at := cutoffs["exports"]:
        counts["exports"] = records.exports(tenant, at, as_of=now).count()
    for stage, rows in _OLD.items():
        if at := cutoffs[stage]:
            counts[stage] = rows(tenant, at).count()
    return counts


def retain(*, tenant: Tenant, now: datetime, as_of: datetime | None = None) -> RetentionPass:
    """Run a pass in this process, after an unfinished one; it deletes what is too old at `as_of` (default: now).

    Errors: RetentionRunning, LeaseLost.
    """
    for left in RetentionPass.objects.open().free().filter(tenant=tenant):
        if work := passes.claim(left):
            _work(work, now=now)
    row = passes.begin(tenant=tenant, trigger=DecayPass.Trigger.COMMAND, as_of=as_of or now, now=now)
    work = passes.claim(row)
    if work is None:
        # A worker was quicker.
        raise RetentionRunning
    _work(work, now=now)
    row.refresh_from_db()
    return row


def run(*, tenant: Tenant, actor: Actor, now: datetime) -> RetentionPass:
    """Have a worker run a pass for an operator; audited. Errors: RetentionRunning."""
    with transaction.atomic():
        trigger = DecayPass.Trigger.OPERATOR
        row = passes.begin(tenant=tenant, trigger=trigger, as_of=now, now=now, actor_id=actor.id)
        audit.record(actor=actor, verb="run", target=row, object_id=row.pk, tenant=tenant, now=now)
        enqueue()
    return row


def begin_due(*, now: datetime) -> int:
    """Create a pass for each tenant whose night has come and whose pass of forgetting is over; how many.

    A second call does nothing.
    """
    forgetting = DecayPass.objects.open().values("tenant")
    return sum(_begin(tenant, now=now) for tenant in Tenant.objects.exclude(pk__in=forgetting))


def run_slice(*, now: datetime, seconds: float) -> bool:
    """Work on passes without a lease for about so long; True when more is left to do. Errors: LeaseLost."""
    return nightly.run_slice(RetentionPass.objects.open(), passes.claim, partial(_work, now=now), seconds=seconds)


def enqueue() -> None:
    """Queue the task that looks for passes, in the transaction that begins one."""
    async_task(TASK)


def _begin(tenant: Tenant, *, now: datetime) -> bool:
    hour = conf.rules(tenant).nightly_hour
    day = due_day(now=now, time_zone=tenant.time_zone, hour=hour, last=tenant.retained_on)
    if day is None or tenant.decayed_on is None or tenant.decayed_on < day:
        return False
    unlooked = Tenant.objects.filter(Q(retained_on=None) | Q(retained_on__lt=day), pk=tenant.pk)
    try:
        with transaction.atomic():
            if not unlooked.update(retained_on=day):
                return False
            if not any(preview(tenant, now)[name] for name in passes.COUNTED):
                return False
            passes.begin(tenant=tenant, trigger=DecayPass.Trigger.SCHEDULE, as_of=now, now=now)
    except RetentionRunning:
        # `retained_on` was rolled back: the next look tries again.
        return False
    return True


def _work(work: Work, until: float | None = None, *, now: datetime) -> bool:
    """True when the pass is over; False when the time is, and the rest is left to the next claim."""
    for _ in _steps(work, now=now):
        if until is not None and time.monotonic() > until:
            leases.release(work)
            return False
    passes.finish(work, now=now)
    return True


def _steps(work: Work, *, now: datetime) -> Iterator[None]:
    """The rest of the pass; each step is a short transaction."""
    stages = list(Stage)
    for stage in stages[stages.index(Stage(work.row.stage)) :]:
        if stage != work.row.stage:
            passes.enter_stage(work, stage)
        cutoff = passes.cutoff(work.rules, stage, as_of=work.row.as_of)
        if cutoff is not None:
            is_audit = stage == Stage.AUDIT
            yield from records.delete_audit(work, cutoff, now=now) if is_audit else _DELETE[stage](work, cutoff)


# What goes by its age alone.
_OLD: Mapping[str, Callable[[Tenant, datetime], QuerySet[Any]]] = {
    Stage.EPISODES: records.episodes,
    Stage.RUNS: records.runs,
    Stage.CONTEXTS: records.contexts,
    Stage.STORE: store_items.older,
    Stage.TRAJECTORIES: records.trajectories,
    **{kind.plural: partial(records.plain, kind) for kind in passes.LIMITED},
}
_DELETE: Mapping[str, Callable[[Work, datetime], Iterator[None]]] = {
    Stage.TURNS: turns.delete,
    Stage.EPISODES: records.delete_episodes,
    Stage.RUNS: records.delete_runs,
    Stage.EXPORTS: records.expire_exports,
    Stage.CONTEXTS: records.delete_contexts,
    Stage.STORE: store_items.delete,
    Stage.TRAJECTORIES: records.delete_trajectories,
    **{kind.plural: partial(records.delete_plain, kind) for kind in passes.LIMITED},
}
