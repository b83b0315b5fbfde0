"""A merge of two people taken back: what came of the one is theirs again, with what was made of it since."""

import uuid
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation import item_states, merging_profile, merging_records, merging_sessions
from memories.curation.change_sets import ChangeSet
from memories.curation.fact_changes import lock_facts
from memories.curation.merging_locks import Pair, begin_anew, lock, patiently
from memories.curation.merging_rows import Kind, carry, move_questions, noted, noted_numbers
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
from memories.pipeline import review_items

VERB = "undo"
State = ReviewItem.State


def undo_person_merge(*, merge_id: uuid.UUID, actor: Actor, now: datetime, reason: str = "") -> PersonMerge:
    """Take a merge back; its `counts` are then those of the undo: facts, sessions, and what stayed as it is (kept).

    Sessions and facts that moved go back, and with them facts that rest on these sessions alone. What was said since
    under the id of the merged person stays with the survivor: nobody can tell it apart. A fact whose successor goes to
    the other one holds again. Errors: NotFound, Conflict (undone already, or merged on since), PersonRestricted,
    PeopleBusy.
    """
    changes = ChangeSet(actor=actor, now=now, reason=reason)
    return patiently(lambda: _undo(merge_id, changes))


def may_undo_person_merge(merge: PersonMerge) -> bool:
    """Whether it is the last of its survivor, and not undone: they are taken back in the order last to first."""
    later = PersonMerge.objects.filter(survivor=merge.survivor_id, undone_at=None, pk__gt=merge.pk)
    onwards = PersonMerge.objects.filter(merged=merge.survivor_id, undone_at=None)
    return merge.undone_at is None and not later.exists() and not onwards.exists()


def _undo(merge_id: uuid.UUID, decided: ChangeSet) -> PersonMerge:
    changes = ChangeSet(actor=decided.actor, now=decided.now, reason=decided.reason, id=decided.id)
    found = PersonMerge.objects.filter(pk=merge_id).first()
    if found is None:
        raise NotFound
    pair = lock(found.survivor_id, found.merged_id)
    # Under the locks: of two who undo it the second finds it undone.
    merge = PersonMerge.objects.select_related("tenant").get(pk=merge_id)
    merge.survivor, merge.merged = pair.people
    if not may_undo_person_merge(merge):
        raise Conflict(
            _("This merge is undone already, or one of the two was merged again since: undo that one first.")
        )
    counts = _part(pair, merge, changes)
    merging_records.part(pair, merge, now=changes.now)
    begin_anew(pair)
    merge.counts = counts
    _record(merge, changes)
    return merge


def _part(pair: Pair, merge: PersonMerge, changes: ChangeSet) -> dict[str, int]:
    survivor, merged = pair.people
    FactEvidence.objects.filter(pk__in=noted_numbers(merge, Kind.EVIDENCE)).delete()
    sessions = list(Session.objects.filter(pk__in=noted(merge, Kind.SESSION)).values_list("pk", flat=True))
    facts = list(_going(pair, merge).values_list("pk", flat=True))
    carry(sessions, facts, to=merged)
    merging_sessions.name_again(merge)
    kept = merging_profile.part(pair, merge, changes)
    _part_evidence(pair)
    kept += _put_back(merge, changes) + _let_hold_again(pair, changes)
    _part_questions(pair, merge)
    move_questions(frm=survivor, to=merged)
    _return_refusals(pair, merge)
    _ask_again(merge, changes)
    return {"sessions": len(sessions), "facts": len(facts), "kept": kept}


def _going(pair: Pair, merge: PersonMerge) -> QuerySet[Fact]:
    """Facts that moved, but for those that rest on the survivor's sessions alone by now; and what rests on the moved
    sessions alone, unless it was stated outright."""
    cited = FactEvidence.objects.filter(fact=OuterRef("pk"))
    there = Exists(cited.filter(session__in=noted(merge, Kind.SESSION)))
    here = Exists(cited.exclude(session__in=noted(merge, Kind.SESSION)))
    moved = Q(pk__in=noted(merge, Kind.FACT))
    stays = Q(here) & ~Q(there)
    follows = Q(there) & ~Q(here) & ~Q(extractor__in=STATED)
    return Fact.objects.filter(end_user=pair.survivor).filter(moved & ~stays | follows)


def _part_evidence(pair: Pair) -> None:
    """No fact rests on the other's turns, or is told as related to the other's facts."""
    facts = Fact.objects.filter(end_user__in=pair.people)
    crossing = FactEvidence.objects.filter(fact__in=facts).exclude(turn__end_user=F("fact__end_user"))
    quotes = Exists(crossing.filter(fact=OuterRef("pk"), quote=OuterRef("raw")))
    facts.exclude(raw="").filter(quotes).update(raw="")
    FactEvidence.objects.filter(pk__in=list(crossing.values_list("pk", flat=True))).delete()
    related = FactRelation.objects.filter(fact__in=facts).exclude(target__end_user=F("fact__end_user"))
    FactRelation.objects.filter(pk__in=list(related.values_list("pk", flat=True))).delete()


def _put_back(merge: PersonMerge, changes: ChangeSet) -> int:
    """What the merge changed of facts is as it was; how many had changed since. The last change first."""
    kept = 0
    revisions = list(FactRevision.objects.filter(change_set=merge.pk).order_by("-id"))
    facts = {fact.pk: fact for fact in lock_facts([revision.fact_id for revision in revisions])}
    for revision in revisions:
        fact = facts[revision.fact_id]
        kept += not (fact.version == revision.version and _changed(fact, changes, revision.before))
    return kept


def _let_hold_again(pair: Pair, changes: ChangeSet) -> int:
    """Facts in whose place one stands that is the other's now; how many could not, since another says the same."""
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


def _changed(fact: Fact, changes: ChangeSet, state: dict[str, Any]) -> bool:
    """Give the fact these fields; False when another live fact of the person has its text by now."""
    was = audit.snapshot(fact)
    version = fact.version
    try:
        with changes.changing(fact, VERB):
            audit.put_back(fact, state)
    except DuplicateFact:
        audit.put_back(fact, was)
        fact.version = version
        return False
    return True


def _part_questions(pair: Pair, merge: PersonMerge) -> None:
    """A question about a fact of the one and a fact of the other is none any more; a suggestion still waits."""
    items = ReviewItem.objects.filter(end_user__in=pair.people).exclude(known=None)
    asked = items.waiting().filter(reason=ReviewItem.Reason.OTHER_PERSON, created_at=merge.created_at)
    asked.delete()
    pairs = items.exclude(fact=None).select_related("fact")
    crossing = pairs.exclude(known__end_user=F("fact__end_user"))
    for item in crossing.select_for_update(of=("self",)).order_by("pk"):
        if item.state == State.OPEN and not _waits_alone(item):
            item.delete()
            continue
        item.known, item.version = None, item.version + 1
        item.save(update_fields=["known", "version"])


def _ask_again(merge: PersonMerge, changes: ChangeSet) -> None:
    """What the merge settled waits again, as far as it still is a question."""
    rows = ReviewItem.objects.filter(change_set=merge.pk, state=State.SETTLED)
    settled = list(rows.select_for_update(of=("self",)).order_by("pk"))
    item_states.reopen(settled)
    touched = [pk for item in settled for pk in (item.fact_id, item.known_id) if pk]
    review_items.settle([*touched, *map(uuid.UUID, changes.versions)], now=changes.now)


def _waits_alone(item: ReviewItem) -> bool:
    """Whether the open question is one without what it stood against, and is not asked already."""
    asked = ReviewItem.objects.waiting().filter(fact=item.fact_id, known=None, kind=item.kind)
    return bool(item.fact and item.fact.status == Status.PENDING) and not asked.exists()


def _return_refusals(pair: Pair, merge: PersonMerge) -> None:
    """Those that moved go back, and those of facts that went back; what is refused of both stays with each."""
    survivor, merged = pair.people
    of_facts = Q(fact__end_user=merged) | Q(pk__in=noted_numbers(merge, Kind.REFUSAL))
    known = FactRefusal.objects.filter(end_user=merged, kind=OuterRef("kind"), digest=OuterRef("digest"))
    going = FactRefusal.objects.filter(of_facts, ~Exists(known), end_user=survivor)
    FactRefusal.objects.filter(pk__in=list(going.values_list("pk", flat=True))).update(end_user=merged)


def _record(merge: PersonMerge, changes: ChangeSet) -> None:
    for target in (merge.survivor, merge.merged, merge):
        audit.record(
            actor=changes.actor,
            verb="undo_merge",
            target=target,
            object_id=target.pk,
            tenant=merge.tenant,
            now=changes.now,
            counts=merge.counts,
        )
