"""Audit events whose time is over: whole seals of them are deleted, and a link of the chain says so."""

import uuid
from collections.abc import Iterator
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Max

from memories.models import AuditEvent, AuditSeal
from memories.pipeline import pass_leases
from memories.privacy.expiry.retention_passes import Work
from memories.privacy.trail import chain, sealing

# Seals of one transaction, and so of one link that says so.
SEALS = 20


def prunable(tenant_uuid: uuid.UUID, cutoff: datetime) -> list[AuditSeal]:
    """The oldest seals whose events are all older and still there, up to the first of which that is not so."""
    done = chain.of(tenant_uuid).filter(kind=AuditSeal.Kind.PRUNING).aggregate(last=Max("last_id"))["last"] or 0
    seals = chain.of(tenant_uuid).filter(kind=AuditSeal.Kind.SEAL, last_id__gt=done)
    younger = seals.filter(newest_at__gte=cutoff).order_by("number").values_list("number", flat=True).first()
    old = seals if younger is None else seals.filter(number__lt=younger)
    return list(old.order_by("number").defer("leaves"))


def delete(work: Work, cutoff: datetime, *, now: datetime) -> Iterator[None]:
    """Yields after each step. While somebody seals or checks nothing is pruned: the next night does.

    Errors: LeaseLost.
    """
    while _prune(work, cutoff, now):
        yield


def _prune(work: Work, cutoff: datetime, now: datetime) -> bool:
    with transaction.atomic():
        seals = prunable(work.row.tenant_id, cutoff)[:SEALS] if sealing.alone() else []
        if not seals:
            return False
        events = AuditEvent.objects.filter(tenant_uuid=work.row.tenant_id, pk__lte=seals[-1].last_id)
        chain.append(
            work.row.tenant_id,
            AuditSeal.Kind.PRUNING,
            span=(seals[0].first_id, seals[-1].last_id),
            count=sum(seal.count for seal in seals),
            newest_at=max(seal.newest_at for seal in seals),
            now=now,
        )
        with connection.cursor() as cursor:
            # What the trigger asks for besides the link.
            cursor.execute("SET LOCAL memoryhub.audit_pruning = 'on'")
            work.counts["audit"] += events.delete()[0]
            cursor.execute("SET LOCAL memoryhub.audit_pruning = 'off'")
        pass_leases.keep(work)
        return True


def count(tenant_uuid: uuid.UUID, cutoff: datetime) -> int:
    return sum(seal.count for seal in prunable(tenant_uuid, cutoff))
