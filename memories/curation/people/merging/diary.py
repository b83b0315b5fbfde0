"""Diaries of two people who are merged: all entries move, and an undo gives them back."""

import uuid
from collections.abc import Sequence

from memories.curation.change_sets import Changes
from memories.curation.people.merging.locks import Pair
from memories.curation.people.merging.rows import moved
from memories.models import Change, ChangeSet, DiaryEntry, DiaryVector, EndUser

Table = Change.Table


def join(pair: Pair, changes: Changes) -> None:
    """Move the entries, also those in the trash; counts them."""
    theirs = list(DiaryEntry.objects.filter(end_user=pair.merged).order_by("pk").values_list("pk", flat=True))
    if theirs:
        _give(theirs, pair.survivor)
        changes.counts["diary"] = changes.move(Table.DIARY, theirs)


def separate(pair: Pair, done: ChangeSet) -> None:
    """Undo join(). What was written since stays with the survivor."""
    rows = DiaryEntry.objects.filter(pk__in=moved(done, Table.DIARY), end_user=pair.survivor)
    _give(list(rows.order_by("pk").values_list("pk", flat=True)), pair.merged)


def _give(entries: Sequence[uuid.UUID], to: EndUser) -> None:
    """These entries, with the copy of the person's id at their vectors."""
    DiaryEntry.objects.filter(pk__in=entries).update(end_user=to)
    DiaryVector.objects.filter(entry__in=entries).update(end_user=to)
