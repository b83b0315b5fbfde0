"""The row of a case that runs: claimed with a lease and a token, kept with each step, taken over from whoever died.

An attempt is counted before it begins, so that a case which kills its worker does not do so for ever; each step that
was taken forgets those before it.
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

from memories import audit
from memories.audit import Actor
from memories.exceptions import LeaseLost
from memories.models import EXPORTING, ActorKind, CaseState, CaseType, PrivacyCase
from memories.models.leases import unleased

# Much longer than a process needs to renew it.
LEASE = timedelta(seconds=60)
RENEWED_EVERY = LEASE / 3
# After a failure; and as many in a row as a case may have.
PAUSE = timedelta(seconds=10)
MOST_ATTEMPTS = 5
# Code of a failure: the verification found something, and its findings say where.
FOUND = "found"
UNDER_WAY = (CaseState.RUNNING, CaseState.VERIFYING)
_RUNS = Q(type=CaseType.ERASURE, state__in=[CaseState.APPROVED, *UNDER_WAY]) | Q(
    type__in=EXPORTING, state=CaseState.RUNNING
)

logger = logging.getLogger(__name__)


@dataclass
class Work:
    """A case that is ours as long as the token is in its row; `counts` go there with each step."""

    case: PrivacyCase
    token: uuid.UUID
    counts: Counter[str] = field(default_factory=Counter)


def runnable() -> QuerySet[PrivacyCase]:
    """Cases that are to run or do, whether somebody works on them or not."""
    return PrivacyCase.objects.filter(_RUNS)


def free() -> QuerySet[PrivacyCase]:
    """Those of them that nobody works on: none has begun, or whoever did has stopped, failed or died."""
    return runnable().filter(unleased())


def claim(case_id: uuid.UUID) -> Work | None:
    """Take the case for as long as a lease; None when there is nothing to run, or somebody else does."""
    with transaction.atomic():
        case = free().select_for_update(of=("self",)).select_related("tenant").filter(pk=case_id).first()
        if case is None:
            return None
        if case.attempts >= MOST_ATTEMPTS:
            # It must not take the next worker with it.
            _fail(case, case.failure or "worker_lost")
            return None
        work = Work(case, uuid.uuid4(), Counter(case.counts))
        _begin(work)
    case.refresh_from_db()
    return work


def keep(work: Work, **changes: Any) -> None:
    """Renew the lease and write what the step came to; inside the step's transaction, first, it locks the case.

    Errors: LeaseLost.
    """
    ours = PrivacyCase.objects.filter(pk=work.case.pk, lease_token=work.token, state__in=UNDER_WAY)
    if not ours.update(**{"lease_until": Now() + LEASE, "counts": dict(work.counts), **changes}):
        raise LeaseLost


def release(work: Work) -> None:
    """Let somebody else go on, at once. Errors: LeaseLost."""
    keep(work, lease_token=None, lease_until=None, attempts=0)


def note_failure(work: Work, failure: str) -> bool:
    """End the lease after a failure, given as a code: to be tried again after a pause, or failed. True: failed."""
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


def fail(work: Work, failure: str, **changes: Any) -> None:
    """End the case as failed, for somebody to look at. Errors: LeaseLost."""
    with transaction.atomic():
        keep(work, **changes)
        _fail(work.case, failure)


def finish(work: Work, *, now: datetime, verb: str, **changes: Any) -> None:
    """The case is over; inside the transaction of its last step. Errors: LeaseLost."""
    ended = {"state": CaseState.COMPLETED, "completed_at": now, "failure": "", "attempts": 0}
    keep(work, **ended, **changes, version=F("version") + 1, lease_token=None, lease_until=None)
    work.case.refresh_from_db()
    record(work, verb, work.counts, now=now)


def record(work: Work, verb: str, counts: Mapping[str, int], *, now: datetime) -> None:
    """In the trail of the case: what came of it, in counts."""
    _record(work.case, verb, counts, now=now)


@contextmanager
def kept(work: Work) -> Iterator[None]:
    """Renew the lease beside the block, for a step may take long; a process that dies renews nothing."""
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(work, ended), name="case lease", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()


def _renew(work: Work, ended: threading.Event) -> None:
    ours = PrivacyCase.objects.filter(pk=work.case.pk, lease_token=work.token)
    while not ended.wait(RENEWED_EVERY.total_seconds()):
        try:
            ours.update(lease_until=Now() + LEASE)
        except (DatabaseError, InterfaceError) as error:
            # Whoever works on it meets the same, or the next time comes before the lease is over.
            logger.warning("The lease of case %s could not be renewed: %s", work.case.pk, type(error).__name__)
        finally:
            connection.close()


def _begin(work: Work) -> None:
    case = work.case
    # Who decides on a case that has not begun is told to look again.
    begun = {"state": CaseState.RUNNING, "version": F("version") + 1} if case.state == CaseState.APPROVED else {}
    PrivacyCase.objects.filter(pk=case.pk).update(
        started_at=Coalesce("started_at", Now()),
        attempts=F("attempts") + 1,
        lease_token=work.token,
        lease_until=Now() + LEASE,
        **begun,
    )


def _fail(case: PrivacyCase, failure: str) -> None:
    """Inside a transaction that holds the case. Its event counts one of the failure, or what was found left over."""
    rows = PrivacyCase.objects.filter(pk=case.pk)
    ended = {"state": CaseState.FAILED, "failure": failure, "version": F("version") + 1}
    rows.update(**ended, lease_token=None, lease_until=None, attempts=0)
    case.refresh_from_db()
    [now] = rows.values_list(Now(), flat=True)
    found = sum(case.findings.get("hits", {}).values()) if failure == FOUND else 1
    _record(case, "fail", {failure: found}, now=now)


def _record(case: PrivacyCase, verb: str, counts: Mapping[str, int], *, now: datetime) -> None:
    actor, told = Actor(kind=ActorKind.RUN, id=str(case.pk)), dict(counts)
    audit.record(
        actor=actor, verb=verb, target=case, object_id=case.pk, tenant=case.tenant, now=now, counts=told, case=case.pk
    )
