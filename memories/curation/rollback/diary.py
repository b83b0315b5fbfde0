"""Entries of diaries in a roll back and a clearing, and how either is undone: what it deleted names its change set."""

from django.db.models import QuerySet

from memories.curation.change_sets import Changes
from memories.curation.rollback.selection import Selector, touched_entries
from memories.models import ChangeSet, DiaryEntry


def take_back(selector: Selector, changes: Changes) -> None:
    """Move the selected entries to the trash, and count them; the people are locked."""
    changes.counts["diary"] += clear(touched_entries(selector), changes)


def clear(entries: QuerySet[DiaryEntry], changes: Changes) -> int:
    """Move these entries of locked people to the trash; returns how many."""
    return entries.filter(trashed_at=None).update(trashed_at=changes.now, change_set=changes.id)


def put_back(done: ChangeSet, changes: Changes) -> None:
    """Take out of the trash what this change set put there, unless an operator has restored it since."""
    if count := DiaryEntry.objects.filter(change_set=done.pk).update(trashed_at=None, change_set=None):
        changes.counts["diary"] += count
