"""The worker's tasks. They take ids and return counts, so that no queue holds personal data."""

import logging
import time
import traceback
import uuid
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from django.utils import timezone
from django_q.tasks import async_task

from memories import content_policy, reminding
from memories.attachments import reading
from memories.curation import policy_trials
from memories.curation.skills import proposing
from memories.db import tenancy
from memories.dream import dreaming
from memories.episodes import compaction
from memories.extraction import consolidation
from memories.forgetting import decay, upkeep
from memories.models import ExtractionRun, Tenant
from memories.privacy import case_leases, reminders, retention, rewriting, running
from memories.privacy.trail import sealing
from memories.queue import circuit_breaker
from memories.telemetry import log_fields
from memories.webhooks import delivering

# A long pass runs in slices: other work comes in between, and the watchdog does not think that the cluster hangs.
SLICE_SECONDS = 4.0
# For a pass that calls a model. Each slice first looks for the next people. The last person's calls come on top, and
# the cluster allows a task 30 s beside them.
UPKEEP_SECONDS = 20.0
# Less than the shortest limit of a task.
REWRITE_SECONDS = 25.0

logger = logging.getLogger(__name__)

P = ParamSpec("P")


def outermost(task: Callable[P, int]) -> Callable[P, int]:
    """The outermost frame of a task. It ends every error: its work is postponed already, and the worker goes on."""

    @wraps(task)
    def framed(*args: P.args, **named: P.kwargs) -> int:
        try:
            with log_fields.at_work(log_fields.TASK, task.__name__):
                return task(*args, **named)
        except Exception as error:  # noqa: BLE001 - the outermost frame
            # Log only place and kind: the message of an error may quote a person. Arguments are ids.
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = type(error).__name__
            logger.error("%s%s: %s at %s:%s", task.__name__, args, kind, place.name, place.lineno)
            return 0
        finally:
            content_policy.flush()

    return framed


@outermost
def consolidate_session(session_id: str) -> int:
    """Extract the session's due batch. Returns how many batches were committed, 0 or 1."""
    run = consolidation.consolidate(session_id=uuid.UUID(session_id), now=timezone.now())
    return int(run is not None and run.status == ExtractionRun.RunStatus.COMMITTED)


@outermost
def compact_session(session_id: str) -> int:
    """Do the next step of the session's working memory. Returns how many steps were committed, 0 or 1."""
    return int(bool(compaction.compact(session_id=uuid.UUID(session_id), now=timezone.now())))


@outermost
def ask_endpoint(tenant_id: str = "") -> int:
    """Probe the tenant's own endpoint, or the hub's, after an outage; 1 when it answers. Parked batches then go on."""
    return int(circuit_breaker.probe(uuid.UUID(tenant_id) if tenant_id else None))


@outermost
def forget() -> int:
    """Begin the decay passes of tenants whose night has come, and work on open ones for a slice. Returns how many
    began. Another task does the rest."""
    now = timezone.now()
    begun = decay.begin_due(now=now)
    if decay.run_slice(now=now, seconds=SLICE_SECONDS):
        decay.enqueue()
    if upkeep.is_due():
        upkeep.enqueue()
    if rewriting.is_due(now=now):
        rewriting.enqueue()
    return begun


@outermost
def rewrite_tables() -> int:
    """Rewrite tables from which people were erased, while the operator's window is open. Returns how many."""
    return len(rewriting.rewrite_in_window(now=timezone.now(), seconds=REWRITE_SECONDS).done)


@outermost
def keep_up() -> int:
    """Work for a slice on the upkeep after nightly passes. Returns 1 when nothing is left to do now."""
    if upkeep.run_slice(now=timezone.now(), seconds=UPKEEP_SECONDS):
        upkeep.enqueue()
        return 0
    return 1


@outermost
def dream() -> int:
    """Work for a slice on dreams, and begin those that are due. Returns 1 when nothing is left to do now."""
    if dreaming.run_slice(now=timezone.now(), seconds=UPKEEP_SECONDS):
        dreaming.enqueue()
        return 0
    return 1


@outermost
def propose_skills() -> int:
    """Work for a slice on passes that look for skills, and begin those that are due. Returns 1 when nothing is left to
    do now."""
    if proposing.run_slice(now=timezone.now(), seconds=UPKEEP_SECONDS):
        proposing.enqueue()
        return 0
    return 1


@outermost
def replan_decay(tenant_id: str, reached: str = "") -> int:
    """Plan anew when the tenant's memories fade, for people after `reached`. Returns 1 when all is done."""
    tenant = Tenant.objects.filter(pk=tenant_id).first()
    if tenant is None:
        return 0
    behind = uuid.UUID(reached) if reached else None
    with tenancy.of_tenant(tenant.pk):
        last = decay.refresh(tenant=tenant, now=timezone.now(), reached=behind, seconds=SLICE_SECONDS)
    if last is None:
        return 1
    async_task(decay.REPLAN_TASK, tenant_id, str(last))
    return 0


@outermost
def seal_audit() -> int:
    """Seal recorded events into the chains of the audit trail for a slice. Returns how many."""
    return sealing.seal(now=timezone.now(), seconds=SLICE_SECONDS)


@outermost
def run_case(case_id: str) -> int:
    """Work for a slice on this privacy case, and then on others that no worker has. Returns 1 when nothing is left to
    do now."""
    if running.run_slice(now=timezone.now(), seconds=SLICE_SECONDS, first=uuid.UUID(case_id)):
        case_leases.enqueue(uuid.UUID(case_id))
        return 0
    return 1


@outermost
def retain() -> int:
    """Begin the retention passes of tenants whose night has come, and work on open ones for a slice. Returns how many
    began. Another task does the rest."""
    now = timezone.now()
    begun = retention.begin_due(now=now)
    if retention.run_slice(now=now, seconds=SLICE_SECONDS):
        retention.enqueue()
    return begun


@outermost
def try_policies() -> int:
    """Work for a slice on dry runs of content policies. Returns 1 when nothing is left to do now."""
    if policy_trials.run_slice(now=timezone.now(), seconds=SLICE_SECONDS):
        policy_trials.enqueue()
        return 0
    return 1


@outermost
def deliver_webhooks() -> int:
    """Send for a slice what webhooks are to be told. Returns how many were delivered."""
    sent = delivering.run_slice(now=timezone.now(), seconds=SLICE_SECONDS, clock=time.monotonic)
    if delivering.is_due():
        delivering.enqueue()
    return sent


@outermost
def read_attachments() -> int:
    """Read for a slice what attachments wait. Returns 1 when nothing is left to do now."""
    if reading.run_slice(now=timezone.now(), seconds=SLICE_SECONDS):
        reading.enqueue()
        return 0
    return 1


@outermost
def remind() -> int:
    """Remind webhooks of privacy cases that are near their day, and operators by mail. Returns how many cases are."""
    now = timezone.now()
    near = reminders.publish_due_cases(now=now)
    reminding.remind(now=now)
    return near
