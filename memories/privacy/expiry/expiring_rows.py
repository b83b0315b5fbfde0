"""Episodes, runs and exports whose time is over, deleted for good; nothing waits for what somebody holds."""

import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Greatest

from memories.models import Episode, ExportState, ExtractionRun, Fact, PrivacyExport, Session, Tenant
from memories.pipeline import pass_leases
from memories.privacy.expiry import spared
from memories.privacy.expiry.retention_passes import Work

STEP = 500


def episodes(tenant: Tenant, cutoff: datetime) -> QuerySet[Episode]:
    return Episode.objects.filter(tenant=tenant, ended_at__lt=cutoff, end_user__in=spared.people())


def runs(tenant: Tenant, cutoff: datetime) -> QuerySet[ExtractionRun]:
    """Those that are over; what they made stays and names them no more."""
    rows = ExtractionRun.objects.filter(tenant=tenant, started_at__lt=cutoff, end_user__in=spared.people())
    return rows.exclude(status=ExtractionRun.Status.RUNNING)


def exports(tenant: Tenant, cutoff: datetime, *, as_of: datetime) -> QuerySet[PrivacyExport]:
    """Files that nobody has downloaded: older than the tenant keeps them, or beyond their own date."""
    late = Q(made_at__lt=cutoff) | Q(expires_at__lte=as_of)
    return PrivacyExport.objects.filter(late, case__tenant=tenant, state=ExportState.READY)


def delete_episodes(work: Work, cutoff: datetime) -> Iterator[None]:
    """With their vectors and the questions about them; yields after each step. Errors: LeaseLost."""
    for found in _steps(work, episodes(work.row.tenant, cutoff)):
        with transaction.atomic():
            people = spared.locked({person for _, person in found})
            rows = Episode.objects.filter(pk__in=[key for key, _ in found], end_user__in=people)
            ids = list(
                rows.select_for_update(skip_locked=True, of=("self",)).order_by("pk").values_list("pk", flat=True)
            )
            Episode.objects.filter(pk__in=ids).delete()
            _count(work, "episodes", found, len(ids))
        yield


def delete_runs(work: Work, cutoff: datetime) -> Iterator[None]:
    """Yields after each step. Errors: LeaseLost."""
    for found in _steps(work, runs(work.row.tenant, cutoff)):
        with transaction.atomic():
            ids = _free_runs(found)
            _forget_runs(ids)
            _count(work, "runs", found, len(ids))
        yield


def expire_exports(work: Work, cutoff: datetime) -> Iterator[None]:
    """Their content goes, and their link; that there were some stays. Yields when there were. Errors: LeaseLost."""
    with transaction.atomic():
        due = exports(work.row.tenant, cutoff, as_of=work.row.as_of)
        gone = PrivacyExport.objects.filter(pk__in=due.values("pk"), state=ExportState.READY)
        count = gone.update(state=ExportState.EXPIRED, content=b"", token_digest=None)
        work.counts["exports"] += count
        pass_leases.keep(work)
    if count:
        yield


def _steps(work: Work, rows: QuerySet[Any]) -> Iterator[list[tuple[uuid.UUID, uuid.UUID]]]:
    """(row, person) of what is due in the order of ids, STEP at a time; each is met once."""
    while True:
        rest = rows.filter(pk__gt=work.reached) if work.reached else rows
        found = list(rest.order_by("pk").values_list("pk", "end_user_id")[:STEP])
        if not found:
            return
        yield found


def _free_runs(found: Sequence[tuple[uuid.UUID, uuid.UUID]]) -> list[uuid.UUID]:
    """Those whose session and person nobody holds, in the order of everybody else."""
    rows = ExtractionRun.objects.filter(pk__in=[key for key, _ in found])
    sessions = Session.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
    free = list(sessions.filter(pk__in=rows.values("session")).order_by("pk").values_list("pk", flat=True))
    people = spared.locked({person for _, person in found})
    return list(rows.filter(session__in=free, end_user__in=people).values_list("pk", flat=True))


def _forget_runs(ids: Sequence[uuid.UUID]) -> None:
    rows = ExtractionRun.objects.filter(pk__in=ids)
    for session_id, last in rows.order_by().values_list("session").annotate(last=Max("last_number")):
        Session.objects.filter(pk=session_id).update(deleted_runs_number=Greatest("deleted_runs_number", last))
    # In the order in which everybody locks facts; what else names a run belongs to the person that is locked.
    list(Fact.objects.select_for_update(of=("self",)).filter(extraction__in=ids).order_by("pk").values_list("pk"))
    rows.delete()


def _count(work: Work, name: str, found: Sequence[tuple[uuid.UUID, uuid.UUID]], number: int) -> None:
    work.counts[name] += number
    work.reached = found[-1][0]
    pass_leases.keep(work)
