"""Merges several facts of a person that mean the same into one, in an operator's words."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts.changing import lock_facts, state_binding
from memories.curation.review import item_states
from memories.curation.writing import lock_person
from memories.exceptions import Conflict, InvalidInput, NotFound, PreconditionFailed
from memories.facts.candidate import has_readers_of
from memories.models import Fact, FactEvidence, RelationType, Status
from memories.text.secrets.scrubbing import scrubbed_text

MOST_MERGED = 10


@dataclass(frozen=True)
class FactMergePreview:
    """What a merge would make of facts as they are now; `turns`: how many the survivor rests on then."""

    survivor: Fact
    others: Sequence[Fact]
    turns: int


def preview_fact_merge(*, survivor: uuid.UUID, others: Sequence[uuid.UUID]) -> FactMergePreview:
    """What merge_facts() would do; nothing is locked or changed. Errors: NotFound, Conflict."""
    found = list(Fact.objects.filter(pk__in=[survivor, *others]).select_related("end_user", "tenant"))
    kept, absorbed = _split_off(found, survivor, others)
    _check_mergeable(kept, absorbed)
    turns = FactEvidence.objects.filter(fact__in=found).values("turn").distinct().count()
    return FactMergePreview(kept, absorbed, turns)


def merge_facts(
    *,
    survivor: uuid.UUID,
    expected: Mapping[uuid.UUID, int],
    content: str,
    actor: Actor,
    now: datetime,
    reason: str = "",
) -> Fact:
    """Let the survivor supersede the others, with `content` as an operator's word and the evidence of all; returns it.

    `expected` are the versions of all of them, the survivor's too, as the operator saw them. All must be active facts
    of one person that the same agents and people are served. Errors: NotFound, PreconditionFailed, Conflict,
    InvalidInput, DuplicateFact (another live fact has this text).
    """
    content = scrubbed_text(content).strip()
    if not content:
        raise InvalidInput.at("content", _("The fact that stays needs a text."))
    changes = Changes(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        lock_person(Fact.objects.filter(pk=survivor).values_list("end_user", flat=True).first())
        others = [pk for pk in expected if pk != survivor]
        kept, absorbed = _split_off(lock_facts([survivor, *others]), survivor, others)
        if any(fact.version != expected.get(fact.pk) for fact in (kept, *absorbed)):
            raise PreconditionFailed
        _check_mergeable(kept, absorbed)
        # First, so that the survivor may take the very text of one of them.
        for other in absorbed:
            changes.supersede(other, by=kept)
        with changes.changing(kept, "merge"):
            state_binding(kept, content, actor=actor, now=now)
            _combine(kept, absorbed)
        changes.remove_refusals_of(kept)
        for other in absorbed:
            changes.copy_evidence(of=other, to=kept)
            changes.relate(kept, other, RelationType.DERIVED_FROM)
        item_states.close_answered_items(changes)
        changes.record("merge", kept, counts={"facts": len(absorbed)})
    return kept


def _split_off(found: Sequence[Fact], survivor: uuid.UUID, ids: Sequence[uuid.UUID]) -> tuple[Fact, list[Fact]]:
    """The survivor, and the others in the order of their ids as given. Errors: NotFound when one is gone."""
    facts = {fact.pk: fact for fact in found}
    if survivor not in facts or not all(pk in facts for pk in ids):
        raise NotFound
    return facts[survivor], [facts[pk] for pk in ids if pk != survivor]


def _check_mergeable(kept: Fact, absorbed: Sequence[Fact]) -> None:
    if not 1 <= len(absorbed) <= MOST_MERGED:
        raise Conflict(_("Choose between one and %(most)d facts to merge into it.") % {"most": MOST_MERGED})
    if any(fact.status != Status.ACTIVE for fact in (kept, *absorbed)):
        raise Conflict(
            _("Only active facts can be merged. Somebody may have changed one of them since you opened this page.")
        )
    if any(fact.end_user_id != kept.end_user_id for fact in absorbed):
        raise Conflict(_("These facts belong to different people."))
    # Else somebody would be served what was kept from them.
    if not all(has_readers_of(fact, kept) for fact in absorbed):
        raise Conflict(_("These facts are visible to different agents or people."))


def _combine(kept: Fact, absorbed: Sequence[Fact]) -> None:
    """Give the survivor the pins, locks and tags of all; it expires when the last of them would have."""
    everyone = [kept, *absorbed]
    kept.pinned = any(fact.pinned for fact in everyone)
    kept.locked = any(fact.locked for fact in everyone)
    kept.importance = max(fact.importance for fact in everyone)
    kept.tags = list(dict.fromkeys(tag for fact in everyone for tag in fact.tags))
    ends = [fact.expires_at for fact in everyone]
    kept.expires_at = None if None in ends else max(end for end in ends if end)
