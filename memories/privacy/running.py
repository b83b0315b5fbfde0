"""Runs cases under a lease, in slices. Any worker can take a case; when one is killed, another continues."""

import logging
import time
import uuid
from datetime import datetime

from django.db import DatabaseError, InterfaceError

from memories.db import tenancy
from memories.db.sessions import own_session
from memories.db.statement_timeouts import unbounded
from memories.exceptions import LeaseLost, MemoryHubError
from memories.models import CaseType, PrivacyCase
from memories.privacy import case_leases, erasing, exporting
from memories.privacy.case_leases import ClaimedCase
from memories.queue import leases

LOOK_SECONDS = 0.2

logger = logging.getLogger(__name__)


def carry_out(*, case_id: uuid.UUID, now: datetime, wait_seconds: float = 120.0) -> PrivacyCase:
    """Run the case to its end in this process, after the worker that has it; return the case as it is then.

    A case that is not to be run is returned as it is, and so is one that another worker still holds after
    `wait_seconds`. Errors: those of its steps, after they were noted on the case, which is retried after a pause.
    """
    wait_until = time.monotonic() + wait_seconds
    while True:
        work = case_leases.claim(case_id)
        if work:
            run(work, now=now)
        case = case_leases.runnable().filter(pk=case_id).first()
        if case is None or time.monotonic() > wait_until:
            return case or PrivacyCase.objects.get(pk=case_id)
        time.sleep(LOOK_SECONDS)


def run_slice(*, now: datetime, seconds: float, first: uuid.UUID | None = None) -> bool:
    """Run waiting cases, `first` before all others, for about so long; True when more is left to do now."""
    until = time.monotonic() + seconds
    for case_id in sorted(waiting(), key=lambda one: one != first):
        work = case_leases.claim(case_id)
        if work and not run(work, now=now, until=until):
            return True
    return False


def waiting() -> list[uuid.UUID]:
    """Cases that no worker has, the oldest first: a wake-up may be lost, and a worker may die."""
    return list(case_leases.runnable().free().order_by("created_at").values_list("pk", flat=True))


def run(work: ClaimedCase, *, now: datetime, until: float | None = None) -> bool:
    """Take the steps of the case; False when the time is up, and the rest is left to the next claim.

    A worker that lost its lease stops silently. Any other failure is noted on the case and raised.
    """
    try:
        with own_session(), unbounded(), leases.keep_alive(work):
            if work.case.type != CaseType.ERASURE:
                with tenancy.of_tenant(work.case.tenant_id):
                    exporting.make(work)
                return True
            for _step in erasing.steps(work, now=now):
                if until is not None and time.monotonic() > until:
                    leases.release(work, attempts=0)
                    return False
            return True
    except LeaseLost:
        return True
    except (DatabaseError, InterfaceError, MemoryHubError, OSError) as error:
        if isinstance(error, MemoryHubError):
            code = error.code
        else:
            code = "files" if isinstance(error, OSError) else "database"
        _note_failure(work, code)
        raise


def _note_failure(work: ClaimedCase, code: str) -> None:
    try:
        case_leases.retry_or_fail(work, code)
    except (LeaseLost, DatabaseError, InterfaceError) as error:
        # Another worker has it; or the lease ends by itself, and the attempt was counted before it began.
        logger.warning("Case %s: its failure could not be noted: %s", work.case.pk, type(error).__name__)
