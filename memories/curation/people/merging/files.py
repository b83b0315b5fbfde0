"""Memory files of two people who are merged: all move; one whose path the survivor has as well gets another name."""

from memories.curation.change_sets import Changes
from memories.curation.people.merging.locks import Pair
from memories.curation.people.merging.rows import moved
from memories.files import paths
from memories.models import Change, ChangeSet, MemoryFile

Table, Action = Change.Table, Change.Action
# Digits of the hub's own id that are enough to distinguish the files of one person.
_DIGITS = 12


def join(pair: Pair, changes: Changes) -> None:
    """Move the files with their versions; counts them."""
    theirs = list(MemoryFile.objects.select_for_update(of=("self",)).filter(end_user=pair.merged).order_by("pk"))
    if not theirs:
        return
    taken = set(MemoryFile.objects.filter(end_user=pair.survivor).values_list("agent_id", "path"))
    for file in theirs:
        if (file.agent_id, file.path) in taken:
            changes.record_row_change(Table.FILE, Action.CHANGED, file.pk, before={"path": file.path})
            file.path = _renamed(file)
        file.end_user = pair.survivor
    MemoryFile.objects.bulk_update(theirs, ["path", "end_user"], batch_size=500)
    changes.counts["files"] = changes.move(Table.FILE, [file.pk for file in theirs])


def separate(pair: Pair, done: ChangeSet) -> None:
    """Undo join(): the files go back under their old paths, with what was written in them since."""
    files = list(MemoryFile.objects.filter(pk__in=moved(done, Table.FILE), end_user=pair.survivor))
    rows = done.changes.filter(table=Table.FILE, action=Action.CHANGED)
    before = {row.uuid: row.before["path"] for row in rows}
    for file in files:
        file.end_user, file.path = pair.merged, before.get(file.pk, file.path)
    MemoryFile.objects.bulk_update(files, ["path", "end_user"], batch_size=500)


def _renamed(file: MemoryFile) -> str:
    """`/memories/notes.md` → `/memories/notes~<digits>.md`; what would be too long goes to a folder of its own."""
    folder, _, name = file.path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    mark = f"~{file.pk.hex[-_DIGITS:]}"
    path = f"{folder}/{stem}{mark}{dot}{ending}" if stem else f"{folder}/{name}{mark}"
    return path if paths.fault_of_file(path) is None else f"/merged/{file.pk.hex}"
