"""The lease of a running case: a worker claims the row with a token and renews it with each step; when the worker dies,
another takes over.

An attempt is counted before it begins, so a case that kills its worker does not do so for ever. Each step that is done
resets the count.
"""

import logging
import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django_q.tasks import async_task

from memories import audit
from memories.audit import Actor
from memories.exceptions import LeaseLost
from memories.models import EXPORTING, ActorKind, CaseState, CaseType, PrivacyCase
from memories.models.leases import unleased

RUN_TASK = "memories.tasks.run_case"
# A slice ends after seconds, but its last step may be an export or the verification, which reads the whole database.
LONGEST_SECONDS = 6 * 3600
# Much longer than a process needs to renew it.
LEASE = timedelta(seconds=60)
RENEWED_EVERY = LEASE / 3
# The pause after a failure is multiplied by the attempts in a row.
PAUSE = timedelta(seconds=10)
MOST_ATTEMPTS = 5
# Failure code: the verification found something, and the findings say where.
FOUND = "found"
UNDER_WAY = (CaseState.RUNNING, CaseState.VERIFYING)
_RUNS = Q(type=CaseType.ERASURE, state__in=[CaseState.APPROVED, *UNDER_WAY]) | Q(
    type__in=EXPORTING, state=CaseState.RUNNING
)

logger = logging.getLogger(__name__)


@dataclass
class ClaimedCase:
    """A case that is ours as long as its row has the token; each step writes `counts` there."""

    case: PrivacyCase
    token: uuid.UUID
    counts: Counter[str] = field(default_factory=Counter)


def wake(case_id: uuid.UUID) -> None:
    """Queue the task that runs the case; it is a row, so it starts when the caller's transaction is committed."""
    async_task(RUN_TASK, str(case_id), timeout=LONGEST_SECONDS)


def runnable() -> QuerySet[PrivacyCase]:
    """Cases to be run, leased or not."""
    return PrivacyCase.objects.filter(_RUNS)


def free() -> QuerySet[PrivacyCase]:
    """Cases to be run that have no lease in force."""
    return runnable().filter(unleased())


def claim(case_id: uuid.UUID) -> ClaimedCase | None:
    """Lease the case; None when there is nothing to run, or another worker has it."""
    with transaction.atomic():
        case = free().select_for_update(of=("self",)).select_related("tenant").filter(pk=case_id).first()
        if case is None:
            return None
        if case.attempts >= MOST_ATTEMPTS:
            # It must not take the next worker with it.
            _fail(case, case.failure or "worker_lost")
            return None
        work = ClaimedCase(case, uuid.uuid4(), Counter(case.counts))
        # A decision on the approved case that was seen before has to be made on what it is now.
        begun = {"state": CaseState.RUNNING, "version": F("version") + 1} if case.state == CaseState.APPROVED else {}
        PrivacyCase.objects.filter(pk=case.pk).update(
            started_at=Coalesce("started_at", Now()),
            attempts=F("attempts") + 1,
            lease_token=work.token,
            lease_until=Now() + LEASE,
            **begun,
        )
    case.refresh_from_db()
    return work


def keep(work: ClaimedCase, **changes: Any) -> None:
    """Renew the lease and write the result of the step. It comes first in the step's transaction: it locks the case.

    Errors: LeaseLost.
    """
    ours = PrivacyCase.objects.filter(pk=work.case.pk, lease_token=work.token, state__in=UNDER_WAY)
    if not ours.update(**{"lease_until": Now() + LEASE, "counts": dict(work.counts), **changes}):
        raise LeaseLost


@contextmanager
def renewing(work: ClaimedCase) -> Iterator[None]:
    """Renew the lease during the block, for a step may take long; a process that dies renews nothing."""
    ended = threading.Event()
    thread = threading.Thread(target=_renew, args=(work, ended), name="case lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _renew(work: ClaimedCase, ended: threading.Event) -> None:
    ours = PrivacyCase.objects.filter(pk=work.case.pk, lease_token=work.token)
    while not ended.wait(RENEWED_EVERY.total_seconds()):
        try:
            ours.update(lease_until=Now() + LEASE)
        except (DatabaseError, InterfaceError) as error:
            # The worker itself meets the same error, or the next renewal comes before the lease is over.
            logger.warning("The lease of case %s could not be renewed: %s", work.case.pk, type(error).__name__)
        finally:
            connection.close()


def release(work: ClaimedCase) -> None:
    """End the lease, so that another worker can continue at once. Errors: LeaseLost."""
    keep(work, lease_token=None, lease_until=None, attempts=0)


def retry_or_fail(work: ClaimedCase, failure: str) -> bool:
    """End the lease after a failure, given as a code: retry after a pause or, after too many attempts, fail.

    True when the case failed.
    """
    with transaction.atomic():
        rows = PrivacyCase.objects.select_for_update(of=("self",)).filter(pk=work.case.pk, lease_token=work.token)
        case = rows.first()
        if case is None:
            return False
        if case.attempts >= MOST_ATTEMPTS:
            _fail(case, failure)
            return True
        rows.update(lease_token=None, lease_until=Now() + PAUSE * max(1, case.attempts), failure=failure)
        return False


def fail(work: ClaimedCase, failure: str, **changes: Any) -> None:
    """End the case as failed; staff look at it. Errors: LeaseLost."""
    with transaction.atomic():
        keep(work, **changes)
        _fail(work.case, failure)


def _fail(case: PrivacyCase, failure: str) -> None:
    """Call it in a transaction that holds the case. The audit event counts the failure, or the hits that were found."""
    rows = PrivacyCase.objects.filter(pk=case.pk)
    ended = {"state": CaseState.FAILED, "failure": failure, "version": F("version") + 1}
    rows.update(**ended, lease_token=None, lease_until=None, attempts=0)
    case.refresh_from_db()
    [now] = rows.values_list(Now(), flat=True)
    found = sum(case.findings.get("hits", {}).values()) if failure == FOUND else 1
    record(case, "fail", {failure: found}, now=now)


def finish(work: ClaimedCase, *, now: datetime, verb: str, **changes: Any) -> None:
    """Complete the case, in the transaction of its last step. Errors: LeaseLost."""
    ended = {"state": CaseState.COMPLETED, "completed_at": now, "failure": "", "attempts": 0}
    keep(work, **ended, **changes, version=F("version") + 1, lease_token=None, lease_until=None)
    work.case.refresh_from_db()
    record(work.case, verb, work.counts, now=now)


def record(case: PrivacyCase, verb: str, counts: Mapping[str, int], *, now: datetime) -> None:
    """Audit what the run did, in counts."""
    actor = Actor(kind=ActorKind.RUN, id=str(case.pk))
    audit.record(
        actor=actor,
        verb=verb,
        target=case,
        object_id=case.pk,
        tenant=case.tenant,
        now=now,
        counts=dict(counts),
        case=case.pk,
    )
