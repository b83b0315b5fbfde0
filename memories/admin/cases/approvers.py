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
    lately = second_person.given_lately([one.pk for one in shown], at=now) if first else set()
    found = [_approver(first if one.pk in lately else "", one, now) for one in shown]
    return sorted(found, key=lambda one: (one.is_invited, one.since or now))


def _approver(first: str, operator: Operator, now: datetime) -> Approver:
    since = second_person.barred_until(first, str(operator.pk), at=now)
    return Approver(operator, since, operator.invited_until is not None)
