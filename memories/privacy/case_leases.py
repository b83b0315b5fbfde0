"""The lease of a running case: how a worker comes by it, and how the run ends or is put off.

Each step that is done sets the count of attempts to 0.
"""

import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django_q.tasks import async_task

from memories import audit
from memories.audit import Actor
from memories.models import EXPORTING, ActorKind, CaseState, CaseType, PrivacyCase
from memories.models.leases import LeasedQuerySet
from memories.queue import leases
from memories.queue.leases import Lease

RUN_TASK = "memories.tasks.run_case"
# A slice ends after seconds, but its last step may be an export or the verification, which reads the whole database.
LONGEST_SECONDS = 6 * 3600
# The pause after a failure is multiplied by the attempts in a row.
PAUSE = timedelta(seconds=10)
# Failure code: the verification found something, and the findings say where.
FOUND = "found"
UNDER_WAY = (CaseState.RUNNING, CaseState.VERIFYING)
_RUNS = Q(type=CaseType.ERASURE, state__in=[CaseState.APPROVED, *UNDER_WAY]) | Q(
    type__in=EXPORTING, state=CaseState.RUNNING
)


@dataclass(kw_only=True)
class ClaimedCase(Lease[PrivacyCase]):
    """A case that is ours. Each step begins with a renewal, which locks the case and stores `counts`.

    `so_far`: the counts of a step that takes long. It is replaced, never changed: keep_alive() reads it meanwhile.
    """

    counts: Counter[str] = field(default_factory=Counter)
    so_far: Mapping[str, int] = field(default_factory=dict)

    @property
    def case(self) -> PrivacyCase:
        return self.row

    def progress(self) -> dict[str, Any]:
        return {"counts": dict(self.counts)}

    def progress_amid(self) -> dict[str, Any]:
        return {"counts": dict(self.so_far)} if self.so_far else {}


def enqueue(case_id: uuid.UUID) -> None:
    """Queue the task that runs the case; it is a row, so it starts when the caller's transaction is committed."""
    async_task(RUN_TASK, str(case_id), timeout=LONGEST_SECONDS)


def runnable() -> LeasedQuerySet[PrivacyCase]:
    """Cases to be run, leased or not."""
    return PrivacyCase.objects.filter(_RUNS)


@transaction.atomic
def claim(case_id: uuid.UUID) -> ClaimedCase | None:
    """Lease the case; None when there is nothing to run, or another worker has it."""
    case = leases.lock(runnable().free().select_related("tenant"), case_id)
    if case is None:
        return None
    # A decision on the approved case that was seen before has to be made on what it is now.
    begun: dict[str, Any] = (
        {"state": CaseState.RUNNING, "version": case.version + 1} if case.state == CaseState.APPROVED else {}
    )
    token = leases.take(
        case,
        give_up=lambda lost: _fail(lost, lost.failure or leases.WORKER_LOST),
        started_at=case.started_at or case.clock,
        **begun,
    )
    return ClaimedCase(row=case, token=token, counts=Counter(case.counts)) if token else None


def retry_or_fail(work: ClaimedCase, failure: str) -> bool:
    """End the lease after a failure, given as a code: retry after a pause or, after too many attempts, fail.

    True when the case failed. Errors: LeaseLost.
    """
    with transaction.atomic():
        case = leases.fence(work)
        if case.attempts >= leases.MOST_ATTEMPTS:
            _fail(case, failure)
            return True
        leases.release(work, pause=PAUSE * max(1, case.attempts), failure=failure)
        return False


def fail(work: ClaimedCase, failure: str, **changes: Any) -> None:
    """End the case as failed; staff look at it. Errors: LeaseLost."""
    with transaction.atomic():
        leases.renew(work, **changes)
        _fail(work.case, failure)


def _fail(case: PrivacyCase, failure: str) -> None:
    """Call it in a transaction that holds the case. The audit event counts the failure, or the hits that were found."""
    rows = PrivacyCase.objects.filter(pk=case.pk)
    leases.revoke(rows, state=CaseState.FAILED, failure=failure, version=F("version") + 1, attempts=0)
    case.refresh_from_db()
    [now] = rows.values_list(Now(), flat=True)
    found = sum(case.findings.get("hits", {}).values()) if failure == FOUND else 1
    record(case, "fail", {failure: found}, now=now)


def finish(work: ClaimedCase, *, now: datetime, verb: str, **changes: Any) -> None:
    """Complete the case, in the transaction of its last step. Errors: LeaseLost."""
    ended: dict[str, Any] = {"state": CaseState.COMPLETED, "completed_at": now, "failure": "", "attempts": 0}
    leases.release(work, **ended, **changes, version=F("version") + 1)
    work.case.refresh_from_db()
    record(work.case, verb, work.counts, now=now)


def record(case: PrivacyCase, verb: str, counts: Mapping[str, int], *, now: datetime) -> None:
    """Audit what the run did, in counts."""
    actor = Actor(kind=ActorKind.RUN, id=str(case.pk))
    audit.record(actor=actor, verb=verb, target=case, now=now, counts=dict(counts), case=case.pk)
