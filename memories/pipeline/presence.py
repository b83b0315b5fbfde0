"""Whom a name stands for at this moment: two people may be merged while somebody writes about one of them."""

import uuid

from django.db import connection

from memories.exceptions import NotFound
from memories.models import EndUser

# Weaker than what the commits of extractions take, which go on meanwhile; a merge waits for it, and is waited for.
_HOLD = "SELECT merged_into_id FROM memories_enduser WHERE id = %s FOR KEY SHARE"


def hold(person: EndUser) -> EndUser:
    """The person, or whoever they were merged into, kept from being merged until the transaction's end.

    Whoever begins a session holds its person so: a merge that cannot see the session yet waits for it.
    Errors: NotFound (erased meanwhile).
    """
    found = person.pk
    while into := _merged_into(found):
        found = into
    return person if found == person.pk else EndUser.objects.get(pk=found)


def _merged_into(person: uuid.UUID) -> uuid.UUID | None:
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [person])
        row: tuple[uuid.UUID | None] | None = cursor.fetchone()
    if row is None:
        raise NotFound
    return row[0]
