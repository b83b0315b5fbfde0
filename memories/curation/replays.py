"""First answers that are kept under an Idempotency-Key, and the end of them after a day."""

from datetime import datetime, timedelta

from django.db import transaction

from memories.models import IdempotencyRecord

LIFETIME = timedelta(hours=24)
# At each beat of a cluster, every five seconds: as many as the busiest hub adds meanwhile, and soon done.
SWEPT_AT_ONCE = 2_000


def sweep_replays(*, now: datetime) -> int:
    """Take away some records that are older than a day, without waiting for any lock; how many there were."""
    old = IdempotencyRecord.objects.filter(created_at__lte=now - LIFETIME).order_by("created_at")
    with transaction.atomic():
        found = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:SWEPT_AT_ONCE])
        if found:
            IdempotencyRecord.objects.filter(pk__in=found).delete()
    return len(found)
