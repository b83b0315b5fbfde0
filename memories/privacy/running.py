"""Carries cases out under a lease, in slices, by whoever comes first; killed anywhere, another goes on."""

import logging
import time
import uuid
from collections.abc import Iterator
from datetime import datetime

from django.db import DatabaseError, InterfaceError
from django_q.tasks import async_task

from memories.exceptions import LeaseLost, MemoryHubError
from memories.models import CaseType, PrivacyCase
from memories.privacy import erasing, exporting
from memories.privacy.erasure import case_leases
from memories.privacy.erasure.case_leases import Work, claim, fail, finish, keep, kept, record

__all__ = ["Work", "abandoned", "carry_out", "claim", "fail", "finish", "keep", "kept", "record", "wake", "work_on"]

RUN_TASK = "memories.tasks.run_case"
LOOK_SECONDS = 0.2
# A slice ends after seconds, but its last step may be the verification, which reads the whole database.
LONGEST_SECONDS = 6 * 3600

logger = logging.getLogger(__name__)


def carry_out(*, case_id: uuid.UUID, now: datetime, patience_seconds: float = 120.0) -> PrivacyCase:
    """Run the case in this process to its end, after whoever works on it; the case as it is then.

    One that is not to run is returned as it is, and so is one that somebody else still holds when patience ends.
    Errors: those of its steps, after they were noted on the case, which goes on after a pause.
    """
    patient_until = time.monotonic() + patience_seconds
    while True:
        work = claim(case_id)
        if work:
            run(work, now=now)
        case = case_leases.runnable().filter(pk=case_id).first()
        if case is None or time.monotonic() > patient_until:
            return case or PrivacyCase.objects.get(pk=case_id)
        time.sleep(LOOK_SECONDS)


def work_on(*, now: datetime, seconds: float, first: uuid.UUID | None = None) -> bool:
    """Carry on cases that nobody works on, `first` before all others, for about so long; True when more is left to do
    now."""
    until = time.monotonic() + seconds
    for case_id in sorted(abandoned(), key=lambda one: one != first):
        work = claim(case_id)
        if work and not run(work, now=now, until=until):
            return True
    return False


def abandoned() -> list[uuid.UUID]:
    """Cases that wait for somebody, the oldest first."""
    return list(case_leases.free().order_by("created_at").values_list("pk", flat=True))


def wake(case_id: uuid.UUID) -> None:
    """Have a worker run it at once; inside the transaction that lets it run."""
    async_task(RUN_TASK, str(case_id), timeout=LONGEST_SECONDS)


def run(work: Work, *, now: datetime, until: float | None = None) -> bool:
    """Its steps; False when the time is up, and the rest is left to whoever claims it.

    Who lost the lease stops without a word. Any other failure is noted on the case and goes on up.
    """
    try:
        with kept(work):
            return _run(work, now=now, until=until)
    except LeaseLost:
        return True
    except (DatabaseError, InterfaceError, MemoryHubError, OSError) as error:
        _note(work, _code_of(error))
        raise


def _run(work: Work, *, now: datetime, until: float | None) -> bool:
    for _step in _steps(work, now=now):
        if until is not None and time.monotonic() > until:
            case_leases.release(work)
            return False
    return True


def _steps(work: Work, *, now: datetime) -> Iterator[object]:
    if work.case.type == CaseType.ERASURE:
        yield from erasing.steps(work, now=now)
    else:
        exporting.make(work)


def _code_of(error: Exception) -> str:
    if isinstance(error, MemoryHubError):
        return error.code
    return "files" if isinstance(error, OSError) else "database"


def _note(work: Work, failure: str) -> None:
    """Where even that cannot be written the lease ends by itself, and the attempt was counted before it began."""
    try:
        case_leases.note_failure(work, failure)
    except (DatabaseError, InterfaceError) as error:
        logger.warning("Case %s: its failure could not be noted: %s", work.case.pk, type(error).__name__)
