"""What operators, and people on their own page, write into the fields of a person's profile: each value is a fact."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from memories.audit import Actor
from memories.curation.change_sets import Changes, refusals_against
from memories.curation.facts.adding import FactDraft, candidate_of
from memories.curation.facts.changing import check_allowed, lock_facts, state_binding
from memories.curation.review import item_states
from memories.curation.statements import guarding
from memories.curation.statements.scrubbing import scrubbed_fact
from memories.curation.statements.write_trust import AS_USER
from memories.curation.writing import open_write
from memories.exceptions import Fault, InvalidInput, PreconditionFailed, ReviewNeeded
from memories.facts import policies
from memories.facts.record import record
from memories.models import EndUser, Fact, ProfileSchema, Status
from memories.models.folding import fold
from memories.models.memories.refusals import refusal_key_of_text
from memories.profiles import Field, ValueRefused, fields_of, read_for_staff, statement_of
from memories.text.injection.detection import INSTRUCTIONS


def write_profile_fields(
    *,
    end_user: EndUser,
    schema: ProfileSchema,
    values: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    reason: str = "",
    expected_revision: str = "",
) -> int:
    """Give these fields, by their names with periods between them, these values, as the word of an operator or of the
    person; None empties one. Returns how many changed: all of them are one change set, with one undo.

    `expected_revision` is that of the profile as it was seen. Errors: InvalidInput at the fields, PreconditionFailed,
    DuplicateFact, ContentForbidden, NotFound, PersonMerged; of the person also PersonRestricted, OperatorWord,
    FactLocked, and ReviewNeeded when a value speaks to a model.
    """
    wanted = _read(schema, values)
    changes = Changes(actor=actor, now=now, reason=reason)
    with open_write(end_user, actor) as person:
        (shown,) = read_for_staff(person, [schema], now=now)
        if expected_revision and shown.revision != expected_revision:
            raise PreconditionFailed
        known = {one.field.pointer: one.fact.pk for one in (*shown.values, *shown.invalid)}
        locked = {fact.pk: fact for fact in lock_facts([known.get(one.pointer) for one, _ in wanted])}
        for one, text in wanted:
            fact = locked.get(known[one.pointer]) if one.pointer in known else None
            if fact:
                check_allowed(fact, actor=actor, expected_version=None)
            _write(person, one, text, fact, changes)
        if changes.facts:
            item_states.close_answered_items(changes)
            changes.record("write", person)
    return len(changes.facts)


def _read(schema: ProfileSchema, values: Mapping[str, Any]) -> list[tuple[Field, str]]:
    """The fields with what a fact keeps of the values; empty for none. Errors: InvalidInput with all places."""
    fields = {one.pointer: one for one in fields_of(schema)}
    found, faults = [], []
    for name, value in values.items():
        try:
            if name not in fields:
                raise ValueRefused("There is no such field.")
            one = fields[name]
            found.append((one, "" if value is None else one.text(one.read(value))))
        except ValueRefused as error:
            faults.append(Fault(f"/{name.replace('.', '/')}", "invalid", str(error)))
    if faults:
        raise InvalidInput(faults=faults)
    return found


def _write(person: EndUser, field: Field, text: str, fact: Fact | None, changes: Changes) -> None:
    if fact is None:
        if text:
            _state(person, field, text, changes)
    elif not text:
        changes.trash([fact], "forget")
        changes.refuse(fact, refusals_against(fact))
    elif fact.value != text:
        _correct(fact, field, text, changes)


def _state(person: EndUser, field: Field, text: str, changes: Changes) -> None:
    """Nobody has said it: a new fact, which takes the place of what gave the field another value."""
    draft = FactDraft(
        content=statement_of(field, field.read(text)),
        category=field.category,
        confidence=1.0,
        key=field.key,
        value=text,
    )
    draft = replace(draft, **scrubbed_fact(vars(draft)))
    candidate = candidate_of(draft, actor=changes.actor)
    if changes.actor.is_person and INSTRUCTIONS in guarding.flags_of_fact(candidate, AS_USER):
        raise ReviewNeeded
    (done,) = record([candidate], person=person, write=changes, policy=policies.OPERATOR)
    if done.fact:
        changes.facts.add(done.fact.pk)


def _correct(fact: Fact, field: Field, text: str, changes: Changes) -> None:
    """The fact says this from now on, and no job stores the old text again."""
    stated = scrubbed_fact({"content": statement_of(field, field.read(text)), "value": text})
    with changes.changing(fact, "correct"):
        if fold(stated["content"]) != fold(fact.content):
            changes.refuse(fact, [refusal_key_of_text(fact.content)])
        changes.remove_refusals(fact.end_user, [refusal_key_of_text(stated["content"])])
        texts_before = guarding.texts_of(fact)
        state_binding(fact, stated["content"], actor=changes.actor, now=changes.now)
        fact.value, fact.category, fact.status = stated["value"], field.category, Status.ACTIVE
        if changes.actor.is_person:
            guarding.check_fact(fact, texts_before, AS_USER)
