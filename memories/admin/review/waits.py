"""How long items wait, against the target of their tenant."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from memories import conf
from memories.models import ReviewItem, Tenant


@dataclass(frozen=True)
class ReviewWait:
    """The target in hours (0: none), and whether an open item waits for longer."""

    target: int
    is_late: bool


def targets_of(items: Iterable[ReviewItem]) -> Mapping[uuid.UUID, int]:
    """The targets in hours by the tenants of the items; one query."""
    tenants = Tenant.objects.in_bulk({item.tenant_id for item in items})
    return {pk: conf.rules(tenant).review_target_hours for pk, tenant in tenants.items()}


def wait_of(item: ReviewItem, *, now: datetime) -> ReviewWait:
    target = conf.rules(item.tenant).review_target_hours
    return ReviewWait(target, is_late(item, target, now=now))


def is_late(item: ReviewItem, target: int, *, now: datetime) -> bool:
    is_open = item.state == ReviewItem.State.OPEN
    return bool(is_open and target and now - item.created_at > timedelta(hours=target))
