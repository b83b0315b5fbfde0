"""Memory files in a roll back and a clearing, and how either is undone: each is one more version of the file."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db.models import QuerySet

from memories.curation.change_sets import Changes
from memories.curation.files import check_place
from memories.curation.rollback.selection import Selector, touched_files
from memories.exceptions import Conflict
from memories.files import versions
from memories.files.reading import FileTree
from memories.models import ChangeSet, FileVersion, MemoryFile


def roll_back(selector: Selector, changes: Changes) -> None:
    """Give the selected files what they were before; the people are locked."""
    rows = touched_files(selector)
    changes.counts["kept"] += rows.filter(stays=True).count()
    firsts = dict(rows.filter(stays=False).order_by("pk").values_list("pk", "first"))
    for file in _read(firsts):
        before = FileVersion.objects.filter(file=file, version=firsts[file.pk] - 1).first()
        is_done = _make(file, before, changes)
        changes.counts["files" if is_done else "kept"] += 1


def clear(files: QuerySet[MemoryFile], changes: Changes) -> int:
    """Move these files of a locked person to the trash; returns how many."""
    cleared = [_make(file, None, changes) for file in _read(files.order_by("pk").values_list("pk", flat=True))]
    return len(cleared)


def restore(done: ChangeSet, changes: Changes, is_at: Callable[[MemoryFile, int], bool]) -> None:
    """Give the files that it changed what they were before; the people are locked.

    `is_at`: whether a file is what it was at this version. What changed since stays and is counted, and so does what
    cannot be where another file is by now.
    """
    left = dict(FileVersion.objects.filter(change_set=done.pk).order_by("file").values_list("file", "version"))
    for file in _read(left):
        before = FileVersion.objects.filter(file=file, version=left[file.pk] - 1).first()
        is_done = before is not None and is_at(file, left[file.pk]) and _make(file, before, changes)
        changes.counts["files" if is_done else "kept"] += 1


def _read(ids: Iterable[uuid.UUID]) -> Iterator[MemoryFile]:
    """The files, locked, one at a time: their texts may be long."""
    for pk in list(ids):
        rows = MemoryFile.objects.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")
        yield from rows.filter(pk=pk)


def _make(file: MemoryFile, found: FileVersion | None, changes: Changes) -> bool:
    """Make the file what it was in this version, or put it in the trash; False if something else has its place."""
    change: dict[str, Any] = {"actor": changes.actor, "now": changes.now, "reason": changes.reason}
    if file.trashed_at:
        try:
            check_place(FileTree(file.tenant, file.end_user, file.agent_id, changes.now), file.path)
        except Conflict:
            return False
    versions.restore_version(file, found, change_set=changes.id, **change)
    return True
