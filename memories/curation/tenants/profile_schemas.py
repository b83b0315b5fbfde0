"""Profiles by a tenant's own schema: defined, changed and removed by staff; what they say of people are facts."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.people.external_ids import LONGEST_ID
from memories.curation.tenants.settings import check_not_off_boarded
from memories.exceptions import Conflict, InvalidInput, NotFound, PreconditionFailed
from memories.models import ProfileSchema, Tenant
from memories.profiles import fields_of
from memories.profiles.checking import NAME, checked, checked_name
from memories.text.cleaning import clean

MOST_PROFILES = 20


def put_profile_schema(
    *,
    tenant: Tenant,
    name: str,
    schema: Any,
    actor: Actor,
    now: datetime,
    agent_id: str = "",
    in_context: bool = False,
    expected_version: int | None = None,
) -> tuple[ProfileSchema, bool]:
    """Define a profile, or give it this schema; returns it, and whether it is new.

    Values of a field that is gone are no values of a later field of the same name. Values that the schema no longer
    allows stay as facts, and are not served. `expected_version`: 0 for one that is to be new. The same again leaves no
    trace. Errors: InvalidInput with all places, PreconditionFailed, Conflict (off-boarded, too many).
    """
    named = checked_name(name)
    agent_id = clean(agent_id).lower()
    if len(agent_id) > LONGEST_ID:
        raise InvalidInput.at("/agent_id", _("Use at most %(most)d characters.") % {"most": LONGEST_ID})
    definition = json.dumps(checked(schema), ensure_ascii=False)
    wanted: dict[str, Any] = {"definition": definition, "agent_id": agent_id, "in_context": in_context}
    with transaction.atomic():
        row, is_new = _locked(tenant, named, expected_version=expected_version)
        if not is_new and all(getattr(row, field) == value for field, value in wanted.items()):
            return row, False
        before = {} if is_new else _paths(row)
        for field, value in wanted.items():
            setattr(row, field, value)
        _retire(row, [path for path in before if path not in _paths(row)])
        _save(row, "write", actor=actor, now=now)
    return row, is_new


def delete_profile_schema(
    *, tenant: Tenant, name: str, actor: Actor, now: datetime, expected_version: int | None = None
) -> None:
    """Nothing fills or serves the profile any more; the facts that were its values stay facts.

    Errors: NotFound, PreconditionFailed, Conflict (off-boarded).
    """
    if not NAME.fullmatch(name):
        raise NotFound
    with transaction.atomic():
        row, is_new = _locked(tenant, name, expected_version=None)
        if is_new:
            raise NotFound
        if expected_version is not None and expected_version != row.version:
            raise PreconditionFailed
        _retire(row, list(_paths(row)))
        row.deleted_at, row.schema = now, {"type": "object", "properties": {}}
        _save(row, "delete", actor=actor, now=now)


def profile_schema(tenant: Tenant, name: str) -> ProfileSchema:
    """Errors: NotFound."""
    row = find_profile_schema(tenant, name)
    if row is None:
        raise NotFound
    return row


def find_profile_schema(tenant: Tenant, name: str) -> ProfileSchema | None:
    """Whatever the name is: the database takes no NUL."""
    rows = ProfileSchema.objects.present().filter(tenant=tenant)
    return rows.filter(name=name).first() if NAME.fullmatch(name) else None


def _locked(tenant: Tenant, name: str, *, expected_version: int | None) -> tuple[ProfileSchema, bool]:
    """The row to write, in a transaction that holds the tenant's row, and whether the profile is new."""
    locked = Tenant.objects.select_for_update().get(pk=tenant.pk)
    check_not_off_boarded(locked)
    row = ProfileSchema.objects.filter(tenant=locked, name=name).first()
    is_new = row is None or row.deleted_at is not None
    version = 0 if row is None or is_new else row.version
    if expected_version is not None and expected_version != version:
        raise PreconditionFailed
    if is_new and ProfileSchema.objects.present().filter(tenant=locked).count() >= MOST_PROFILES:
        raise Conflict(_("A tenant can have %(most)d profiles. Remove one first.") % {"most": MOST_PROFILES})
    if row is None:
        return ProfileSchema(tenant=locked, name=name, version=0), True
    row.tenant, row.deleted_at = locked, None if is_new else row.deleted_at
    return row, is_new


def _paths(row: ProfileSchema) -> Mapping[str, Any]:
    return {field.pointer: field for field in fields_of(row)}


def _retire(row: ProfileSchema, paths: list[str]) -> None:
    """What has such a field's key says nothing of a later one."""
    row.lives = {**row.lives, **{path: row.lives.get(path, 0) + 1 for path in paths}}


def _save(row: ProfileSchema, verb: str, *, actor: Actor, now: datetime) -> None:
    row.version += 1
    row.updated_at, row.created_at = now, row.created_at or now
    row.actor_kind, row.actor_id = actor.kind, actor.id
    row.save()
    told = ProfileSchema.objects.present().filter(tenant=row.tenant, in_context=True).exists()
    Tenant.objects.filter(pk=row.tenant_id).update(context_profiles=told)
    audit.record(actor=actor, verb=verb, target=row, object_id=row.pk, tenant=row.tenant, now=now)
