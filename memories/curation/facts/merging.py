"""Merges several facts of a person that mean the same into one, in an operator's words; and the undo of that."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import ChangeSet, take_back
from memories.curation.facts.changing import lock_facts, lock_person, rivals_of, state_as_operator
from memories.curation.review import item_states
from memories.exceptions import Conflict, InvalidInput, NotFound, PreconditionFailed
from memories.models import Fact, FactEvidence, FactMerge, FactRevision, RelationType, ReviewItem, Status
from memories.text.secrets.redaction import redact_text

MOST_MERGED = 10
# Who is served a fact: merged ones must agree, or somebody would be served what was kept from them.
READERS = ("agent_id", "scope", "allowed_users", "allowed_roles")


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
    seen: Mapping[uuid.UUID, int],
    content: str,
    actor: Actor,
    now: datetime,
    reason: str = "",
) -> FactMerge:
    """Let the survivor supersede the others, with `content` as an operator's word and the evidence of all.

    `seen` are the versions of all of them, the survivor's too, as the operator saw them. All must be active facts of
    one person that the same agents and people are served. Errors: NotFound, PreconditionFailed, Conflict, InvalidInput,
    DuplicateFact (another live fact has this text).
    """
    content = redact_text(content)[0].strip()
    if not content:
        raise InvalidInput.at("content", _("The fact that stays has to say something."))
    changes = ChangeSet(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        lock_person(Fact.objects.filter(pk=survivor).values_list("end_user", flat=True).first())
        others = [pk for pk in seen if pk != survivor]
        kept, absorbed = _split_off(lock_facts([survivor, *others]), survivor, others)
        if any(fact.version != seen.get(fact.pk) for fact in (kept, *absorbed)):
            raise PreconditionFailed
        _check_mergeable(kept, absorbed)
        # First, so that the survivor may take the very text of one of them.
        for other in absorbed:
            changes.supersede(other, by=kept)
        with changes.changing(kept, "merge"):
            state_as_operator(kept, content, now=now)
            _combine(kept, absorbed)
        changes.lift_refusals(kept)
        for other in absorbed:
            changes.copy_evidence(of=other, to=kept)
            changes.relate(kept, other, RelationType.DERIVED_FROM)
        item_states.settle(changes)
        made = FactMerge.objects.create(survivor=kept, change_set=changes.id, traces=changes.traces, created_at=now)
        counts = {"facts": len(absorbed)}
        audit.record(
            actor=actor, verb="merge", target=kept, object_id=kept.pk, tenant=kept.tenant, now=now, counts=counts
        )
    return made


def _split_off(found: Sequence[Fact], survivor: uuid.UUID, ids: Sequence[uuid.UUID]) -> tuple[Fact, list[Fact]]:
    """The survivor, and the others in the order of their ids as given. Errors: NotFound when one is gone."""
    facts = {fact.pk: fact for fact in found}
    if survivor not in facts or not all(pk in facts for pk in ids):
        raise NotFound
    return facts[survivor], [facts[pk] for pk in ids if pk != survivor]


def _check_mergeable(kept: Fact, absorbed: Sequence[Fact]) -> None:
    if not 1 <= len(absorbed) <= MOST_MERGED:
        raise Conflict(_("Choose between one and %(most)d facts that it takes in.") % {"most": MOST_MERGED})
    if any(fact.status != Status.ACTIVE for fact in (kept, *absorbed)):
        raise Conflict(_("Only active facts can be merged; somebody may have changed one of these meanwhile."))
    if any(fact.end_user_id != kept.end_user_id for fact in absorbed):
        raise Conflict(_("These facts are not of one person."))
    if any(getattr(fact, name) != getattr(kept, name) for fact in absorbed for name in READERS):
        raise Conflict(_("These facts are told to different agents or people."))


def _combine(kept: Fact, absorbed: Sequence[Fact]) -> None:
    """Give the survivor the pins, locks and tags of all; it expires when the last of them would have."""
    everyone = [kept, *absorbed]
    kept.pinned = any(fact.pinned for fact in everyone)
    kept.locked = any(fact.locked for fact in everyone)
    kept.importance = max(fact.importance for fact in everyone)
    kept.tags = list(dict.fromkeys(tag for fact in everyone for tag in fact.tags))
    ends = [fact.expires_at for fact in everyone]
    kept.expires_at = None if None in ends else max(end for end in ends if end)


def undo_fact_merge(*, merge_id: uuid.UUID, actor: Actor, now: datetime, reason: str = "") -> Fact:
    """Put all of the merged facts back to what they were; returns the one that had stayed.

    Errors: NotFound; Conflict when one of them has changed since, or another fact has taken its key: then only
    split_fact() can part them.
    """
    changes = ChangeSet(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        made, facts = _locked_merge(merge_id)
        if made.undone_at:
            raise Conflict(_("Somebody has undone this merge already."))
        if made.traces["versions"] != {str(pk): fact.version for pk, fact in facts.items()}:
            raise Conflict(_("This cannot be undone any more: one of the facts has changed since. Split them instead."))
        # The last change first: of two facts with one text only one is live at a time.
        for revision in FactRevision.objects.filter(change_set=made.change_set).order_by("-id"):
            fact = facts[revision.fact_id]
            with changes.changing(fact, "undo"):
                audit.put_back(fact, revision.before)
            _follow(fact, since=revision.version - 1)
            item_states.follow(fact, since=revision.version - 1)
        check_no_rival(list(facts.values()), now=now)
        take_back(made.survivor.end_user, made.traces)
        closed = ReviewItem.objects.filter(change_set=made.change_set).select_for_update(of=("self",))
        item_states.reopen(closed.order_by("pk"))
        item_states.settle(changes)
        made.undone_at = now
        made.save(update_fields=["undone_at"])
        kept = facts[made.survivor_id]
        audit.record(actor=actor, verb="undo_merge", target=kept, object_id=kept.pk, tenant=kept.tenant, now=now)
    return kept


def check_no_rival(facts: Sequence[Fact], *, now: datetime) -> None:
    """Errors: Conflict when a fact beyond these gives one of their keys another value by now."""
    own = {fact.pk for fact in facts}
    if any(set(rivals_of(fact, now=now)) - own for fact in facts if fact.status == Status.ACTIVE):
        raise Conflict(_("Another fact gives one of the keys another value by now: correct or forget that first."))


def _locked_merge(merge_id: uuid.UUID) -> tuple[FactMerge, dict[uuid.UUID, Fact]]:
    """The merge with its facts by their ids; the person's lock serialises everybody who undoes or splits it."""
    found = FactMerge.objects.filter(pk=merge_id).select_related("survivor__end_user")
    lock_person(found.values_list("survivor__end_user", flat=True).first())
    made = found.select_for_update(of=("self",)).first()
    if made is None:
        raise NotFound
    return made, {fact.pk: fact for fact in lock_facts([uuid.UUID(pk) for pk in made.traces["versions"]])}


def _follow(fact: Fact, *, since: int) -> None:
    """An undo made the fact again what it was at version `since`: a merge that left it there can still be undone."""
    left = FactMerge.objects.filter(survivor__end_user=fact.end_user_id, undone_at=None)
    for made in left.filter(traces__versions__contains={str(fact.pk): since}):
        made.traces["versions"][str(fact.pk)] = fact.version
        made.save(update_fields=["traces"])
