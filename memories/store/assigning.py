"""Gives items to the people whom a tenant's new patterns name, and back to the tenant what they no longer name."""

import uuid
from collections.abc import Iterable
from datetime import datetime

from memories.capture import get_or_create
from memories.exceptions import Erased
from memories.models import StoreItem, Tenant
from memories.store import namespaces
from memories.store.namespaces import BadNamespace

# Namespaces of one statement.
_STEP = 1_000


def assign(tenant: Tenant, *, now: datetime) -> int:
    """Call it in the transaction that changes the patterns, with the tenant locked: writes wait for it. How many items
    changed hands.

    What the new patterns give to somebody who was erased, and whose id is refused, is deleted.
    """
    changed = 0
    ids: dict[str, uuid.UUID | None] = {}
    rows = StoreItem.objects.filter(tenant=tenant).order_by("namespace").values_list("namespace", "end_user").distinct()
    moves: dict[uuid.UUID | None, list[str]] = {}
    gone: list[str] = []
    for namespace, owner in rows:
        user_id = _user_id(namespace, tenant)
        if user_id and user_id not in ids:
            ids[user_id] = _person(tenant, user_id, now)
        wanted = ids[user_id] if user_id else None
        if user_id and wanted is None:
            gone.append(namespace)
        elif wanted != owner:
            moves.setdefault(wanted, []).append(namespace)
    for wanted, found in moves.items():
        for part in _parts(found):
            own = StoreItem.objects.filter(tenant=tenant, namespace__in=part)
            changed += own.update(end_user=wanted)
    for part in _parts(gone):
        changed += StoreItem.objects.filter(tenant=tenant, namespace__in=part).delete()[0]
    return changed


def _user_id(namespace: str, tenant: Tenant) -> str:
    """Whom the namespace names; empty: nobody, or what cannot be an id."""
    named = namespaces.person_in(namespace.split("."), tenant.person_namespaces)
    if named is None:
        return ""
    try:
        namespaces.check_person(named)
    except BadNamespace:
        return ""
    return named.user_id


def _person(tenant: Tenant, user_id: str, now: datetime) -> uuid.UUID | None:
    try:
        person, _ = get_or_create.end_user(tenant=tenant, user_id=user_id, now=now)
    except Erased:
        return None
    found: uuid.UUID = person.pk
    return found


def _parts(found: list[str]) -> Iterable[list[str]]:
    return (found[start : start + _STEP] for start in range(0, len(found), _STEP))
