"""Facts that are stated outright, by a key or an operator, instead of being extracted."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts.readers import check_readers
from memories.curation.review import item_states
from memories.curation.statements import guarding
from memories.curation.statements.provenance import (
    NO_PROVENANCE,
    Provenance,
    ResolvedEvidence,
    resolve_evidence,
)
from memories.curation.statements.scrubbing import scrubbed_fact
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import WriteResult, open_write
from memories.exceptions import Conflict, DuplicateFact, InvalidInput, NotFound
from memories.facts import policies
from memories.facts.candidate import Candidate
from memories.facts.record import record
from memories.models import EndUser, Fact, FactQuerySet, MemoryScope, ReviewItem, Source, Status, Tenant, Trust
from memories.models.folding import fold
from memories.profiles import ValueRefused, field_of
from memories.reconcile import neighbours
from memories.reconcile.gate import LONGEST_KEY
from memories.text.secrets.scrubbing import scrubbed_text


@dataclass(frozen=True)
class FactDraft:
    """What a caller states about a person; confidence and importance are 0..1, empty text means none."""

    content: str
    category: str
    confidence: float = 0.9
    importance: float = 0.5
    key: str = ""
    value: str = ""
    tags: Sequence[str] = ()
    scope: str = MemoryScope.PRIVATE
    agent_id: str = ""
    allowed_users: Sequence[str] = ()
    allowed_roles: Sequence[str] = ()
    expires_at: datetime | None = None
    structured: dict[str, Any] | None = None
    external_id: str = ""


def add_fact(
    *,
    end_user: EndUser,
    draft: FactDraft,
    actor: Actor,
    now: datetime,
    reason: str = "",
    write_trust: WriteTrust = AS_USER,
    provenance: Provenance = NO_PROVENANCE,
    visible: FactQuerySet | None = None,
    corrects: Fact | None = None,
) -> WriteResult[Fact]:
    """Store a stated fact, without secrets.

    The fact becomes active and supersedes what gave its key another value. A key's statement becomes a suggestion with
    a review item instead when an operator refused it before, when it contradicts an operator or is less certain than an
    existing fact, when it speaks to a model, or when its trust is not believed; turns that it cites only lower the
    trust. When it gives a key the value that it has, in other words, it confirms that fact (rules.md, 5.2). Facts that
    it is related to, or confirms, are among the `visible` ones; None: all of the person's. What `corrects` an active
    fact waits for an operator, whoever states it.

    Errors: InvalidInput (what it rests on, its readers), Conflict and NotFound (what it corrects), DuplicateFact with
    the id of the existing fact (its text, or its external id), RefusedBefore, PersonMerged, PersonRestricted.
    """
    draft = replace(draft, **scrubbed_fact(of_field(end_user.tenant, vars(draft), folded_key(draft.key))))
    candidate = _candidate(draft, provenance, actor=actor)
    # Before the lock: it may ask an endpoint.
    near = [] if draft.agent_id else neighbours.beside(person=end_user, statement=candidate, now=now)
    candidate, changes = replace(candidate, near=near), Changes(actor=actor, now=now, reason=reason)
    with open_write(end_user, None, turns=provenance.evidence):
        check_readers(candidate, end_user)
        evidence = resolve_evidence(end_user, provenance, raw=candidate.raw, visible=visible)
        candidate = _resolved(
            candidate, evidence, write_trust.lowered(evidence.trusts), stated_source=provenance.source
        )
        if corrects:
            _check_active(corrects)
            candidate = replace(candidate, beside=corrects, proposed_as=ReviewItem.Reason.PROPOSED)
        policy = policies.OPERATOR if actor.is_operator else policies.KEY
        (done,) = record([candidate], person=end_user, write=changes, policy=policy, visible=visible)
        fact = done.fact
        if fact is None:
            raise TypeError("a statement of a key or an operator is stored, or refused with an error")
        if done.is_new or fact.pk in changes.facts:
            item_states.close_answered_items(changes)
            changes.record("add" if done.is_new else "reinforce", fact)
    return WriteResult(fact, is_new=done.is_new)


def folded_key(key: str) -> str:
    """As keys are stored and compared. Errors: InvalidInput (too long; folding makes some letters longer)."""
    folded = fold(key)
    if len(folded) > LONGEST_KEY:
        # Cut, it could equal another one.
        detail = _("Give a key of at most 100 characters. Some of these letters stand for several each.")
        raise InvalidInput.at("/key", detail, code="max_length")
    return folded


def candidate_of(draft: FactDraft, *, actor: Actor) -> Candidate:
    """What an operator, or the person on their own page, states without anything that it rests on."""
    return _candidate(draft, NO_PROVENANCE, actor=actor)


def of_field(tenant: Tenant, stated: dict[str, Any], key: str) -> dict[str, Any]:
    """What a statement with this key says, if the key is that of a profile's field: with the field's category, and the
    value as facts keep it. Errors: InvalidInput, where the field has no such value."""
    field = field_of(tenant, key)
    if field is None or not stated.get("value"):
        return stated
    try:
        return {**stated, "category": field.category, "value": field.text(field.read(stated["value"]))}
    except ValueRefused as error:
        raise InvalidInput.at("/value", str(error)) from None


def check_own_id(fact: Fact) -> None:
    """The caller holds the person's row. Errors: DuplicateFact when another live fact of its agent has its external
    id."""
    same = Fact.objects.twins_of(fact, external_id=fact.external_id, agent_id=fact.agent_id)
    if fact.external_id and (taken := same.values_list("pk", flat=True).first()):
        raise DuplicateFact(_("The person already has a fact with this external_id."), fact_id=taken)


def _candidate(draft: FactDraft, provenance: Provenance, *, actor: Actor) -> Candidate:
    """As an operator or the person states it: binding, and nobody reviews it. Whose words a key's statement is, its
    evidence says."""
    stated = {name: getattr(draft, name) for name in (field.name for field in fields(draft))}
    return Candidate(
        **stated | {"key": folded_key(draft.key)},
        raw=scrubbed_text(provenance.raw),
        trust=Trust.USER if actor.is_person else Trust.OPERATOR,
        source=Source.PERSON if actor.is_person else Source.CORRECTED,
        extractor="person" if actor.is_person else "operator",
        binding=actor.is_operator or actor.is_person,
        key_id=actor.id,
        valid_from=provenance.valid_from,
    )


def _resolved(
    candidate: Candidate, evidence: ResolvedEvidence, write_trust: WriteTrust, *, stated_source: str
) -> Candidate:
    """With what it rests on, and of a key with its source, trust and flags."""
    candidate = replace(
        candidate,
        citations=evidence.citations(quote=candidate.raw),
        relations=evidence.related,
        stated_at=[turn.sent_at for turn in evidence.turns],
    )
    if candidate.binding:
        return candidate
    return replace(
        candidate,
        trust=write_trust.trust,
        source=write_trust.source(stated_source),
        extractor=write_trust.extractor,
        is_import=write_trust.imports,
        flags=guarding.flags_of_fact(candidate, write_trust),
    )


def _check_active(corrected: Fact) -> None:
    """Under the person's lock: somebody may have changed it meanwhile. Errors: NotFound, Conflict."""
    found = Fact.objects.filter(pk=corrected.pk, end_user=corrected.end_user).first()
    if found is None:
        raise NotFound
    if found.status != Status.ACTIVE:
        raise Conflict(_("This memory is not active any more, or not yet: there is nothing to correct."))
