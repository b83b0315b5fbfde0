"""Splits a fact off again from the one that it was merged into, whatever happened to that one since."""

import uuid
from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.change_sets import Changes, still_ahead
from memories.curation.facts.changing import check_no_rival, lock_facts, state_binding
from memories.curation.review import item_states
from memories.curation.writing import lock_person
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.models import (
    Change,
    Fact,
    FactEvidence,
    FactRelation,
    FactRevision,
    RelationType,
    Status,
)
from memories.models.folding import fold
from memories.text.secrets.scrubbing import scrubbed_text


def split_fact(
    *,
    fact_id: uuid.UUID,
    rest: str,
    actor: Actor,
    now: datetime,
    expected: Mapping[uuid.UUID, int] | None = None,
    reason: str = "",
) -> Fact:
    """Make the fact active again as it was. The one that it was merged into gets the text `rest`, as an
    operator's word, and loses the evidence that it has from this one.

    `expected` are the versions of both as the operator saw them. With an empty `rest`, or when it is not live any more,
    the other one keeps its text.

    Errors: NotFound; PreconditionFailed; Conflict when it was not merged, or its key is taken; DuplicateFact.
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        fact, survivor = _locked(fact_id)
        if expected and dict(expected) != {fact.pk: fact.version, survivor.pk: survivor.version}:
            raise PreconditionFailed
        _take_out_of(survivor, fact, scrubbed_text(rest).strip(), changes)
        with changes.changing(fact, "split"):
            fact.status, fact.valid_to, fact.superseded_by = Status.ACTIVE, None, None
            fact.last_confirmed_at, fact.expires_at = now, still_ahead(fact.expires_at, now=now)
        changes.remove_refusals_of(fact)
        check_no_rival([fact, survivor], now=now)
        item_states.close_answered_items(changes)
        changes.record("split", fact)
    return fact


def is_merged(fact: Fact) -> bool:
    """Whether the fact that superseded it took it in, by an operator or by upkeep."""
    return fact.status == Status.SUPERSEDED and _derivation(fact).exists()


def before_merge(fact: Fact) -> str:
    """The text before the merge of the fact that took this one in; empty when it changed since, or was made of them."""
    merged = FactRevision.objects.filter(fact=fact.superseded_by_id, change_set=_merge_of(fact)).first()
    survivor = fact.superseded_by
    if merged is None or survivor is None or merged.version != survivor.version:
        return ""
    return str(merged.before.get("content", ""))


def _locked(fact_id: uuid.UUID) -> tuple[Fact, Fact]:
    """Lock the person, then the fact and the one that it was merged into, in the order of their ids."""
    found = Fact.objects.filter(pk=fact_id)
    lock_person(found.values_list("end_user", flat=True).first())
    successor = found.values_list("superseded_by", flat=True).first()
    facts = {fact.pk: fact for fact in lock_facts([fact_id, successor])}
    if fact_id not in facts:
        raise NotFound
    if successor not in facts or not is_merged(facts[fact_id]):
        raise Conflict(_("This fact is no longer part of another fact."))
    return facts[fact_id], facts[successor]


def _take_out_of(survivor: Fact, fact: Fact, rest: str, changes: Changes) -> None:
    """Remove the evidence that the survivor has from this fact, and give it the text `rest`."""
    copied = Change.objects.filter(change_set=_merge_of(fact), table=Change.Table.EVIDENCE, action=Change.Action.MADE)
    own = FactEvidence.objects.filter(fact=fact).values("turn")
    FactEvidence.objects.filter(fact=survivor, pk__in=copied.values_list("number"), turn__in=own).delete()
    _derivation(fact).delete()
    if survivor.status in Status.LIVE and rest and fold(rest) != fold(survivor.content):
        with changes.changing(survivor, "split"):
            state_binding(survivor, rest, actor=changes.actor, now=changes.now)
        changes.remove_refusals_of(survivor)


def _derivation(fact: Fact) -> QuerySet[FactRelation]:
    return FactRelation.objects.filter(fact=fact.superseded_by_id, target=fact, type=RelationType.DERIVED_FROM)


def _merge_of(fact: Fact) -> uuid.UUID | None:
    """The change set in which it was superseded last."""
    superseded = FactRevision.objects.filter(fact=fact, before__has_key="superseded_by").exclude(change_set=None)
    return superseded.values_list("change_set", flat=True).first()
