"""Deletes what is no turn and too old: episodes, runs, exports, logged contexts, memories of plain kinds, audit events.

Locked rows wait."""

import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Greatest

from memories.kinds import Kind
from memories.models import (
    AuditSeal,
    Episode,
    ExportState,
    ExtractionRun,
    Fact,
    LoggedContext,
    PrivacyExport,
    PrivacyExportQuerySet,
    Session,
    Tenant,
    Trajectory,
    TrajectoryStep,
)
from memories.privacy.expiry import passes
from memories.privacy.expiry.passes import Work
from memories.privacy.trail import chain, sealing
from memories.queue import leases
from memories.skills import founding

STEP = 500
# Seals of one transaction, and so of one pruning link of the chain.
SEALS = 20


def episodes(tenant: Tenant, cutoff: datetime) -> QuerySet[Episode]:
    return Episode.objects.filter(tenant=tenant, ended_at__lt=cutoff, end_user__in=passes.people())


def runs(tenant: Tenant, cutoff: datetime) -> QuerySet[ExtractionRun]:
    """Runs that have ended; what they made stays and no longer refers to them."""
    rows = ExtractionRun.objects.filter(tenant=tenant, started_at__lt=cutoff, end_user__in=passes.people())
    return rows.exclude(status=ExtractionRun.RunStatus.RUNNING)


def exports(tenant: Tenant, cutoff: datetime, *, as_of: datetime) -> PrivacyExportQuerySet:
    """Exports that nobody has downloaded: older than the tenant keeps them, or beyond their own date."""
    late = Q(made_at__lt=cutoff) | Q(expires_at__lte=as_of)
    return PrivacyExport.objects.filter(late, case__tenant=tenant, state=ExportState.READY)


def contexts(tenant: Tenant, cutoff: datetime) -> QuerySet[LoggedContext]:
    return LoggedContext.objects.filter(tenant=tenant, created_at__lt=cutoff, end_user__in=passes.people())


def trajectories(tenant: Tenant, cutoff: datetime) -> QuerySet[Trajectory]:
    """Those that got neither a step nor an outcome since."""
    return Trajectory.objects.filter(tenant=tenant, updated_at__lt=cutoff, end_user__in=passes.people())


def plain(kind: Kind, tenant: Tenant, cutoff: datetime) -> QuerySet[Any]:
    rows: QuerySet[Any] = kind.rows.filter(tenant=tenant, created_at__lt=cutoff, end_user__in=passes.people())
    return rows


def delete_episodes(work: Work, cutoff: datetime) -> Iterator[None]:
    """Delete episodes with their vectors and review items; yields after each step. Errors: LeaseLost."""
    for found in _steps(work, episodes(work.row.tenant, cutoff)):
        with transaction.atomic():
            people = passes.lock_people({person for _, person in found})
            rows = Episode.objects.filter(pk__in=[key for key, _ in found], end_user__in=people)
            ids = list(
                rows.select_for_update(skip_locked=True, of=("self",)).order_by("pk").values_list("pk", flat=True)
            )
            Episode.objects.filter(pk__in=ids).delete()
            _count(work, "episodes", found, len(ids))
        yield


def delete_runs(work: Work, cutoff: datetime) -> Iterator[None]:
    """Delete runs; yields after each step. Errors: LeaseLost."""
    for found in _steps(work, runs(work.row.tenant, cutoff)):
        with transaction.atomic():
            # Those whose session and person nobody holds; locked in the order of everybody else.
            rows = ExtractionRun.objects.filter(pk__in=[key for key, _ in found])
            sessions = Session.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
            free = list(sessions.filter(pk__in=rows.values("session")).order_by("pk").values_list("pk", flat=True))
            people = passes.lock_people({person for _, person in found})
            ids = list(rows.filter(session__in=free, end_user__in=people).values_list("pk", flat=True))
            _delete_runs(ids)
            _count(work, "runs", found, len(ids))
        yield


def delete_contexts(work: Work, cutoff: datetime) -> Iterator[None]:
    """Delete logged contexts; yields after each step. Errors: LeaseLost."""
    return _delete(work, contexts(work.row.tenant, cutoff), "contexts")


def delete_trajectories(work: Work, cutoff: datetime) -> Iterator[None]:
    """Delete trajectories with their steps; yields after each step. Errors: LeaseLost."""
    due = trajectories(work.row.tenant, cutoff)
    for found in _steps(work, due):
        with transaction.atomic():
            people = passes.lock_people({person for _, person in found})
            rows = due.filter(pk__in=[key for key, _ in found], end_user__in=people)
            ids = list(rows.order_by().values_list("pk", flat=True))
            founding.forget(ids, now=work.row.as_of)
            steps = TrajectoryStep.objects.filter(trajectory__in=ids)
            steps._raw_delete(steps.db)
            Trajectory.objects.filter(pk__in=ids).delete()
            _count(work, "trajectories", found, len(ids))
        yield


def delete_plain(kind: Kind, work: Work, cutoff: datetime) -> Iterator[None]:
    """Delete memories of a plain kind, also those in the trash; yields after each step. Errors: LeaseLost."""
    return _delete(work, plain(kind, work.row.tenant, cutoff), kind.plural)


def _delete(work: Work, due: QuerySet[Any], name: str) -> Iterator[None]:
    for found in _steps(work, due):
        with transaction.atomic():
            people = passes.lock_people({person for _, person in found})
            rows = due.model._default_manager.filter(pk__in=[key for key, _ in found], end_user__in=people)
            _count(work, name, found, rows.delete()[0])
        yield


def expire_exports(work: Work, cutoff: datetime) -> Iterator[None]:
    """Empty exports and their links; the rows stay. Yields when there were some. Errors: LeaseLost."""
    with transaction.atomic():
        due = exports(work.row.tenant, cutoff, as_of=work.row.as_of)
        count = due.select_for_update(of=("self",)).empty(state=ExportState.EXPIRED, token_digest=None)
        work.counts["exports"] += count
        leases.renew(work)
    if count:
        yield


def _steps(work: Work, rows: QuerySet[Any]) -> Iterator[list[tuple[uuid.UUID, uuid.UUID]]]:
    """(row, person) of what is due, STEP at a time in the order of ids; each comes once."""
    while True:
        rest = rows.filter(pk__gt=work.reached) if work.reached else rows
        found = list(rest.order_by("pk").values_list("pk", "end_user_id")[:STEP])
        if not found:
            return
        yield found


def _delete_runs(ids: Sequence[uuid.UUID]) -> None:
    rows = ExtractionRun.objects.filter(pk__in=ids)
    for session_id, last in rows.order_by().values_list("session").annotate(last=Max("last_number")):
        Session.objects.filter(pk=session_id).update(deleted_runs_number=Greatest("deleted_runs_number", last))
    # Facts are locked in the order of everybody; all other references are of the person, who is locked.
    list(Fact.objects.select_for_update(of=("self",)).filter(extraction__in=ids).order_by("pk").values_list("pk"))
    rows.delete()


def _count(work: Work, name: str, found: Sequence[tuple[uuid.UUID, uuid.UUID]], number: int) -> None:
    work.counts[name] += number
    work.reached = found[-1][0]
    leases.renew(work)


def delete_audit(work: Work, cutoff: datetime, *, now: datetime) -> Iterator[None]:
    """Prune whole seals, and note that in the chain; yields after each step. Errors: LeaseLost.

    While somebody seals or checks nothing is pruned: the next night does it.
    """
    while _prune(work, cutoff, now):
        yield


def _prune(work: Work, cutoff: datetime, now: datetime) -> bool:
    with transaction.atomic():
        seals = prunable(work.row.tenant_id, cutoff)[:SEALS] if sealing.try_lock() else []
        if not seals:
            return False
        chain.append(
            work.row.tenant_id,
            AuditSeal.SealKind.PRUNING,
            span=(seals[0].first_id, seals[-1].last_id),
            count=sum(seal.count for seal in seals),
            newest_at=max(seal.newest_at for seal in seals),
            now=now,
        )
        with connection.cursor() as cursor:
            # A function of the owner, which checks the link: the role of web and worker cannot delete from the trail.
            cursor.execute("SELECT memories_prune_audit(%s, %s)", [work.row.tenant_id, seals[-1].last_id])
            work.counts["audit"] += cursor.fetchone()[0]
        leases.renew(work)
        return True


def prunable(tenant_uuid: uuid.UUID, cutoff: datetime) -> list[AuditSeal]:
    """The oldest seals that are not pruned yet, up to the first one with an event that is not old enough."""
    done = chain.of(tenant_uuid).filter(kind=AuditSeal.SealKind.PRUNING).aggregate(last=Max("last_id"))["last"] or 0
    seals = chain.of(tenant_uuid).filter(kind=AuditSeal.SealKind.SEAL, last_id__gt=done)
    younger = seals.filter(newest_at__gte=cutoff).order_by("number").values_list("number", flat=True).first()
    old = seals if younger is None else seals.filter(number__lt=younger)
    return list(old.order_by("number").defer("leaves"))
