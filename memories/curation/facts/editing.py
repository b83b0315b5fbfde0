"""Editing and correcting a fact: keys and operators edit it; an operator's correction overrules every job and key."""

import uuid
from copy import copy
from datetime import datetime
from typing import Any

from memories.audit import Actor
from memories.curation.facts import contradictions
from memories.curation.facts.adding import folded_key
from memories.curation.facts.changing import changing_fact, deciding_fact, must_be_live, state_as_operator
from memories.curation.statements import guarding
from memories.curation.statements.scrubbing import scrubbed_fact, scrubbed_text
from memories.curation.statements.voices import AS_USER, WriteTrust
from memories.models import Fact, Status, Tenant
from memories.models.folding import fold
from memories.models.memories.refusals import mark_of_text


def edit_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    changes: dict[str, Any],
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
    voice: WriteTrust = AS_USER,
) -> Fact:
    """Set the named fields of a live fact; a key may change one that a key locked only when it lifts the lock.

    Errors: NotFound, PersonRestricted, OperatorWord, FactLocked, PreconditionFailed, Conflict, DuplicateFact,
    ReviewNeeded when the `voice` may not change it, when the new text speaks to a model and no operator wrote it, or
    when the new value contradicts a protected fact.
    """
    stated = scrubbed_fact(changes)
    unlocks = stated.get("locked") is False
    with changing_fact(
        fact_id, tenant, "edit", actor=actor, now=now, expected_version=expected_version, reason=reason, unlocks=unlocks
    ) as fact:
        must_be_live(fact)
        texts_before, before = guarding.texts_of(fact), copy(fact)
        for name, value in stated.items():
            setattr(fact, name, value)
        # Keys are compared as they are stored.
        fact.key = folded_key(fact.key)
        if (fact.content, fact.key, fact.value) != (before.content, before.key, before.value):
            # Nobody has read the triples beside the new text.
            fact.triples = None
        fact.say(fact.content)
        fact.stated_confidence = stated.get("confidence", fact.stated_confidence)
        if not actor.is_operator:
            guarding.check_fact(fact, texts_before, voice)
            contradictions.check_words(fact, before, now=now)
    return fact


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
    """An operator corrects a fact. No job and no key changes it from now on, and no job stores the old text again.

    Errors: NotFound, PreconditionFailed, Conflict, DuplicateFact.
    """
    content = scrubbed_text(content)
    with (
        deciding_fact(
            fact_id, tenant, "correct", actor=actor, now=now, expected_version=expected_version, reason=reason
        ) as (fact, changes),
        changes.changing(fact, "correct"),
    ):
        must_be_live(fact)
        if fold(content) != fold(fact.content):
            changes.refuse(fact, [mark_of_text(fact.content)])
        changes.lift(fact.end_user, [mark_of_text(content)])
        state_as_operator(fact, content, now=now)
        fact.value, fact.category, fact.status = "", category or fact.category, Status.ACTIVE
    return fact
