"""Undoes a merge of two people: what came from the one is theirs again, with what was made of it since."""

import uuid
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts.changing import lock_facts
from memories.curation.people.merging import profile, records
from memories.curation.people.merging.locks import Pair, discard_work_in_flight, lock, retry_when_locked
from memories.curation.people.merging.merge import record
from memories.curation.people.merging.rows import (
    Kind,
    carry,
    move_questions,
    noted,
    noted_numbers,
    restore_session_ids,
)
from memories.curation.review import item_states
from memories.curation.sessions import STATED
from memories.exceptions import Conflict, DuplicateFact, NotFound
from memories.models import (
    Fact,
    FactEvidence,
    FactRefusal,
    FactRelation,
    FactRevision,
    PersonMerge,
    ReviewItem,
    Session,
    Status,
)
from memories.reconcile import review_items

State = ReviewItem.State


def undo_person_merge(*, merge_id: uuid.UUID, actor: Actor, now: datetime, reason: str = "") -> PersonMerge:
    """Undo a merge; its `counts` are then those of the undo: facts, sessions, and what stayed as it is (kept).

    Sessions and facts that moved go back, and with them facts that rest on these sessions alone. What came since
    under the id of the merged person stays with the survivor: nothing distinguishes it. A fact whose successor now
    belongs to the other person is active again.

    Errors: NotFound, Conflict (undone already, or merged on since), PersonRestricted, PeopleBusy.
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    return retry_when_locked(lambda: _undo(merge_id, changes))


def may_undo_person_merge(merge: PersonMerge) -> bool:
    """Whether it is not undone, and the last one of its survivor: merges are undone from the last to the first."""
    later = PersonMerge.objects.filter(survivor=merge.survivor_id, undone_at=None, pk__gt=merge.pk)
    onwards = PersonMerge.objects.filter(merged=merge.survivor_id, undone_at=None)
    return merge.undone_at is None and not later.exists() and not onwards.exists()


def _undo(merge_id: uuid.UUID, decided: Changes) -> PersonMerge:
    changes = Changes(actor=decided.actor, now=decided.now, reason=decided.reason, id=decided.id)
    found = PersonMerge.objects.filter(pk=merge_id).first()
    if found is None:
        raise NotFound
    pair = lock(found.survivor_id, found.merged_id)
    # Under the locks: of two who undo it the second finds it undone.
    merge = PersonMerge.objects.select_related("tenant").get(pk=merge_id)
    merge.survivor, merge.merged = pair.people
    if not may_undo_person_merge(merge):
        raise Conflict(
            _("This merge is already undone, or one of the two was merged again since. Undo that merge first.")
        )
    counts = _separate(pair, merge, changes)
    records.separate(pair, merge, now=changes.now)
    discard_work_in_flight(pair)
    merge.counts = counts
    record(merge, "undo_merge", changes)
    return merge


def _separate(pair: Pair, merge: PersonMerge, changes: Changes) -> dict[str, int]:
    survivor, merged = pair.people
    FactEvidence.objects.filter(pk__in=noted_numbers(merge, Kind.EVIDENCE)).delete()
    sessions = list(Session.objects.filter(pk__in=noted(merge, Kind.SESSION)).values_list("pk", flat=True))
    facts = list(_facts_to_return(pair, merge).values_list("pk", flat=True))
    carry(sessions, facts, to=merged)
    restore_session_ids(merge)
    kept = profile.separate(pair, merge, changes)
    _separate_evidence(pair)
    kept += _put_back(merge, changes) + _reactivate_superseded(pair, changes)
    _separate_questions(pair, merge)
    move_questions(frm=survivor, to=merged)
    _return_refusals(pair, merge)
    _reopen_settled(merge, changes)
    return {"sessions": len(sessions), "facts": len(facts), "kept": kept}


def _facts_to_return(pair: Pair, merge: PersonMerge) -> QuerySet[Fact]:
    """Facts that moved, except those that rest on the survivor's sessions alone by now; and facts that rest on the
    moved sessions alone, unless they were stated outright."""
    cited = FactEvidence.objects.filter(fact=OuterRef("pk"))
    there = Exists(cited.filter(session__in=noted(merge, Kind.SESSION)))
    here = Exists(cited.exclude(session__in=noted(merge, Kind.SESSION)))
    moved = Q(pk__in=noted(merge, Kind.FACT))
    stays = Q(here) & ~Q(there)
    follows = Q(there) & ~Q(here) & ~Q(extractor__in=STATED)
    return Fact.objects.filter(end_user=pair.survivor).filter(moved & ~stays | follows)


def _separate_evidence(pair: Pair) -> None:
    """Delete evidence and relations that cross from the one person to the other."""
    facts = Fact.objects.filter(end_user__in=pair.people)
    crossing = FactEvidence.objects.filter(fact__in=facts).exclude(turn__end_user=F("fact__end_user"))
    quotes = Exists(crossing.filter(fact=OuterRef("pk"), quote=OuterRef("raw")))
    facts.exclude(raw="").filter(quotes).update(raw="")
    FactEvidence.objects.filter(pk__in=list(crossing.values_list("pk", flat=True))).delete()
    related = FactRelation.objects.filter(fact__in=facts).exclude(target__end_user=F("fact__end_user"))
    FactRelation.objects.filter(pk__in=list(related.values_list("pk", flat=True))).delete()


def _put_back(merge: PersonMerge, changes: Changes) -> int:
    """Put facts back to what they were before the merge, the last change first; returns how many had changed since."""
    kept = 0
    revisions = list(FactRevision.objects.filter(change_set=merge.pk).order_by("-id"))
    facts = {fact.pk: fact for fact in lock_facts([revision.fact_id for revision in revisions])}
    for revision in revisions:
        fact = facts[revision.fact_id]
        kept += not (fact.version == revision.version and _changed(fact, changes, revision.before))
    return kept


def _reactivate_superseded(pair: Pair, changes: Changes) -> int:
    """Make facts active again whose successor is the other person's now; returns how many could not be, since another
    fact has the same text."""
    kept = 0
    rows = Fact.objects.filter(end_user__in=pair.people).exclude(superseded_by=None)
    crossing = rows.exclude(superseded_by__end_user=F("end_user"))
    for fact in lock_facts(list(crossing.values_list("pk", flat=True))):
        own = {"superseded_by": None}
        if fact.status != Status.SUPERSEDED:
            _changed(fact, changes, own)
        elif not _changed(fact, changes, {**own, "status": Status.ACTIVE, "valid_to": None}):
            _changed(fact, changes, {**own, "status": Status.ARCHIVED})
            kept += 1
    return kept


def _changed(fact: Fact, changes: Changes, state: dict[str, Any]) -> bool:
    """Give the fact these fields; False when another live fact of the person has its text by now."""
    was = audit.snapshot(fact)
    version = fact.version
    try:
        with changes.changing(fact, "undo"):
            audit.put_back(fact, state)
    except DuplicateFact:
        audit.put_back(fact, was)
        fact.version = version
        return False
    return True


def _separate_questions(pair: Pair, merge: PersonMerge) -> None:
    """Drop review items about a fact of the one and a fact of the other; a suggestion still waits, by itself."""
    items = ReviewItem.objects.filter(end_user__in=pair.people).exclude(known=None)
    asked = items.waiting().filter(reason=ReviewItem.Reason.OTHER_PERSON, created_at=merge.created_at)
    asked.delete()
    pairs = items.exclude(fact=None).select_related("fact")
    crossing = pairs.exclude(known__end_user=F("fact__end_user"))
    for item in crossing.select_for_update(of=("self",)).order_by("pk"):
        if item.state == State.OPEN and not _stands_alone(item):
            item.delete()
            continue
        item.known, item.version = None, item.version + 1
        item.save(update_fields=["known", "version"])


def _reopen_settled(merge: PersonMerge, changes: Changes) -> None:
    """Reopen what the merge settled, and settle again what is no question any more."""
    rows = ReviewItem.objects.filter(change_set=merge.pk, state=State.SETTLED)
    settled = list(rows.select_for_update(of=("self",)).order_by("pk"))
    item_states.reopen(settled)
    touched = [pk for item in settled for pk in (item.fact_id, item.known_id) if pk]
    review_items.settle([*touched, *changes.facts], now=changes.now)


def _stands_alone(item: ReviewItem) -> bool:
    """Whether the open item is a question without the other fact, too, and is not asked already."""
    asked = ReviewItem.objects.waiting().filter(fact=item.fact_id, known=None, kind=item.kind)
    return bool(item.fact and item.fact.status == Status.PENDING) and not asked.exists()


def _return_refusals(pair: Pair, merge: PersonMerge) -> None:
    """Return the refusals that moved, and those of returned facts; what is refused of both stays with each."""
    survivor, merged = pair.people
    of_facts = Q(fact__end_user=merged) | Q(pk__in=noted_numbers(merge, Kind.REFUSAL))
    own = FactRefusal.objects.filter(end_user=merged, kind=OuterRef("kind"), digest=OuterRef("digest"))
    going = FactRefusal.objects.filter(of_facts, ~Exists(own), end_user=survivor)
    FactRefusal.objects.filter(pk__in=list(going.values_list("pk", flat=True))).update(end_user=merged)
