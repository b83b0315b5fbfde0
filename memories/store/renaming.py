"""Gives the namespaces of a person another id, when the person gets one and the old id is free for somebody else."""

from uuid import UUID

from django.db import connection

from memories.models import EndUser, StoreItem
from memories.store import namespaces

# Where both namespaces have the key, what was written last stays.
_DROP = """
    DELETE FROM memories_storeitem i USING memories_storeitem other
    WHERE i.tenant_id = %(tenant)s AND other.tenant_id = i.tenant_id AND i.key = other.key
        AND ((i.namespace = %(old)s AND other.namespace = %(new)s AND i.updated_at <= other.updated_at)
            OR (i.namespace = %(new)s AND other.namespace = %(old)s AND i.updated_at < other.updated_at))
"""
_MOVE = "UPDATE memories_storeitem SET namespace = %(new)s WHERE tenant_id = %(tenant)s AND namespace = %(old)s"


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
        given: dict[str, UUID | str] = {"tenant": person.tenant_id, "old": namespace, "new": ".".join(labels)}
        with connection.cursor() as cursor:
            cursor.execute(_DROP, given)
            cursor.execute(_MOVE, given)
