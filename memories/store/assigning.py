"""Whose items are: gives them to the people whom a tenant's new patterns name, and back to the tenant what they no
longer name; gives a person's namespaces another id, when the old one is free for somebody else."""

import uuid
from collections.abc import Iterable
from datetime import datetime

from django.db import connection

from memories.capture import get_or_create
from memories.exceptions import Erased
from memories.models import EndUser, StoreItem, Tenant
from memories.store import namespaces
from memories.store.namespaces import BadNamespace

# Namespaces of one statement.
_STEP = 1_000
# Where both namespaces have the key, what was written last stays.
_DROP = """
    DELETE FROM memories_storeitem i USING memories_storeitem other
    WHERE i.tenant_id = %(tenant)s AND other.tenant_id = i.tenant_id AND i.key = other.key
        AND ((i.namespace = %(old)s AND other.namespace = %(new)s AND i.updated_at <= other.updated_at)
            OR (i.namespace = %(new)s AND other.namespace = %(old)s AND i.updated_at < other.updated_at))
"""
_MOVE = "UPDATE memories_storeitem SET namespace = %(new)s WHERE tenant_id = %(tenant)s AND namespace = %(old)s"


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


def readdress(person: EndUser, old: str, new: str) -> None:
    """Move the items of the locked person from namespaces that name the old id to those that name the new one.

    Otherwise whoever gets the old id would read them.
    """
    patterns = person.tenant.person_namespaces
    own = StoreItem.objects.filter(tenant=person.tenant, end_user=person).order_by("namespace")
    for namespace in list(own.values_list("namespace", flat=True).distinct()):
        labels = namespace.split(".")
        named = namespaces.person_in(labels, patterns)
        # A label cannot have a period: such an id names nobody in the store.
        if named is None or named.user_id != old or "." in new:
            continue
        labels[named.place] = new
        given: dict[str, uuid.UUID | str] = {"tenant": person.tenant_id, "old": namespace, "new": ".".join(labels)}
        with connection.cursor() as cursor:
            cursor.execute(_DROP, given)
            cursor.execute(_MOVE, given)


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
