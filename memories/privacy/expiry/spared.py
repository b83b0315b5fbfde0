"""Whom retention passes over: people under restriction, and people whose privacy case is on legal hold."""

import uuid
from collections.abc import Collection

from django.db.models import QuerySet

from memories.models import CaseState, EndUser, PrivacyCase


def people() -> QuerySet[EndUser]:
    """Those of whom something may be deleted."""
    held = PrivacyCase.objects.filter(state=CaseState.ON_HOLD, end_user__isnull=False)
    return EndUser.objects.filter(restricted_at=None).exclude(pk__in=held.values("end_user"))


def locked(ids: Collection[uuid.UUID]) -> list[uuid.UUID]:
    """Those of these people whom nobody else holds, locked until the transaction's end, in the order of their ids.

    Whoever restricts a person or puts a case on hold locks the person, so it is seen here or has to wait.
    """
    rows = people().select_for_update(no_key=True, skip_locked=True, of=("self",)).filter(pk__in=ids)
    return list(rows.order_by("pk").values_list("pk", flat=True))
