"""Forgetting: a pass takes what has faded or expired, empties the trash and keeps the stored scores true.

Twice, late or interrupted it ends the same: what goes depends on each memory's own date, and a pass that nobody
finished is taken up where it was. Nothing is due of people under restriction.
"""

import time
import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django_q.tasks import async_task

from memories import conf
from memories.exceptions import DecayRunning
from memories.models import DecayPass, Episode, EpisodeStatus, Fact, Status, Tenant
from memories.pipeline import decay_passes, fading, forgetting, pass_leases, upkeep_passes
from memories.pipeline.decay_passes import State, Work
from memories.pipeline.forgetting import EXPIRED, FADED, PURGED
from memories.pipeline.nightly import due_day
from memories.scoring.decay import is_too_much

EXAMPLES = 25
FORGET_TASK = "memories.tasks.forget"
REPLAN_TASK = "memories.tasks.replan_decay"


@dataclass(frozen=True)
class Preview:
    """What a pass would take at `as_of`: counts by lot, of how many memories, the first that go; is_held: the brake
    would stop it until somebody confirms."""

    as_of: datetime
    counts: dict[str, int]
    memories: int
    is_held: bool
    facts: list[uuid.UUID]
    episodes: list[uuid.UUID]

    @property
    def takes(self) -> int:
        return self.counts["facts"] + self.counts["episodes"]


def forget(
    *, tenant: Tenant, now: datetime, trigger: DecayPass.Trigger, as_of: datetime | None = None, confirm: bool = False
) -> DecayPass:
    """Carry out a pass in this process, after what another left unfinished: what is due at `as_of` (default: now).

    A pass that would take more than the brake allows takes only what has expired and ends HELD, unless confirmed.
    Errors: DecayRunning, LeaseLost.
    """
    left = DecayPass.objects.free().filter(tenant=tenant).first()
    if left:
        _carry_out(left, now=now)
    row = decay_passes.begin(tenant=tenant, trigger=trigger, as_of=as_of or now, now=now, confirmed=confirm)
    _carry_out(row, now=now)
    row.refresh_from_db()
    return row


def preview(tenant: Tenant, now: datetime, *, limit: int = EXAMPLES) -> Preview:
    """What the next pass takes, as it is now; `limit` ids of faded facts and episodes, what goes first first."""
    lots = [*EXPIRED, *FADED]
    counts = dict.fromkeys((lot.counted for lot in lots), 0)
    for lot in lots:
        counts[lot.counted] += forgetting.due(lot, tenant, as_of=now).count()
    facts, episodes = (
        list(forgetting.due(lot, tenant, as_of=now).order_by(lot.moment, "pk").values_list("pk", flat=True)[:limit])
        for lot in FADED
    )
    memories, is_held = _brake(tenant, conf.rules(tenant), takes=counts["facts"] + counts["episodes"])
    return Preview(now, counts, memories, is_held, facts, episodes)


def begin_due(*, now: datetime) -> int:
    """Put down a pass for each tenant whose night has come; how many. Another one who does the same does nothing."""
    return sum(_begin(tenant, now=now) for tenant in Tenant.objects.all())


def work_on(*, now: datetime, seconds: float) -> bool:
    """Carry passes on that nobody works on, for about so long; True when more is left to do. Errors: LeaseLost."""
    until = time.monotonic() + seconds
    for row in decay_passes.unfinished():
        work = decay_passes.claim(row)
        if work and not _work(work, now=now, until=until):
            return True
    return False


def wake() -> None:
    """Have a worker look for passes at once; inside the transaction that begins one."""
    async_task(FORGET_TASK)


def replan(*, tenant_id: uuid.UUID) -> None:
    """Have a worker plan anew when the tenant's memories fade, after its numbers changed; inside that transaction."""
    async_task(REPLAN_TASK, str(tenant_id))


def refresh(*, tenant: Tenant, now: datetime, reached: uuid.UUID | None, seconds: float) -> uuid.UUID | None:
    """Plan anew for about so long, after this person; the person to go on after, or None when all is done."""
    until = time.monotonic() + seconds
    rules = conf.rules(tenant)
    while people := fading.people_after(tenant, reached):
        fading.refresh(people, rules=rules, now=now)
        reached = people[-1]
        if time.monotonic() > until:
            return reached
    return None


def _begin(tenant: Tenant, *, now: datetime) -> bool:
    hour = conf.rules(tenant).nightly_hour
    day = due_day(now=now, time_zone=tenant.time_zone, hour=hour, last=tenant.decayed_on)
    if day is None:
        return False
    unpassed = Tenant.objects.filter(Q(decayed_on=None) | Q(decayed_on__lt=day), pk=tenant.pk)
    try:
        with transaction.atomic():
            if not unpassed.update(decayed_on=day):
                return False
            decay_passes.begin(tenant=tenant, trigger=DecayPass.Trigger.SCHEDULE, as_of=now, now=now)
    except DecayRunning:
        # The day is not had: the next look tries again.
        return False
    return True


def _carry_out(row: DecayPass, *, now: datetime) -> None:
    work = decay_passes.claim(row)
    if work is None:
        # A worker was quicker.
        raise DecayRunning
    _work(work, now=now)


def _work(work: Work, *, now: datetime, until: float | None = None) -> bool:
    """True when the pass is over; False when the time was, and the rest is left to whoever claims it."""
    steps = _steps(work, now=now)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            with transaction.atomic():
                decay_passes.finish(work, end.value, now=now)
                upkeep_passes.follow(work, end.value)
            return True
        if until is not None and time.monotonic() > until:
            pass_leases.release(work)
            return False


def _steps(work: Work, *, now: datetime) -> Generator[None, None, DecayPass.State]:
    """One pass, a short transaction a step; returns how it ended."""
    # First, so that what goes is what has faded by the numbers of today.
    yield from _refresh(work)
    for lot in EXPIRED:
        yield from forgetting.trash(work, lot, now=now)
    state = State.DONE if work.row.confirmed or not _is_held(work) else State.HELD
    for lot in FADED if state == State.DONE else ():
        yield from forgetting.trash(work, lot, now=now)
    for lot in PURGED:
        yield from forgetting.purge(work, lot)
    return state


def _refresh(work: Work) -> Iterator[None]:
    while people := fading.people_after(work.row.tenant, work.reached):
        work.counts["refreshed"] += fading.refresh(people, rules=work.rules, now=work.row.as_of)
        work.reached = people[-1]
        pass_leases.keep(work)
        yield


def _is_held(work: Work) -> bool:
    tenant = work.row.tenant
    takes = sum(forgetting.due(lot, tenant, as_of=work.row.as_of).count() for lot in FADED)
    memories, is_held = _brake(tenant, work.rules, takes=takes)
    if is_held:
        work.counts["held"], work.counts["memories"] = takes, memories
    return is_held


def _brake(tenant: Tenant, rules: conf.Rules, *, takes: int) -> tuple[int, bool]:
    """How many memories the tenant has, and whether taking so many of them is to be confirmed."""
    facts = Fact.objects.filter(tenant=tenant, status=Status.ACTIVE).count()
    memories = facts + Episode.objects.filter(tenant=tenant, status=EpisodeStatus.ACTIVE).count()
    too_much = is_too_much(takes=takes, memories=memories, share=rules.brake_share, count=rules.brake_count)
    return memories, too_much
