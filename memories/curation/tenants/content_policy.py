"""Versions of a tenant's content policy: each save is a new one, and an older one is restored by saving it again."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.content_policy import categories
from memories.curation.tenants.settings import check_not_off_boarded
from memories.exceptions import NotFound, PreconditionFailed
from memories.models import ContentPolicy, Tenant


def current_policy(tenant: Tenant) -> ContentPolicy | None:
    """The version in force; None where the tenant never had a policy."""
    return ContentPolicy.objects.filter(tenant=tenant, version=tenant.policy_version).first()


def put_policy(
    *,
    tenant: Tenant,
    given: Sequence[Mapping[str, Any]],
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    restored: int | None = None,
) -> ContentPolicy:
    """Make these categories the tenant's policy from the next text on; what is stored already stays.

    No categories: nothing is forbidden any more. The same categories as before leave no trace. Errors: InvalidInput
    with all places, PreconditionFailed, Conflict (off-boarded).
    """
    wanted = categories.checked(given)
    with transaction.atomic():
        locked = Tenant.objects.select_for_update().get(pk=tenant.pk)
        check_not_off_boarded(locked)
        if expected_version is not None and expected_version != locked.policy_version:
            raise PreconditionFailed
        before = current_policy(locked)
        if before and before.categories == wanted:
            return before
        row = ContentPolicy.objects.create(
            tenant=locked,
            version=locked.policy_version + 1,
            categories=wanted,
            changes=categories.changes(before.categories if before else [], wanted),
            restored=restored,
            actor_kind=actor.kind,
            actor_id=actor.id,
            created_at=now,
        )
        locked.policy_version = tenant.policy_version = row.version
        locked.save(update_fields=["policy_version"])
        counts = {name: len(names) for name, names in row.changes.items()}
        audit.record(actor=actor, verb="write", target=row, object_id=row.pk, tenant=locked, now=now, counts=counts)
    return row


def restore_policy(
    *, tenant: Tenant, version: int, actor: Actor, now: datetime, expected_version: int | None = None
) -> ContentPolicy:
    """Make an older version the policy again, as a new version. Errors: NotFound, those of put_policy()."""
    row = ContentPolicy.objects.filter(tenant=tenant, version=version).first()
    if row is None:
        raise NotFound
    return put_policy(
        tenant=tenant,
        given=row.categories,
        actor=actor,
        now=now,
        expected_version=expected_version,
        restored=row.version,
    )
