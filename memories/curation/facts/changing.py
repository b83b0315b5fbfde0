"""The frame of every verb on one fact, and how other facts make way for the one that is chosen.

Lock order, here and in extraction's commits: the person, then facts in the order of their ids, then review items.
"""

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.review import item_states
from memories.exceptions import Conflict, FactLocked, NotFound, OperatorWord, PersonRestricted, PreconditionFailed
from memories.facts.write import LIVE
from memories.models import ActorKind, EndUser, Episode, Fact, FactRevision, ReviewItem, Source, Status, Tenant, Trust
from memories.models.folding import fold


@contextmanager
def changing_fact(
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    verb: str,
    *,
    actor: Actor,
    now: datetime,
    expected_version: int | None,
    reason: str = "",
    unlocks: bool = False,
    confirmed: Collection[str] = (),
) -> Iterator[Fact]:
    """The frame for a block that changes the fact alone: deciding_fact(), and save the fact as its next version."""
    with (
        deciding_fact(
            fact_id,
            tenant,
            verb,
            actor=actor,
            now=now,
            expected_version=expected_version,
            reason=reason,
            unlocks=unlocks,
            confirmed=confirmed,
        ) as (fact, changes),
        changes.changing(fact, verb),
    ):
        yield fact


@contextmanager
def deciding_fact(
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    verb: str,
    *,
    actor: Actor,
    now: datetime,
    expected_version: int | None,
    reason: str = "",
    unlocks: bool = False,
    confirmed: Collection[str] = (),
) -> Iterator[tuple[Fact, Changes]]:
    """Lock and check the fact, let the block write, settle the questions that this answers, write the audit event.

    All or nothing. `unlocks`: the change lifts the lock that a key set, so the lock does not forbid it. `confirmed`:
    Changes. Errors: NotFound, PersonRestricted, OperatorWord, FactLocked, PreconditionFailed.
    """
    changes = Changes(actor=actor, now=now, reason=reason, confirmed=confirmed)
    with transaction.atomic():
        fact = locked_fact(fact_id, tenant)
        check_allowed(fact, actor=actor, expected_version=expected_version, unlocks=unlocks)
        status_before = fact.status
        yield fact, changes
        item_states.settle(changes)
        if fact.status == Status.PENDING != status_before:
            item_states.wait_again(fact, now=now)
        changes.record(verb, fact)


def locked_fact(fact_id: uuid.UUID, tenant: Tenant | None) -> Fact:
    """Lock the person, then the fact. Errors: NotFound."""
    facts = Fact.objects.filter(pk=fact_id)
    if tenant is not None:
        facts = facts.filter(tenant=tenant)
    lock_person(facts.values_list("end_user", flat=True).first())
    fact = facts.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user").first()
    if fact is None:
        raise NotFound
    return fact


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


def lock_facts(ids: Collection[uuid.UUID | None]) -> Sequence[Fact]:
    """Lock those of the facts that still exist, in the order of their ids; after lock_person()."""
    facts = Fact.objects.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")
    return list(facts.filter(pk__in=[pk for pk in ids if pk]).order_by("pk"))


def check_allowed(memory: Fact | Episode, *, actor: Actor, expected_version: int | None, unlocks: bool = False) -> None:
    """Errors: PersonRestricted, OperatorWord and FactLocked for a key; PreconditionFailed."""
    if memory.end_user.restricted_at and not actor.is_operator:
        raise PersonRestricted
    if memory.binding and not actor.is_operator:
        _check_own_word(memory, actor)
    if isinstance(memory, Fact) and memory.locked and not (actor.is_operator or unlocks):
        raise FactLocked
    if expected_version is not None and expected_version != memory.version:
        raise PreconditionFailed


def _check_own_word(memory: Fact | Episode, actor: Actor) -> None:
    """Errors: OperatorWord. Of binding words the person may change their own, unless an operator keeps it."""
    if not (isinstance(memory, Fact) and memory.is_persons_word):
        raise OperatorWord
    if not actor.is_person:
        raise OperatorWord(_("The person stated this on their own page. Only they or an operator can change it."))


def is_own(fact: Fact, actor: Actor) -> bool:
    """Whether the key stated the fact, and all of its versions are the key's. A binding or locked one is nobody's."""
    if fact.binding or fact.locked or actor.kind != ActorKind.KEY:
        return False
    versions = FactRevision.objects.filter(fact=fact)
    others = versions.exclude(actor_kind=ActorKind.KEY, actor_id=actor.id)
    return versions.filter(version=1, verb="add").exists() and not others.exists()


def must_be_live(fact: Fact) -> None:
    if fact.status not in LIVE:
        raise Conflict(_("The fact is %(status)s. Restore it first.") % {"status": fact.get_status_display().lower()})


def rivals_of(fact: Fact, *, now: datetime) -> list[uuid.UUID]:
    """The other active facts that give the same (category, key) another value."""
    if not (fact.key and fact.value):
        return []
    active = Fact.objects.of(fact.tenant, fact.end_user).active(now=now).exclude(Q(pk=fact.pk) | Q(value=""))
    same_key = active.filter(agent_id=fact.agent_id, category=fact.category, key=fact.key)
    return [pk for pk, value in same_key.values_list("pk", "value") if fold(value) != fold(fact.value)]


def check_no_rival(facts: Sequence[Fact], *, now: datetime) -> None:
    """Errors: Conflict when a fact beyond these gives one of their keys another value by now."""
    own = {fact.pk for fact in facts}
    if any(set(rivals_of(fact, now=now)) - own for fact in facts if fact.status == Status.ACTIVE):
        raise Conflict(
            _("Another fact now gives one of the keys a different value. Correct or forget that fact first.")
        )


def make_way(fact: Fact, changes: Changes, *, instead_of: Collection[uuid.UUID] = ()) -> None:
    """Supersede what gives the fact's key another value, and what contradicts it in an open conflict.

    An agent's fact takes no place of the person's own: that agent is told it instead (FactQuerySet.latest_for()).
    """
    conflicts = ReviewItem.objects.waiting().filter(fact=fact, kind=ReviewItem.Kind.CONFLICT).exclude(known=None)
    against = [*rivals_of(fact, now=changes.now), *conflicts.values_list("known", flat=True), *instead_of]
    for rival in lock_facts(against):
        if rival.status == Status.ACTIVE and rival.can_be_superseded_by(fact):
            changes.supersede(rival, by=fact)


def approve(fact: Fact, changes: Changes, verb: str = "approve") -> None:
    """Make a suggestion active, with the trust that it has; lift what refuses it."""
    changes.remove_refusals_of(fact)
    with changes.changing(fact, verb):
        fact.status, fact.flags, fact.last_confirmed_at = Status.ACTIVE, [], changes.now


def state_binding(fact: Fact, content: str, *, actor: Actor, now: datetime) -> None:
    """Give the fact this text, as the word of an operator or of the person: no job and no key changes it from now
    on."""
    if fold(content) != fold(fact.content):
        # Value and triples were those of the old text; the key stays, so that no other value takes this fact's place.
        fact.value, fact.triples = "", None
    fact.say(content)
    fact.flags, fact.binding = [], True
    fact.source, fact.trust = (Source.PERSON, Trust.USER) if actor.is_person else (Source.CORRECTED, Trust.OPERATOR)
    fact.confidence = fact.stated_confidence = 1.0
    fact.last_confirmed_at = now
