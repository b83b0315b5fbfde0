"""Retention: what a tenant keeps for so many days and no longer is deleted for good, by a pass each night.

Twice, late or interrupted it ends the same: what goes depends on each row's own age, and a pass that nobody finished is
taken up where it was. People under restriction and people whose case is on legal hold are passed over.
"""

import time
from collections.abc import Iterator
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q
from django_q.tasks import async_task

from memories import audit, conf
from memories.audit import Actor
from memories.exceptions import RetentionRunning
from memories.models import DecayPass, RetentionPass, Tenant
from memories.pipeline import pass_leases
from memories.pipeline.nightly import due_day
from memories.privacy.expiry import expiring_rows, expiring_talk, pruning, retention_passes
from memories.privacy.expiry.retention_passes import DAYS, Work

TASK = "memories.tasks.retain"
Stage = RetentionPass.Stage


def preview(tenant: Tenant, now: datetime) -> dict[str, int]:
    """What a pass would delete at `now`: turns, sessions that are empty already, episodes, runs, audit events, exports.

    `waiting`: turns that are old enough and stay, as they are not extracted yet or still in an open window.
    """
    rules = conf.rules(tenant)
    cutoffs = {stage: retention_passes.cutoff(rules, stage, as_of=now) for stage in DAYS}
    counts = dict.fromkeys((*retention_passes.COUNTED, "waiting"), 0)
    if at := cutoffs["turns"]:
        old = expiring_talk.turns(tenant, at)
        counts["turns"] = old.filter(number__lte=F("reach")).count()
        counts["waiting"] = old.filter(number__gt=F("reach")).count()
        counts["sessions"] = expiring_talk.empty(tenant, at).count()
    if at := cutoffs["episodes"]:
        counts["episodes"] = expiring_rows.episodes(tenant, at).count()
    if at := cutoffs["runs"]:
        counts["runs"] = expiring_rows.runs(tenant, at).count()
    if at := cutoffs["audit"]:
        counts["audit"] = pruning.count(tenant.pk, at)
    if at := cutoffs["exports"]:
        counts["exports"] = expiring_rows.exports(tenant, at, as_of=now).count()
    return counts


def retain(*, tenant: Tenant, now: datetime, as_of: datetime | None = None) -> RetentionPass:
    """Carry out a pass in this process, after what another left unfinished: what is over at `as_of` (default: now).

    Errors: RetentionRunning, LeaseLost.
    """
    left = RetentionPass.objects.free().filter(tenant=tenant).first()
    if left:
        _carry_out(left, now=now)
    row = retention_passes.begin(tenant=tenant, trigger=DecayPass.Trigger.COMMAND, as_of=as_of or now, now=now)
    _carry_out(row, now=now)
    row.refresh_from_db()
    return row


def run(*, tenant: Tenant, actor: Actor, now: datetime) -> RetentionPass:
    """Have a worker carry out a pass, as an operator wants it; audited. Errors: RetentionRunning."""
    with transaction.atomic():
        trigger = DecayPass.Trigger.OPERATOR
        row = retention_passes.begin(tenant=tenant, trigger=trigger, as_of=now, now=now, actor_id=actor.id)
        audit.record(actor=actor, verb="run", target=row, object_id=row.pk, tenant=tenant, now=now)
        wake()
    return row


def begin_due(*, now: datetime) -> int:
    """Put down a pass for each tenant whose night has come and whose pass of forgetting is over; how many.

    Another one who does the same does nothing.
    """
    forgetting = DecayPass.objects.open().values("tenant")
    return sum(_begin(tenant, now=now) for tenant in Tenant.objects.exclude(pk__in=forgetting))


def work_on(*, now: datetime, seconds: float) -> bool:
    """Carry passes on that nobody works on, for about so long; True when more is left to do. Errors: LeaseLost."""
    until = time.monotonic() + seconds
    for row in retention_passes.unfinished():
        work = retention_passes.claim(row)
        if work and not _work(work, now=now, until=until):
            return True
    return False


def wake() -> None:
    """Have a worker look for passes at once; inside the transaction that begins one."""
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
            if not any(preview(tenant, now)[name] for name in retention_passes.COUNTED):
                return False
            retention_passes.begin(tenant=tenant, trigger=DecayPass.Trigger.SCHEDULE, as_of=now, now=now)
    except RetentionRunning:
        # The day is not had: the next look tries again.
        return False
    return True


def _carry_out(row: RetentionPass, *, now: datetime) -> None:
    work = retention_passes.claim(row)
    if work is None:
        # A worker was quicker.
        raise RetentionRunning
    _work(work, now=now)


def _work(work: Work, *, now: datetime, until: float | None = None) -> bool:
    """True when the pass is over; False when the time was, and the rest is left to whoever claims it."""
    for _ in _steps(work, now=now):
        if until is not None and time.monotonic() > until:
            pass_leases.release(work)
            return False
    retention_passes.finish(work, now=now)
    return True


def _steps(work: Work, *, now: datetime) -> Iterator[None]:
    """What is left of the pass, a short transaction a step."""
    stages = list(Stage)
    for stage in stages[stages.index(Stage(work.row.stage)) :]:
        if stage != work.row.stage:
            retention_passes.reach_stage(work, stage)
        cutoff = retention_passes.cutoff(work.rules, stage, as_of=work.row.as_of)
        if cutoff is not None:
            yield from _stage(work, stage, cutoff, now)


def _stage(work: Work, stage: Stage, cutoff: datetime, now: datetime) -> Iterator[None]:
    if stage == Stage.TURNS:
        return expiring_talk.delete(work, cutoff)
    if stage == Stage.EPISODES:
        return expiring_rows.delete_episodes(work, cutoff)
    if stage == Stage.RUNS:
        return expiring_rows.delete_runs(work, cutoff)
    if stage == Stage.AUDIT:
        return pruning.delete(work, cutoff, now=now)
    return expiring_rows.expire_exports(work, cutoff)
