"""The frame of every verb on one fact, and how other facts make way for the one that is chosen.

Lock order, here and in extraction's commits: the person, then facts in the order of their ids, then review items.
"""

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.change_sets import Changes
from memories.curation.review import item_states
from memories.curation.writing import locked_row
from memories.exceptions import Conflict, FactLocked, OperatorWord, PersonRestricted, PreconditionFailed
from memories.facts import policies
from memories.facts.candidate import Candidate
from memories.facts.decision import Decision, decide
from memories.facts.existing import Comparison, rivals_of
from memories.facts.timeline import Interval
from memories.facts.write import texts_of
from memories.models import ActorKind, Episode, Fact, FactRevision, ReviewItem, Source, Status, Tenant, Trust
from memories.models.folding import fold
from memories.profiles import field_of


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
        fact = locked_row(Fact, fact_id, tenant=tenant)
        check_allowed(fact, actor=actor, expected_version=expected_version, unlocks=unlocks)
        status_before = fact.status
        yield fact, changes
        item_states.close_answered_items(changes)
        if fact.status == Status.PENDING != status_before:
            item_states.wait_again(fact, now=now)
        changes.record(verb, fact)


def lock_facts(ids: Collection[uuid.UUID | None]) -> Sequence[Fact]:
    """Lock those of the facts that still exist, in the order of their ids; after lock_person()."""
    facts = Fact.objects.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")
    return list(facts.filter(pk__in=[pk for pk in ids if pk]).order_by("pk"))


def check_allowed(memory: Fact | Episode, *, actor: Actor, expected_version: int | None, unlocks: bool = False) -> None:
    """Errors: PersonRestricted, OperatorWord and FactLocked for a key; PreconditionFailed."""
    if memory.end_user.restricted_at and not actor.is_operator:
        raise PersonRestricted
    if memory.binding and not actor.is_operator:
        # Of binding words the person may change their own, unless an operator keeps it.
        if not (isinstance(memory, Fact) and memory.is_persons_word):
            raise OperatorWord
        if not actor.is_person:
            raise OperatorWord(_("The person stated this on their own page. Only they or an operator can change it."))
    if isinstance(memory, Fact) and memory.locked and not (actor.is_operator or unlocks):
        raise FactLocked
    if expected_version is not None and expected_version != memory.version:
        raise PreconditionFailed


def is_own(fact: Fact, actor: Actor) -> bool:
    """Whether the key stated the fact, and all of its versions are the key's. A binding or locked one is nobody's."""
    if fact.binding or fact.locked or actor.kind != ActorKind.KEY:
        return False
    versions = FactRevision.objects.filter(fact=fact)
    others = versions.exclude(actor_kind=ActorKind.KEY, actor_id=actor.id)
    return versions.filter(version=1, verb="add").exists() and not others.exists()


def must_be_live(fact: Fact) -> None:
    if fact.status not in Status.LIVE:
        raise Conflict(_("The fact is %(status)s. Restore it first.") % {"status": fact.get_status_display().lower()})


def check_no_rival(facts: Sequence[Fact], *, now: datetime) -> None:
    """Errors: Conflict when a fact beyond these gives one of their keys another value by now."""
    own = {fact.pk for fact in facts}
    rivals = own_rivals([fact for fact in facts if fact.status == Status.ACTIVE], now=now)
    if any({one.pk for one in some} - own for some in rivals.values()):
        raise Conflict(
            _("Another fact now gives one of the keys a different value. Correct or forget that fact first.")
        )


def own_rivals(facts: Collection[Fact], *, now: datetime) -> dict[uuid.UUID, list[Fact]]:
    """By fact, the other active facts of its agent that give its key another value; one query for all."""
    found = rivals_of(facts, now=now)
    return {
        fact.pk: [
            one
            for one in found[fact.pk]
            if one.agent_id == fact.agent_id and one.status == Status.ACTIVE and one.value and fact.value
        ]
        for fact in facts
    }


def supersede_rivals(fact: Fact, changes: Changes, *, instead_of: Collection[uuid.UUID] = ()) -> None:
    """Supersede what gives the fact's key another value, and what contradicts it in an open conflict.

    An agent's fact takes no place of the person's own: that agent is told it instead (FactQuerySet.latest_for()).
    """
    conflicts = ReviewItem.objects.waiting().filter(fact=fact, kind=ReviewItem.Kind.CONFLICT).exclude(known=None)
    by_key = [one.pk for one in own_rivals([fact], now=changes.now)[fact.pk]]
    rivals = lock_facts([*by_key, *conflicts.values_list("known", flat=True), *instead_of])
    for rival in chosen(fact, rivals).supersedes:
        changes.supersede(rival, by=fact)


def gives_way(rival: Fact, fact: Fact) -> bool:
    return rival.pk != fact.pk and rival.status == Status.ACTIVE and rival.can_be_superseded_by(fact)


def chosen(fact: Fact, rivals: Sequence[Fact], *, interval: Interval | None = None) -> Decision:
    """What becomes of the fact if an operator lets it be served, or chooses it, beside these rivals."""
    compared = Comparison(rivals=[one for one in rivals if gives_way(one, fact)], interval=interval)
    return decide(Candidate.of(fact), compared, policies.APPROVAL, trusts_assistant=False)


def check_policy(fact: Fact) -> None:
    """What waited since before the content policy is not remembered either. Errors: ContentForbidden."""
    content_policy.check(fact.tenant, Road.STATEMENT, texts_of(fact))


def approve(fact: Fact, changes: Changes, verb: str = "approve") -> None:
    """Make a suggestion active, with the trust that it has; lift what refuses it. Errors: ContentForbidden."""
    check_policy(fact)
    changes.remove_refusals_of(fact)
    with changes.changing(fact, verb):
        fact.status, fact.flags, fact.last_confirmed_at = Status.ACTIVE, [], changes.now


def value_of_words(fact: Fact, content: str) -> str:
    """The value of the fact's key if it says this: of a profile's field what the new words tell, else none."""
    field = field_of(fact.tenant, fact.key)
    return field.value_in(content, instead_of=fact.content, value=fact.value) if field else ""


def state_binding(fact: Fact, content: str, *, actor: Actor, now: datetime) -> None:
    """Give the fact this text, as the word of an operator or of the person: no job and no key changes it from now
    on."""
    if fold(content) != fold(fact.content):
        # Value and triples were those of the old text; the key stays, so that no other value takes this fact's place.
        fact.value, fact.triples = value_of_words(fact, content), None
    fact.set_text(content)
    fact.flags, fact.binding = [], True
    fact.source, fact.trust = (Source.PERSON, Trust.USER) if actor.is_person else (Source.CORRECTED, Trust.OPERATOR)
    fact.confidence = fact.stated_confidence = 1.0
    fact.last_confirmed_at = now
