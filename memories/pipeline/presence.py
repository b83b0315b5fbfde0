"""Whom a name stands for at this moment: two people may be merged, or an id changed, while somebody writes."""

import uuid

from django.db import connection

from memories.models import EndUser

# Weaker than what the commits of extractions take, which go on meanwhile; a merge waits for it, and is waited for.
_HOLD = "SELECT external_id, merged_into_id FROM memories_enduser WHERE id = %s FOR KEY SHARE"


def hold(named: EndUser) -> EndUser | None:
    """Whom this name stands for, kept from being merged or called otherwise until the transaction's end.

    None: it is nobody's name any more, and has to be looked up again. Whoever begins a session holds its person so: a
    merge that cannot see the session yet waits for it.
    """
    found = _held(named.pk)
    if found is None or found[0] != named.external_id:
        return None
    person = named.pk
    while found and found[1]:
        person = found[1]
        found = _held(person)
    return named if person == named.pk else EndUser.objects.filter(pk=person).first()


def _held(person: uuid.UUID) -> tuple[str, uuid.UUID | None] | None:
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [person])
        row: tuple[str, uuid.UUID | None] | None = cursor.fetchone()
    return row
