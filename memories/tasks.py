"""What the worker runs: tasks take ids and return counts, so that no queue holds anything personal."""

import logging
import traceback
import uuid
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from django.utils import timezone
from django_q.tasks import async_task

from memories.models import ExtractionRun, Tenant
from memories.pipeline import (
    compaction,
    consolidation,
    decay,
    endpoint,
    upkeep,
)
from memories.privacy import retention, rewriting, running
from memories.privacy.trail import sealing

# One worker's share of a long pass: other work comes in between, and nobody takes the cluster for a wedged one.
SLICE_SECONDS = 4.0
# Of one that asks a model, where each slice begins with a look for the people whose turn it is. The last person's calls
# come on top, and the cluster allows a task 30 s beside them.
ASKING_SECONDS = 20.0
# Of rewriting tables: less than a task may take at the least.
REWRITE_SECONDS = 25.0

logger = logging.getLogger(__name__)

P = ParamSpec("P")


def outermost(task: Callable[P, int]) -> Callable[P, int]:
    """The frame of a task, in which an error ends: what it was about is postponed already, and the worker lives on."""

    @wraps(task)
    def framed(*args: P.args, **named: P.kwargs) -> int:
        try:
            return task(*args, **named)
        except Exception as error:  # noqa: BLE001 - the outermost frame
            # The place and the kind alone: the message of an error may quote a person. Arguments are ids.
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = type(error).__name__
            logger.error("%s%s: %s at %s:%s", task.__name__, args, kind, place.name, place.lineno)
            return 0

    return framed


@outermost
def consolidate_session(session_id: str) -> int:
    """Extract the session's due batch; returns how many batches were committed, 0 or 1."""
    run = consolidation.consolidate(session_id=uuid.UUID(session_id), now=timezone.now())
    return int(run is not None and run.status == ExtractionRun.Status.COMMITTED)


@outermost
def compact_session(session_id: str) -> int:
    """Do what the session's working memory is due for; returns how many steps were committed, 0 or 1."""
    return int(bool(compaction.compact(session_id=uuid.UUID(session_id), now=timezone.now())))


@outermost
def ask_endpoint() -> int:
    """Find out whether the model's endpoint is back after an outage; 1 when it is. What was parked then goes on."""
    return int(endpoint.ask())


@outermost
def forget() -> int:
    """Begin the passes of tenants whose night has come, and work on those that are open for a slice of time; how many
    began. What is left is a task of its own."""
    now = timezone.now()
    begun = decay.begin_due(now=now)
    if decay.work_on(now=now, seconds=SLICE_SECONDS):
        decay.wake()
    if upkeep.is_due():
        upkeep.wake()
    if rewriting.is_due(now=now):
        rewriting.wake()
    return begun


@outermost
def rewrite_tables() -> int:
    """Write tables anew from which people were erased, while the operator's window is open; how many."""
    return len(rewriting.rewrite_in_window(now=timezone.now(), seconds=REWRITE_SECONDS).done)


@outermost
def keep_up() -> int:
    """Carry on the upkeep that follows nightly passes for a slice of time; 1 when nothing more can be done now."""
    if upkeep.work_on(now=timezone.now(), seconds=ASKING_SECONDS):
        upkeep.wake()
        return 0
    return 1


@outermost
def replan_decay(tenant_id: str, reached: str = "") -> int:
    """Plan anew when the tenant's memories fade, from the person behind `reached` on; 1 when all is done."""
    tenant = Tenant.objects.filter(pk=tenant_id).first()
    if tenant is None:
        return 0
    behind = uuid.UUID(reached) if reached else None
    last = decay.refresh(tenant=tenant, now=timezone.now(), reached=behind, seconds=SLICE_SECONDS)
    if last is None:
        return 1
    async_task(decay.REPLAN_TASK, tenant_id, str(last))
    return 0


@outermost
def seal_audit() -> int:
    """Append what was recorded to the chains of the audit trail, for a slice of time; how many events."""
    return sealing.seal(now=timezone.now(), seconds=SLICE_SECONDS)


@outermost
def run_case(case_id: str) -> int:
    """Carry a privacy case on, and whatever else of them nobody works on, for a slice of time; 1 when nothing is left
    to do now."""
    if running.work_on(now=timezone.now(), seconds=SLICE_SECONDS, first=uuid.UUID(case_id)):
        running.wake(uuid.UUID(case_id))
        return 0
    return 1


@outermost
def retain() -> int:
    """Begin the passes of retention of tenants whose night has come, and work on those that are open for a slice of
    time; how many began. What is left is a task of its own."""
    now = timezone.now()
    begun = retention.begin_due(now=now)
    if retention.work_on(now=now, seconds=SLICE_SECONDS):
        retention.wake()
    return begun
