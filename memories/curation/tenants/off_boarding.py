"""Off-boarding a tenant: capture and serve are switched off, its keys revoked and its webhooks disabled;
take_back_tenant() undoes all of it.

Nothing is deleted. The keys that it revokes are marked, until somebody revokes one of them separately.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.tenants import webhooks
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.models import APIKey, EndUser, Fact, Operator, SessionQueue, Status, Tenant


@dataclass(frozen=True)
class OffBoarding:
    """Counts of what off-boarding a tenant would affect now."""

    keys: int
    people: int
    facts: int
    waiting: int
    operators: int


def preview_off_boarding(tenant: Tenant, *, now: datetime) -> OffBoarding:
    """Keys to be revoked, people and facts that stay, sessions that wait for extraction, operators limited to it."""
    return OffBoarding(
        keys=_usable(tenant, now=now).count(),
        people=EndUser.objects.of(tenant).count(),
        facts=Fact.objects.filter(tenant=tenant, status=Status.ACTIVE).count(),
        waiting=SessionQueue.objects.filter(session__tenant=tenant, due_at__isnull=False, parked_at=None).count(),
        operators=Operator.objects.filter(all_tenants=False, tenants=tenant).count(),
    )


def off_board_tenant(*, tenant_id: uuid.UUID, expected_keys: int | None, actor: Actor, now: datetime) -> Tenant:
    """Switch the tenant's capture and serve off and revoke its keys, all at once.

    `expected_keys`: the number that the operator saw, None for a tool that saw none. Errors: NotFound; Conflict when it
    is off-boarded already; PreconditionFailed when there are more or fewer keys by now.
    """
    with transaction.atomic():
        tenant = _locked(tenant_id)
        if tenant.offboarded_at:
            raise Conflict(_("This tenant is off-boarded already."))
        revoked = _usable(tenant, now=now).update(revoked_at=now, revoked_with_tenant=True)
        if expected_keys is not None and revoked != expected_keys:
            raise PreconditionFailed
        tenant.before_offboarding = {"capture": tenant.capture, "serve": tenant.serve}
        tenant.capture = tenant.serve = False
        tenant.offboarded_at = now
        webhooks.off_board(tenant)
        _save(tenant, "off_board", revoked, actor=actor, now=now)
    return tenant


def take_back_tenant(*, tenant_id: uuid.UUID, actor: Actor, now: datetime) -> Tenant:
    """Undo the off-boarding: capture and serve as they were, and its keys work again.

    Those that expired do not, nor those that somebody revoked before or meanwhile.

    Errors: NotFound; Conflict when the tenant is not off-boarded.
    """
    with transaction.atomic():
        tenant = _locked(tenant_id)
        if not tenant.offboarded_at:
            raise Conflict(_("This tenant is not off-boarded."))
        marked = APIKey.objects.filter(tenant=tenant, revoked_with_tenant=True)
        given_back = marked.update(revoked_at=None, revoked_with_tenant=False)
        tenant.capture, tenant.serve = (bool(tenant.before_offboarding.get(name)) for name in ("capture", "serve"))
        tenant.offboarded_at, tenant.before_offboarding = None, {}
        webhooks.take_back(tenant)
        _save(tenant, "take_back", given_back, actor=actor, now=now)
    return tenant


def _locked(tenant_id: uuid.UUID) -> Tenant:
    tenant = Tenant.objects.select_for_update(no_key=True).filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound
    return tenant


def _usable(tenant: Tenant, *, now: datetime) -> QuerySet[APIKey]:
    unexpired = Q(expires_at=None) | Q(expires_at__gt=now)
    return APIKey.objects.filter(unexpired, tenant=tenant, revoked_at=None)


def _save(tenant: Tenant, verb: str, keys: int, *, actor: Actor, now: datetime) -> None:
    tenant.save(update_fields=["capture", "serve", "offboarded_at", "before_offboarding"])
    audit.record(
        actor=actor, verb=verb, target=tenant, object_id=tenant.pk, tenant=tenant, now=now, counts={"keys": keys}
    )
