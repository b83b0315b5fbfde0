"""The frame of every verb on one fact, and what makes way for a fact that holds."""

import uuid
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation import item_states
from memories.curation.change_sets import LIVE, ChangeSet
from memories.exceptions import Conflict, FactLocked, NotFound, OperatorWord, PersonRestricted, PreconditionFailed
from memories.models import EndUser, Episode, Fact, ReviewItem, Status, Tenant
from memories.models.folding import fold

Change = Callable[[Fact, ChangeSet], None]


def change_fact(
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    verb: str,
    change: Change,
    *,
    actor: Actor,
    now: datetime,
    expected_version: int | None,
    reason: str,
    then: Change | None = None,
    unlocks: bool = False,
) -> Fact:
    """The frame of every verb: lock, check, change, save, revise, `then` the rest, record; all or nothing.

    `unlocks`: the change lifts the lock that a key set, so that the lock does not stand against it.
    """
    changes = ChangeSet(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        fact = locked(fact_id, tenant)
        check_allowed(fact, actor=actor, expected_version=expected_version, unlocks=unlocks)
        was = fact.status
        with changes.changing(fact, verb):
            change(fact, changes)
        if then:
            then(fact, changes)
        item_states.settle(changes)
        if fact.status == Status.PENDING != was:
            item_states.wait_again(fact, now=now)
        audit.record(actor=actor, verb=verb, target=fact, object_id=fact.pk, tenant=fact.tenant, now=now)
    return fact


def locked(fact_id: uuid.UUID, tenant: Tenant | None) -> Fact:
    """The person, then the fact: whoever changes several facts holds the person first, so that none waits for another.

    Errors: NotFound.
    """
    facts = Fact.objects.filter(pk=fact_id)
    if tenant is not None:
        facts = facts.filter(tenant=tenant)
    lock_person(facts.values_list("end_user", flat=True).first())
    fact = facts.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user").first()
    if fact is None:
        raise NotFound
    return fact


def lock_person(person_id: uuid.UUID | None) -> uuid.UUID:
    """Serialise with extraction's commits and other decisions about the person; who that is by now.

    Whoever was merged into another while we waited has their memories there. Errors: NotFound.
    """
    people = EndUser.objects.select_for_update(no_key=True).values_list("merged_into", flat=True)
    found = list(people.filter(pk=person_id)) if person_id else []
    if person_id is None or not found:
        raise NotFound
    return lock_person(found[0]) if found[0] else person_id


def check_allowed(memory: Fact | Episode, *, actor: Actor, expected_version: int | None, unlocks: bool = False) -> None:
    if memory.end_user.restricted_at and not actor.is_operator:
        raise PersonRestricted
    if memory.binding and not actor.is_operator:
        raise OperatorWord
    if isinstance(memory, Fact) and memory.locked and not (actor.is_operator or unlocks):
        raise FactLocked
    if expected_version is not None and expected_version != memory.version:
        raise PreconditionFailed


def rivals_of(fact: Fact, *, now: datetime) -> list[uuid.UUID]:
    """The other active facts that give the same (category, key) another value."""
    if not (fact.key and fact.value):
        return []
    active = Fact.objects.of(fact.tenant, fact.end_user).active(now=now).exclude(Q(pk=fact.pk) | Q(value=""))
    keyed = active.filter(agent_id=fact.agent_id, category=fact.category, key=fact.key)
    return [pk for pk, value in keyed.values_list("pk", "value") if fold(value) != fold(fact.value)]


def approve(fact: Fact, changes: ChangeSet, verb: str = "approve") -> None:
    """A suggestion becomes active, with the trust that it has; nothing refuses it any more."""
    changes.lift_refusals(fact)
    with changes.changing(fact, verb):
        make_active(fact, changes)


def must_be_live(fact: Fact) -> None:
    if fact.status not in LIVE:
        raise Conflict(_("The fact is %(status)s: restore it first.") % {"status": fact.get_status_display().lower()})


def make_active(fact: Fact, changes: ChangeSet) -> None:
    fact.status, fact.flags, fact.last_confirmed_at = Status.ACTIVE, [], changes.now


def make_way(fact: Fact, changes: ChangeSet, *, instead_of: Collection[uuid.UUID] = ()) -> None:
    """What gives the fact's key another value, or stands against it in a conflict, is superseded by it."""
    conflicts = ReviewItem.objects.waiting().filter(fact=fact, kind=ReviewItem.Kind.CONFLICT).exclude(known=None)
    against = [*rivals_of(fact, now=changes.now), *conflicts.values_list("known", flat=True), *instead_of]
    for rival in lock_facts(against):
        if rival.status == Status.ACTIVE:
            changes.supersede(rival, by=fact)


def lock_facts(ids: Collection[uuid.UUID | None]) -> Sequence[Fact]:
    """Those of the facts that still are there, locked in one order; after lock_person()."""
    facts = Fact.objects.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")
    return list(facts.filter(pk__in=[pk for pk in ids if pk]).order_by("pk"))
