"""Editing and correcting a fact: keys and operators edit it; an operator's correction overrules every job and key."""

import uuid
from collections.abc import Iterable
from copy import copy
from datetime import datetime
from typing import Any

from django.db import transaction

from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts.adding import check_own_id, folded_key, of_field
from memories.curation.facts.changing import (
    deciding_fact,
    lock_facts,
    must_be_live,
    state_binding,
    value_of_words,
)
from memories.curation.facts.readers import check_readers
from memories.curation.statements import guarding, provenance
from memories.curation.statements.provenance import Provenance, RelationDraft
from memories.curation.statements.scrubbing import scrubbed_fact
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.exceptions import DuplicateFact, ReviewNeeded
from memories.facts.existing import protected_twin, rivals_of
from memories.models import Fact, FactQuerySet, RelationType, Status, Tenant
from memories.models.folding import fold
from memories.models.memories.refusals import refusal_key_of_text
from memories.text.secrets.scrubbing import scrubbed_text

# What a fact says by its key.
_KEYED = ("category", "key", "value")


def edit_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    changes: dict[str, Any],
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
    write_trust: WriteTrust = AS_USER,
    visible: FactQuerySet | None = None,
) -> Fact:
    """Set the named fields of a live fact; a key may change one that a key locked only when it lifts the lock.

    `evidence` (ids of turns) is added to what it rests on; `relations` (RelationDrafts) become those that it states,
    to facts among the `visible` ones (None: all of the person's). `valid_from` None: since it was first stated.

    Errors: NotFound, PersonRestricted, OperatorWord, FactLocked, PreconditionFailed, Conflict, DuplicateFact,
    InvalidInput (readers, what it rests on), ReviewNeeded when that trust may not change it, when the new text speaks
    to a model and no operator wrote it, or when it contradicts a protected fact.
    """
    stated = scrubbed_fact(changes)
    turns: list[uuid.UUID] = stated.pop("evidence", [])
    relations: list[RelationDraft] | None = stated.pop("relations", None)
    given = Provenance(evidence=turns, relations=relations or ())
    named: dict[str, Any] = {"expected_version": expected_version, "reason": reason}
    named["unlocks"] = stated.get("locked") is False
    with transaction.atomic():
        # Before the person, as everybody locks them.
        if given.evidence and (seen := Fact.objects.select_related("end_user").filter(pk=fact_id).first()):
            provenance.lock_sessions(seen.end_user, given.evidence)
        with deciding_fact(fact_id, tenant, "edit", actor=actor, now=now, **named) as (fact, changed):
            must_be_live(fact)
            evidence = provenance.rest_on(fact, given, quote=stated.get("raw", ""), visible=visible)
            before = copy(fact)
            with changed.changing(fact, "edit"):
                _set(fact, stated, before, write_trust=write_trust)
                if not actor.is_operator:
                    guarding.check_fact(fact, guarding.texts_of(before), write_trust.lowered(evidence.trusts))
                    _check_words(fact, before, now=now, related=evidence.related)
                if "allowed_users" in stated:
                    check_readers(fact, fact.end_user)
            if "valid_from" in stated:
                _follow(fact, before, changed)
            evidence.restate(fact, now=now, relates=relations is not None)
    return fact


def _set(fact: Fact, stated: dict[str, Any], before: Fact, *, write_trust: WriteTrust) -> None:
    """Give the fact these fields, and what follows from them. Errors: DuplicateFact (its external id)."""
    for name, value in stated.items():
        setattr(fact, name, value)
    # Keys are compared as they are stored.
    fact.key = folded_key(fact.key)
    if fact.is_of_profile and fact.content != before.content and fact.value == before.value:
        fact.value = value_of_words(before, fact.content)
    if (fact.key, fact.value) != (before.key, before.value):
        of_key = of_field(fact.tenant, {"category": fact.category, "value": fact.value}, fact.key)
        fact.category, fact.value = of_key["category"], of_key["value"]
    if (fact.content, fact.key, fact.value) != (before.content, before.key, before.value):
        # Nobody has read the triples beside the new text.
        fact.triples = None
    fact.set_text(fact.content)
    fact.stated_confidence = stated.get("confidence", fact.stated_confidence)
    if "source" in stated:
        fact.source = write_trust.source(stated["source"])
    fact.valid_from = fact.valid_from or fact.first_observed_at
    if {"external_id", "agent_id"} & stated.keys():
        check_own_id(fact)


def _check_words(fact: Fact, before: Fact, *, now: datetime, related: Iterable[tuple[str, Fact]] = ()) -> None:
    """Check what a key has made of a fact, before it is saved: what is active cannot wait beside what it contradicts.

    `related` are the facts that it is said to relate to, by type of relation. Errors: ReviewNeeded where a protected
    fact gives its new key or value another one, or is said to be contradicted; DuplicateFact where one has its new
    text.
    """
    if fact.status != Status.ACTIVE:
        return
    contradicted = [target for kind, target in related if kind == RelationType.CONTRADICTS]
    if any(target.protected and target.status == Status.ACTIVE for target in contradicted):
        raise ReviewNeeded
    is_reworded = bytes(fact.content_hash) != bytes(before.content_hash)
    if is_reworded and (twin := protected_twin(fact)):
        raise DuplicateFact(fact_id=twin.pk)
    is_rekeyed = any(getattr(fact, name) != getattr(before, name) for name in _KEYED)
    if is_rekeyed and any(one.protected for one in rivals_of([fact], now=now)[fact.pk]):
        raise ReviewNeeded


def _follow(fact: Fact, before: Fact, changes: Changes) -> None:
    """What the fact replaced ends where the fact begins now, as it did before."""
    replaced = fact.older.filter(status=Status.SUPERSEDED, valid_to=before.valid_from)
    for older in lock_facts(list(replaced.values_list("pk", flat=True))):
        with changes.changing(older, "edit"):
            older.valid_to = max(older.valid_from, fact.valid_from)


def correct_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    content: str,
    reason: str,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    category: str | None = None,
) -> Fact:
    """An operator, or the person on their own page, corrects a fact. No job and no key changes it from now on, and no
    job stores the old text again.

    Errors: NotFound, PreconditionFailed, Conflict, DuplicateFact; of the person also PersonRestricted, OperatorWord,
    FactLocked, and ReviewNeeded when the new text speaks to a model.
    """
    content = scrubbed_text(content)
    with (
        deciding_fact(
            fact_id, tenant, "correct", actor=actor, now=now, expected_version=expected_version, reason=reason
        ) as (fact, changes),
        changes.changing(fact, "correct"),
    ):
        must_be_live(fact)
        texts_before = guarding.texts_of(fact)
        if fold(content) != fold(fact.content):
            changes.refuse(fact, [refusal_key_of_text(fact.content)])
        changes.remove_refusals(fact.end_user, [refusal_key_of_text(content)])
        state_binding(fact, content, actor=actor, now=now)
        if actor.is_person:
            guarding.check_fact(fact, texts_before, AS_USER)
        if not fact.is_of_profile:
            fact.value = ""
        fact.category, fact.status = category or fact.category, Status.ACTIVE
    return fact
