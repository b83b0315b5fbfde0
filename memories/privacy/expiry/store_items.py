"""Deletes items of the store: those whose time to live is over, at any time, and those that are too old, at night.

Items of people under restriction, and of people whose case is on legal hold, stay: reads leave them out when they have
expired. Locked rows wait.
"""

import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from memories.models import StoreItem, Tenant
from memories.privacy.expiry import passes
from memories.privacy.expiry.passes import Work
from memories.queue import leases

STEP = 500


def sweep_expired(*, now: datetime) -> int:
    """Delete some of the items whose time to live is over; how many."""
    with transaction.atomic():
        rows = StoreItem.objects.filter(expires_at__lte=now).filter(_deletable()).order_by("expires_at")
        found = list(rows.values_list("pk", "end_user_id")[:STEP])
        # Mostly there is nothing.
        return _delete(found, StoreItem.objects.filter(expires_at__lte=now)) if found else 0


def older(tenant: Tenant, cutoff: datetime) -> QuerySet[StoreItem]:
    """What was last written before, and may be deleted."""
    return StoreItem.objects.filter(tenant=tenant, updated_at__lt=cutoff).filter(_deletable())


def delete(work: Work, cutoff: datetime) -> Iterator[None]:
    """Delete items that are older; yields after each step. Errors: LeaseLost."""
    while True:
        rows = older(work.row.tenant, cutoff)
        rows = rows.filter(pk__gt=work.reached) if work.reached else rows
        found = list(rows.order_by("pk").values_list("pk", "end_user_id")[:STEP])
        if not found:
            return
        with transaction.atomic():
            work.counts["store"] += _delete(found, StoreItem.objects.filter(updated_at__lt=cutoff))
            work.reached = found[-1][0]
            leases.renew(work)
        yield


def _deletable() -> Q:
    # Under the id of somebody who was merged, the survivor decides, too.
    deletable = passes.people()
    people = deletable.filter(Q(merged_into=None) | Q(merged_into__in=deletable))
    return Q(end_user=None) | Q(end_user__in=people)


def _delete(found: Sequence[tuple[uuid.UUID, uuid.UUID | None]], due: QuerySet[StoreItem]) -> int:
    """Delete those of these that are still `due` once they, and their people, are locked."""
    people = passes.lock_people({person for _, person in found if person})
    own = due.filter(Q(end_user=None) | Q(end_user__in=people), pk__in=[pk for pk, _ in found])
    locked = own.select_for_update(of=("self",), skip_locked=True).order_by("namespace", "key")
    gone = StoreItem.objects.filter(pk__in=list(locked.values_list("pk", flat=True)))
    # Their vectors go in the database itself.
    return gone._raw_delete(gone.db)
