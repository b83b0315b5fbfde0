"""What the revert of a merge of two people does beside rows with revisions: what came from the one is theirs again,
with what was made of it since."""

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from memories.curation.change_sets import Changes
from memories.curation.facts.changing import lock_facts
from memories.curation.people.merging import files, graph, groups, plain, profile, records, trajectories
from memories.curation.people.merging.locks import Pair, discard_work_in_flight, lock, pair_of
from memories.curation.people.merging.rows import move_questions, moved, reassign, restore_session_ids
from memories.curation.sessions import STATED
from memories.exceptions import Conflict
from memories.models import (
    Change,
    ChangeSet,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRelation,
    LoggedContext,
    ReviewItem,
    SentBlock,
    Session,
    Status,
)

Table = Change.Table
State = ReviewItem.State


def lock_for_undo(done: ChangeSet) -> None:
    """Lock the sessions of both, and both. Errors: NotFound, PersonRestricted."""
    if done.end_user_id and done.merged_id:
        lock(done.end_user_id, done.merged_id)


def may_undo_person_merge(merge: ChangeSet) -> bool:
    """Whether it is not undone, and the last one of its survivor: merges are undone from the last to the first."""
    not_undone = ChangeSet.objects.filter(undone_at=None).exclude(merged=None)
    since = not_undone.filter(Q(end_user=merge.end_user_id, pk__gt=merge.pk) | Q(merged=merge.end_user_id))
    return merge.undone_at is None and not since.exists()


def separate(done: ChangeSet, changes: Changes) -> None:
    """Give back what moved, before facts and sections become what they were; counts sessions and facts.

    Facts that rest on the moved sessions alone go along. What came since under the id of the merged person stays with
    the survivor: nothing distinguishes it. Errors: Conflict (merged on since).
    """
    if not may_undo_person_merge(done):
        raise Conflict(_("One of the two was merged again since. Undo that merge first."))
    pair = pair_of(done)
    sessions = list(Session.objects.filter(pk__in=moved(done, Table.SESSION)).values_list("pk", flat=True))
    facts = list(_facts_to_return(pair, done).values_list("pk", flat=True))
    reassign(sessions, facts, to=pair.merged)
    trajectories.separate(pair, done)
    restore_session_ids(done)
    profile.separate(pair, done)
    files.separate(pair, done)
    plain.separate(pair, done)
    graph.separate(pair, done, changes)
    groups.separate(pair, done)
    _separate_evidence(pair)
    # They were of two people.
    LoggedContext.objects.filter(end_user=pair.survivor, created_at__gte=done.created_at).delete()
    SentBlock.objects.filter(end_user=pair.survivor, sent_at__gte=done.created_at).delete()
    changes.counts.update(sessions=len(sessions), facts=len(facts))


def finish(done: ChangeSet, changes: Changes) -> None:
    """What belongs to the one follows them, and both are people of their own again."""
    pair = pair_of(done)
    _reactivate_superseded(pair, changes)
    _separate_questions(pair, done)
    move_questions(frm=pair.survivor, to=pair.merged)
    # Refusals that moved go back, and those of returned facts; what is refused of both stays with each.
    of_facts = Q(fact__end_user=pair.merged) | Q(pk__in=moved(done, Table.REFUSAL))
    own = FactRefusal.objects.filter(end_user=pair.merged, kind=OuterRef("kind"), digest=OuterRef("digest"))
    returning = FactRefusal.objects.filter(of_facts, ~Exists(own), end_user=pair.survivor)
    refusals = list(returning.values_list("pk", flat=True))
    FactRefusal.objects.filter(pk__in=refusals).update(end_user=pair.merged)
    records.separate(pair, done)
    discard_work_in_flight(pair)
    # They name rows of one who is another person again: the survivor's export must not have them.
    done.changes.all().delete()


def _facts_to_return(pair: Pair, done: ChangeSet) -> QuerySet[Fact]:
    """Facts that moved, except those that rest on the survivor's sessions alone by now; and facts that rest on the
    moved sessions alone, unless they were stated outright."""
    cited = FactEvidence.objects.filter(fact=OuterRef("pk"))
    there = Exists(cited.filter(session__in=moved(done, Table.SESSION)))
    here = Exists(cited.exclude(session__in=moved(done, Table.SESSION)))
    came = Q(pk__in=moved(done, Table.FACT))
    stays = Q(here) & ~Q(there)
    follows = Q(there) & ~Q(here) & ~Q(extractor__in=STATED)
    return Fact.objects.filter(end_user=pair.survivor).filter(came & ~stays | follows)


def _separate_evidence(pair: Pair) -> None:
    """Delete evidence and relations that cross from the one person to the other."""
    facts = Fact.objects.filter(end_user__in=pair.people)
    crossing = FactEvidence.objects.filter(fact__in=facts).exclude(turn__end_user=F("fact__end_user"))
    quotes = Exists(crossing.filter(fact=OuterRef("pk"), quote=OuterRef("raw")))
    facts.filter(quotes).unquote()
    FactEvidence.objects.filter(pk__in=list(crossing.values_list("pk", flat=True))).delete()
    related = FactRelation.objects.filter(fact__in=facts).exclude(target__end_user=F("fact__end_user"))
    FactRelation.objects.filter(pk__in=list(related.values_list("pk", flat=True))).delete()


def _reactivate_superseded(pair: Pair, changes: Changes) -> None:
    """Make facts active again whose successor is the other person's now; counts those that could not be, since another
    fact has the same text."""
    rows = Fact.objects.filter(end_user__in=pair.people).exclude(superseded_by=None)
    crossing = rows.exclude(superseded_by__end_user=F("end_user"))
    for fact in lock_facts(list(crossing.values_list("pk", flat=True))):
        own = {"superseded_by": None}
        if fact.status != Status.SUPERSEDED:
            changes.restore(fact, "undo", own)
        elif not changes.restore(fact, "undo", {**own, "status": Status.ACTIVE, "valid_to": None}):
            changes.restore(fact, "undo", {**own, "status": Status.ARCHIVED})
            changes.counts["kept"] += 1


def _separate_questions(pair: Pair, done: ChangeSet) -> None:
    """Drop review items about a fact of the one and a fact of the other; a suggestion still waits, by itself."""
    items = ReviewItem.objects.filter(end_user__in=pair.people).exclude(known=None)
    asked = items.waiting().filter(reason=ReviewItem.Reason.OTHER_PERSON, created_at=done.created_at)
    asked.delete()
    pairs = items.exclude(fact=None).select_related("fact")
    crossing = pairs.exclude(known__end_user=F("fact__end_user"))
    for item in crossing.select_for_update(of=("self",)).order_by("pk"):
        if item.state == State.OPEN and not _stands_alone(item):
            item.delete()
            continue
        item.known, item.version = None, item.version + 1
        item.save(update_fields=["known", "version"])


def _stands_alone(item: ReviewItem) -> bool:
    """Whether the open item is a question without the other fact, too, and is not asked already."""
    asked = ReviewItem.objects.waiting().filter(fact=item.fact_id, known=None, kind=item.kind)
    return bool(item.fact and item.fact.status == Status.PENDING) and not asked.exists()
