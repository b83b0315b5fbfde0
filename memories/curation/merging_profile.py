"""Two profiles become one: a section that only one has is taken over, of two the other's text waits for an operator."""

import uuid
from collections.abc import Sequence
from copy import copy
from enum import Enum, auto
from typing import Any

from django.db.models import Q, QuerySet

from memories.curation.change_sets import ChangeSet
from memories.curation.merging_locks import Pair
from memories.curation.merging_rows import Kind, note, noted
from memories.models import EndUser, PersonMerge, ProfileRevision, ProfileSection, ReviewItem
from memories.models.folding import fold
from memories.pipeline import review_items
from memories.pipeline.review_items import Question

MERGE = "merge_people"


class Fate(Enum):
    """What becomes of a section of the merged person."""

    # The survivor has none: it goes over as it is, with its history.
    MOVED = auto()
    # An operator wrote it, and nobody the survivor's: its text takes that one's place.
    WRITTEN = auto()
    # The survivor's stays, and the other text is a question.
    ASKED = auto()
    # It says nothing, or the same.
    LEFT = auto()


def fates(survivor: EndUser, merged: EndUser) -> dict[str, Fate]:
    """By section of the merged person."""
    ours = {row.section: row for row in ProfileSection.objects.filter(end_user=survivor)}
    theirs = ProfileSection.objects.filter(end_user=merged)
    return {row.section: _fate(ours.get(row.section), row) for row in theirs.order_by("section")}


def join(pair: Pair, merge: PersonMerge, changes: ChangeSet) -> dict[str, int]:
    """Carry the fates out; counts of sections taken over and of questions."""
    fate_of = fates(*pair.people)
    rows = {
        (row.end_user_id, row.section): row
        for row in ProfileSection.objects.select_for_update(of=("self",)).filter(end_user__in=pair.people)
    }
    for section, fate in fate_of.items():
        ours, theirs = (rows.get((person.pk, section)) for person in pair.people)
        if ours and theirs and fate == Fate.WRITTEN:
            _write(ours, theirs, pair, changes)
        elif ours and theirs and fate == Fate.ASKED:
            _propose(ours, theirs, pair, changes)
    _move(pair, merge, [section for section, fate in fate_of.items() if fate == Fate.MOVED])
    found = list(fate_of.values())
    return {"sections": len(found) - found.count(Fate.LEFT), "proposed": found.count(Fate.ASKED)}


def part(pair: Pair, merge: PersonMerge, changes: ChangeSet) -> int:
    """Undo it: what moved goes back with what was written of it since; sections that changed since are counted."""
    kept = _unwrite(merge, changes)
    moved = noted(merge, Kind.SECTION)
    names = list(ProfileSection.objects.filter(pk__in=moved).values_list("section", flat=True))
    _withdraw(merge)
    since = Q(section__in=names, created_at__gte=merge.created_at)
    ours = ProfileRevision.objects.filter(end_user=pair.survivor)
    ours.filter(since | Q(pk__in=noted(merge, Kind.REVISION))).update(end_user=pair.merged)
    ProfileSection.objects.filter(pk__in=moved, end_user=pair.survivor).update(end_user=pair.merged)
    return kept


def _fate(ours: ProfileSection | None, theirs: ProfileSection) -> Fate:
    if ours is None:
        return Fate.MOVED
    if theirs.summary and not ours.binding and (theirs.binding or not ours.summary):
        return Fate.WRITTEN
    same = fold(ours.summary) == fold(theirs.summary)
    return Fate.LEFT if same or not theirs.summary else Fate.ASKED


def _move(pair: Pair, merge: PersonMerge, sections: Sequence[str]) -> None:
    """The sections with their history, and what is proposed of any and waits."""
    note(merge, Kind.SECTION, _ids(ProfileSection.objects.filter(end_user=pair.merged, section__in=sections)))
    theirs = ProfileRevision.objects.filter(end_user=pair.merged)
    waiting = ReviewItem.objects.waiting().filter(end_user=pair.merged).exclude(proposed_section=None)
    moving = Q(section__in=sections) | Q(pk__in=waiting.values("proposed_section"))
    note(merge, Kind.REVISION, _ids(theirs.filter(moving)))
    ProfileRevision.objects.filter(pk__in=noted(merge, Kind.REVISION)).update(end_user=pair.survivor)
    ProfileSection.objects.filter(pk__in=noted(merge, Kind.SECTION)).update(end_user=pair.survivor)


def _write(ours: ProfileSection, theirs: ProfileSection, pair: Pair, changes: ChangeSet) -> None:
    before = copy(ours)
    ours.end_user = pair.survivor
    ours.summary, ours.binding, ours.actor_kind = theirs.summary, theirs.binding, theirs.actor_kind
    ours.extraction_id, ours.prompt_version = theirs.extraction_id, theirs.prompt_version
    changes.revise_section(ours, MERGE, before)


def _propose(ours: ProfileSection, theirs: ProfileSection, pair: Pair, changes: ChangeSet) -> None:
    proposal = ProfileRevision.objects.create(
        end_user=pair.survivor,
        section=ours.section,
        version=None,
        verb=MERGE,
        actor_kind=changes.actor.kind,
        actor_id=changes.actor.id,
        before=ours.summary,
        after=theirs.summary,
        extraction_id=theirs.extraction_id,
        change_set=changes.id,
        created_at=changes.now,
    )
    question = Question(ReviewItem.Reason.OTHER_PERSON, proposed_section=proposal)
    review_items.ask(question, run=None, now=changes.now)


def _unwrite(merge: PersonMerge, changes: ChangeSet) -> int:
    """Sections that took the other's text over get their own back; how many had changed since."""
    kept = 0
    written = ProfileRevision.objects.filter(change_set=merge.pk, verb=MERGE, version__isnull=False)
    for revision in written.order_by("pk"):
        rows = ProfileSection.objects.select_for_update(of=("self",)).select_related("end_user")
        row = rows.filter(end_user=revision.end_user_id, section=revision.section).first()
        if row is None or row.version != revision.version:
            kept += 1
            continue
        before = copy(row)
        row.summary, row.binding = revision.before, revision.binding_before
        row.actor_kind, row.extraction, row.prompt_version = changes.actor.kind, None, ""
        changes.revise_section(row, "undo", before)
    return kept


def _withdraw(merge: PersonMerge) -> None:
    """What the merge proposed and nobody has decided is no question any more."""
    proposed = ProfileRevision.objects.filter(change_set=merge.pk, verb=MERGE, version=None)
    open_ones = ReviewItem.objects.waiting().filter(proposed_section__in=proposed)
    going = list(open_ones.select_for_update(of=("self",)).order_by("pk").values_list("proposed_section", flat=True))
    # Their questions go with them.
    ProfileRevision.objects.filter(pk__in=going).delete()


def _ids(rows: QuerySet[Any]) -> Sequence[uuid.UUID]:
    return list(rows.values_list("pk", flat=True))
