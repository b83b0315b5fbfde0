"""One write of a person's memory: how it begins, the row that it is about, and what became of it.

Everybody locks in this order, extraction's commits too: sessions, people, their rows in the order of their ids, review
items.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import models, transaction

from memories.audit import Actor
from memories.curation.people.errors import PersonMerged
from memories.curation.statements.provenance import lock_sessions
from memories.exceptions import NotFound, PersonRestricted
from memories.models import EndUser, Tenant

Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True)
class WriteResult(Generic[Row]):
    """What became of a write: the row as it is stored, whether it is a new one, and how many secrets were cut out."""

    row: Row
    is_new: bool = True
    redactions: int = 0


@contextmanager
def open_write(
    person: EndUser, actor: Actor | None, *, turns: Sequence[uuid.UUID] = (), follows_merge: bool = False
) -> Iterator[EndUser]:
    """Begin a write about the person, all or nothing: lock the sessions of these turns, then the person. Yields who has
    their memories now. Two writes, or one and an extraction, follow each other.

    Errors: NotFound (erased), PersonMerged unless it follows a merge, PersonRestricted; an operator as the `actor`
    may write about somebody who is restricted.
    """
    with transaction.atomic():
        lock_sessions(person, turns)
        yield locked_person(person.pk, actor, follows_merge=follows_merge)


def locked_person(person_id: uuid.UUID, actor: Actor | None, *, follows_merge: bool = False) -> EndUser:
    """The person, locked; in a transaction. Errors: as open_write()."""
    owner = EndUser.objects.select_related("tenant").get(pk=lock_person(person_id))
    if owner.pk != person_id and not follows_merge:
        raise PersonMerged
    if owner.restricted_at and not (actor and actor.is_operator):
        raise PersonRestricted
    return owner


def lock_person(person_id: uuid.UUID | None) -> uuid.UUID:
    """Serialise with extraction's commits and other decisions about the person. Returns the id of who was locked.

    If the person was merged into another one while we waited, that one is locked, too, and holds their memories.
    Errors: NotFound.
    """
    people = EndUser.objects.select_for_update(no_key=True).values_list("merged_into", flat=True)
    found = list(people.filter(pk=person_id)) if person_id else []
    if person_id is None or not found:
        raise NotFound
    return lock_person(found[0]) if found[0] else person_id


def locked_row(model: type[Row], row_id: uuid.UUID, *, tenant: Tenant | None = None) -> Row:
    """Lock the person whose row it is, then the row; in a transaction. Errors: NotFound."""
    rows: Any = model._default_manager.filter(pk=row_id, **({"tenant": tenant} if tenant else {}))
    owner = lock_person(rows.values_list("end_user", flat=True).first())
    # Of another owner: that a merge was undone meanwhile is as good as gone.
    locked = rows.filter(end_user=owner).select_for_update(of=("self",), no_key=True)
    found: Row | None = locked.select_related("tenant", "end_user").first()
    if found is None:
        raise NotFound
    return found
