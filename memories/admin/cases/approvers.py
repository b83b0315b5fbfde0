"""Who can approve an erasure, and from when: said before a case is opened, while it waits, and to who is invited."""

from datetime import datetime
from typing import NamedTuple

from django.db.models import Q

from memories.models import Operator, Tenant
from memories.privacy.trail import second_person

# So many are named.
SHOWN = 10
_CODE = "approve_privacycase"


class Approver(NamedTuple):
    """`since`: from when, if not now. `is_invited`: has no password yet."""

    operator: Operator
    since: datetime | None
    is_invited: bool


def approvers(first: str, tenant: Tenant | None, *, now: datetime) -> list[Approver]:
    """The operators who can approve an erasure that the operator with the id `first` begins, by name; who can now go
    first. `tenant`: whose case it is, None: of any that they see."""
    rows = Operator.objects.filter(is_active=True, is_staff=True)
    rows = rows.exclude(pk=first) if first else rows
    granted = Q(user_permissions__codename=_CODE) | Q(groups__permissions__codename=_CODE)
    rows = rows.filter(Q(is_superuser=True) | granted)
    if tenant:
        rows = rows.filter(Q(all_tenants=True) | Q(tenants=tenant))
    shown = list(rows.order_by("username").distinct()[:SHOWN])
    # For the others, mostly all, nothing more is to be read.
    lately = second_person.given_lately([operator.pk for operator in shown], at=now) if first else set()
    listed = [
        Approver(
            operator,
            second_person.barred_until(first if operator.pk in lately else "", str(operator.pk), at=now),
            operator.invited_until is not None,
        )
        for operator in shown
    ]
    return sorted(listed, key=lambda approver: (approver.is_invited, approver.since or now))
