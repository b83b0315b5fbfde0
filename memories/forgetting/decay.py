"""The decay pass: it moves faded and expired memories to the trash, purges the trash and refreshes the stored scores.

The pass is idempotent and resumable: each memory's own date decides, and another worker goes on where one died. It
leaves memories of people under restriction alone.
"""

import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import Q
from django_q.tasks import async_task

from memories import conf
from memories.exceptions import DecayRunning
from memories.forgetting import decay_passes, stored_scores, trash, upkeep
from memories.forgetting.decay_passes import State, Work
from memories.forgetting.trash import EXPIRED, FADED, PURGED, SCRATCH
from memories.models import DecayPass, Episode, EpisodeStatus, Fact, Status, Tenant
from memories.queue import leases, nightly
from memories.queue.nightly import due_day
from memories.scoring.decay import is_too_much

EXAMPLES = 25
FORGET_TASK = "memories.tasks.forget"
REPLAN_TASK = "memories.tasks.replan_decay"


@dataclass(frozen=True)
class PassPreview:
    """What a pass would take at `as_of`: counts, of how many memories, and the ids of the first to go; is_held: the
    brake would hold it until somebody confirms."""

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
    """Run a pass in this process, after one that is unfinished; it takes what is due at `as_of` (default: now).

    A pass over the limit of the brake takes only expired memories and ends HELD, unless confirmed.
    Errors: DecayRunning, LeaseLost.
    """
    for unfinished in DecayPass.objects.open().free().filter(tenant=tenant):
        if work := decay_passes.claim(unfinished):
            _work(work, now=now)
    row = decay_passes.begin(tenant=tenant, trigger=trigger, as_of=as_of or now, now=now, confirmed=confirm)
    work = decay_passes.claim(row)
    if work is None:
        # A worker was quicker.
        raise DecayRunning
    _work(work, now=now)
    row.refresh_from_db()
    return row


def preview(tenant: Tenant, now: datetime) -> PassPreview:
    """What the next pass would take now, with ids of some faded facts and episodes, the first to go first."""
    groups = [*EXPIRED, *FADED]
    counts = dict.fromkeys((group.counted for group in groups), 0)
    for group in groups:
        counts[group.counted] += trash.due(group, tenant, as_of=now).count()
    facts, episodes = (
        list(trash.due(group, tenant, as_of=now).order_by(group.moment, "pk").values_list("pk", flat=True)[:EXAMPLES])
        for group in FADED
    )
    memories, is_held = _brake(tenant, conf.rules(tenant), takes=counts["facts"] + counts["episodes"])
    return PassPreview(now, counts, memories, is_held, facts, episodes)


def begin_due(*, now: datetime) -> int:
    """Begin a pass for each tenant whose night has come; how many. Two callers at once begin one each time."""
    return sum(_begin(tenant, now=now) for tenant in Tenant.objects.all())


def run_slice(*, now: datetime, seconds: float) -> bool:
    """Work on passes that nobody holds, for about so long; True when more is left to do. Errors: LeaseLost."""
    return nightly.run_slice(DecayPass.objects.open(), decay_passes.claim, partial(_work, now=now), seconds=seconds)


def enqueue() -> None:
    """Send a worker the task that looks for passes; inside the transaction that begins one."""
    async_task(FORGET_TASK)


def replan(*, tenant_id: uuid.UUID) -> None:
    """Send a worker the task that refreshes the tenant's scores; inside the transaction that changes its numbers."""
    async_task(REPLAN_TASK, str(tenant_id))


def refresh(*, tenant: Tenant, now: datetime, reached: uuid.UUID | None, seconds: float) -> uuid.UUID | None:
    """Refresh scores for about so long, after the person `reached`; returns the last person, None when all is done."""
    until = time.monotonic() + seconds
    rules = conf.rules(tenant)
    while people := stored_scores.people_after(tenant, reached):
        stored_scores.refresh(tenant, people, rules=rules, now=now)
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
        # The transaction took decayed_on back: the next look tries again.
        return False
    return True


def _work(work: Work, until: float | None = None, *, now: datetime) -> bool:
    """True when the pass is over; False when the time was up, and whoever claims it goes on."""
    steps = _steps(work, now=now)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            with transaction.atomic():
                decay_passes.finish(work, end.value, now=now)
                upkeep.follow(work, end.value)
            return True
        if until is not None and time.monotonic() > until:
            leases.release(work)
            return False


def _steps(work: Work, *, now: datetime) -> Generator[None, None, DecayPass.PassState]:
    """One pass in steps, each a short transaction; returns how it ended."""
    # First, so that today's numbers decide what has faded.
    while people := stored_scores.people_after(work.row.tenant, work.reached):
        work.counts["refreshed"] += stored_scores.refresh(work.row.tenant, people, rules=work.rules, now=work.row.as_of)
        work.reached = people[-1]
        leases.renew(work)
        yield
    for group in EXPIRED:
        yield from trash.trash(work, group, now=now)
    state = State.DONE if work.row.confirmed or not _is_held(work) else State.HELD
    for group in FADED if state == State.DONE else ():
        yield from trash.trash(work, group, now=now)
    for group in (*PURGED, SCRATCH):
        yield from trash.purge(work, group)
    yield from trash.purge_versions(work)
    yield from trash.purge_entities(work)
    yield from trash.purge_dreams(work)
    yield from trash.purge_group_facts(work)
    yield from trash.purge_groups(work)
    return state


def _is_held(work: Work) -> bool:
    tenant = work.row.tenant
    takes = sum(trash.due(group, tenant, as_of=work.row.as_of).count() for group in FADED)
    memories, is_held = _brake(tenant, work.rules, takes=takes)
    if is_held:
        work.counts["held"], work.counts["memories"] = takes, memories
    return is_held


def _brake(tenant: Tenant, rules: conf.Rules, *, takes: int) -> tuple[int, bool]:
    """How many memories the tenant has, and whether somebody must confirm that a pass takes so many of them."""
    facts = Fact.objects.filter(tenant=tenant, status=Status.ACTIVE).count()
    memories = facts + Episode.objects.filter(tenant=tenant, status=EpisodeStatus.ACTIVE).count()
    too_much = is_too_much(takes=takes, memories=memories, share=rules.brake_share, count=rules.brake_count)
    return memories, too_much
