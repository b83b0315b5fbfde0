"""Two people and all of their sessions, locked for as long as a merge of them, or its undo, takes."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.db import OperationalError
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils.translation import gettext as _

from memories.curation.people_errors import PeopleBusy, PersonMerged
from memories.exceptions import Conflict, NotFound, PersonRestricted
from memories.models import EndUser, SessionQueue, WorkingMemory
from memories.pipeline.giving_way import give_way, is_held

T = TypeVar("T")
TRIES = 5
# Shorter than what PostgreSQL waits before it looks for a deadlock: a merge gives way to whoever posts, never a post.
PATIENCE = "400ms"


@dataclass(frozen=True)
class Pair:
    """Who stays, and whose memories become theirs."""

    survivor: EndUser
    merged: EndUser

    @property
    def people(self) -> tuple[EndUser, EndUser]:
        return self.survivor, self.merged


def patiently(act: Callable[[], T]) -> T:
    """What `act()` returns, as by give_way(). Errors: PeopleBusy."""
    try:
        return give_way(act, lock_timeout=PATIENCE, pauses=[0.0] * (TRIES - 1))
    except OperationalError as error:
        if not is_held(error):
            raise
        raise PeopleBusy from error


def lock(survivor: uuid.UUID, merged: uuid.UUID) -> Pair:
    """Both, with the rows of their sessions: sessions first, then the people, as everybody takes these locks.

    The people are locked against new sessions, too; of one begun just before, whoever posts to it and we wait for each
    other, and we give way. Errors: NotFound, Conflict (of different tenants, or one and the same), PersonRestricted.
    """
    _lock_sessions(survivor, merged)
    rows = EndUser.objects.select_for_update(of=("self",)).select_related("tenant")
    people = {person.pk: person for person in rows.filter(pk__in=[survivor, merged]).order_by("pk")}
    if not {survivor, merged} <= people.keys():
        raise NotFound
    pair = Pair(people[survivor], people[merged])
    if survivor == merged or pair.survivor.tenant_id != pair.merged.tenant_id:
        raise Conflict(_("Only two different end users of one tenant can be merged."))
    if any(person.restricted_at for person in pair.people):
        raise PersonRestricted(_("One of the two is restricted while a privacy case is open: merge them after it."))
    return pair


def check_present(pair: Pair) -> None:
    """Errors: PersonMerged when one of them leads to somebody else already."""
    if any(person.merged_into_id for person in pair.people):
        raise PersonMerged(_("One of the two has been merged already: open the person that they became."))


def begin_anew(pair: Pair) -> None:
    """Throw away what is at work on memories of either: it was begun about another person than they are now.

    Both generations become one that neither had, so an embedder that read a row of the one cannot take it for the
    other's. Leases end: what was under way is due again at once, and its attempt was not the batch's fault.
    """
    generation = max(person.generation for person in pair.people) + 1
    for person in pair.people:
        person.generation = generation
    EndUser.objects.filter(pk__in=[person.pk for person in pair.people]).update(generation=generation)
    for model in (SessionQueue, WorkingMemory):
        leased = model.objects.filter(session__end_user__in=pair.people, lease_token__isnull=False)
        leased.update(lease_token=None, lease_until=None, woken_at=None, attempts=Greatest(F("attempts") - 1, 0))


def _lock_sessions(*people: uuid.UUID) -> None:
    rows = SessionQueue.objects.select_for_update(of=("self", "session")).filter(session__end_user__in=people)
    locked = {row.pk for row in rows.select_related("session").order_by("pk")}
    list(WorkingMemory.objects.select_for_update(of=("self",)).filter(pk__in=locked).order_by("pk").values_list("pk"))
