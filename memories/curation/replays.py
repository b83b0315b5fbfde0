"""Deletes the answers that are kept under an Idempotency-Key, after a day."""

from datetime import datetime, timedelta

from django.db import transaction

from memories.models import IdempotencyRecord

LIFETIME = timedelta(hours=24)
# Each cluster sweeps every five seconds: as many rows as the busiest hub adds meanwhile, and few enough to be quick.
SWEPT_AT_ONCE = 2_000


def sweep_replays(*, now: datetime) -> int:
    """Delete some records that are older than a day, without waiting for locks; returns how many."""
    old = IdempotencyRecord.objects.filter(created_at__lte=now - LIFETIME).order_by("created_at")
    with transaction.atomic():
        found = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:SWEPT_AT_ONCE])
        if found:
            IdempotencyRecord.objects.filter(pk__in=found).delete()
    return len(found)
