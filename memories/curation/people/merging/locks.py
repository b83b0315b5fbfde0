"""Locks two people and all of their sessions for a merge of them, or its undo."""

import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.db import OperationalError
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils.translation import gettext as _

from memories.curation.people.errors import PeopleBusy
from memories.db.lock_timeouts import is_lock_error, retry_while_locked
from memories.exceptions import Conflict, NotFound, PersonRestricted
from memories.models import ChangeSet, Dream, EndUser, SessionQueue, WorkingMemory
from memories.queue import leases

T = TypeVar("T")
TRIES = 5
# Locked sessions that are in memory at once.
ROWS = 2_000
# Shorter than PostgreSQL's deadlock_timeout: of a merge and a post that wait for each other, the merge is cancelled.
LOCK_TIMEOUT = "400ms"


@dataclass(frozen=True)
class Pair:
    """Who stays, and whose memories become theirs."""

    survivor: EndUser
    merged: EndUser

    @property
    def people(self) -> tuple[EndUser, EndUser]:
        return self.survivor, self.merged


def pair_of(done: ChangeSet) -> Pair:
    """The two of a merge. Errors: NotFound."""
    if done.end_user is None or done.merged is None:
        raise NotFound
    return Pair(done.end_user, done.merged)


def retry_when_locked(act: Callable[[], T]) -> T:
    """What `act()` returns, tried again as retry_while_locked() does. Errors: PeopleBusy."""
    try:
        return retry_while_locked(act, lock_timeout=LOCK_TIMEOUT, pauses=[0.0] * (TRIES - 1))
    except OperationalError as error:
        if not is_lock_error(error):
            raise
        raise PeopleBusy from error


def lock(survivor: uuid.UUID, merged: uuid.UUID) -> Pair:
    """Lock the sessions of both, then the people: the order that all code keeps.

    The locks on the people forbid new sessions, too. If one began just before, whoever posts to it and we can wait for
    each other; then our lock timeout ends the wait. Errors: NotFound, Conflict (of different tenants, or one and the
    same), PersonRestricted.
    """
    sessions = SessionQueue.objects.select_for_update(of=("self", "session"))
    sessions = sessions.filter(session__end_user__in=[survivor, merged]).order_by("pk")
    windows = WorkingMemory.objects.select_for_update(of=("self",)).filter(session__end_user__in=[survivor, merged])
    # A person may have a hundred thousand sessions: as little of each as can be, and some thousand at a time.
    for rows in (sessions.select_related("session").only("session__turn_count"), windows.order_by("pk").only("pk")):
        deque(rows.iterator(ROWS), maxlen=0)
    locked = EndUser.objects.select_for_update(of=("self",)).select_related("tenant")
    people = {person.pk: person for person in locked.filter(pk__in=[survivor, merged]).order_by("pk")}
    if not {survivor, merged} <= people.keys():
        raise NotFound
    pair = Pair(people[survivor], people[merged])
    if survivor == merged or pair.survivor.tenant_id != pair.merged.tenant_id:
        raise Conflict(_("Only two different end users of one tenant can be merged."))
    if any(person.restricted_at for person in pair.people):
        raise PersonRestricted(
            _("One of the two is restricted while a privacy case is open. Merge them when the case is closed.")
        )
    return pair


def discard_work_in_flight(pair: Pair) -> None:
    """Make workers discard what they began for either person, since the two are other people now.

    Both get one generation that neither had, so an embedder that read a row of the one cannot write it as the other's.
    Leases end: what was in flight is due again at once, and its attempt does not count.
    """
    generation = max(person.generation for person in pair.people) + 1
    for person in pair.people:
        person.generation = generation
    EndUser.objects.filter(pk__in=[person.pk for person in pair.people]).update(generation=generation)
    for model in (SessionQueue, WorkingMemory):
        leased = model.objects.leased().filter(session__end_user__in=pair.people)
        leases.revoke(leased, woken_at=None, attempts=Greatest(F("attempts") - 1, 0))
    # Also those that wait for approval: they propose for the files of one what the other said.
    Dream.objects.filter(end_user__in=pair.people).abandon()
