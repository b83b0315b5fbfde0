"""The profiles of a roll back: a section gets back the text that it had before; one that had none is emptied."""

from copy import copy

from memories.curation.change_sets import ChangeSet
from memories.curation.rollback_selection import ROLL_BACK, UNDO
from memories.models import ProfileRevision, ProfileSection


def put_back(changes: ChangeSet, row: ProfileSection) -> bool:
    """Give the section its text before the `first` version that is taken back, if it had one. Returns True."""
    own = ProfileRevision.objects.filter(end_user=row.end_user_id, section=row.section)
    _write(changes, row, own.get(version=row.first).before, verb=ROLL_BACK)  # type: ignore[attr-defined]
    return True


def undo(changes: ChangeSet, revision: ProfileRevision) -> bool:
    """Take back what a roll back did to a section; False when somebody wrote it since."""
    rows = ProfileSection.objects.select_for_update(of=("self",)).select_related("end_user")
    row = rows.filter(end_user=revision.end_user_id, section=revision.section).first()
    if row is None or row.version != revision.version:
        return False
    _write(changes, row, revision.before, verb=UNDO)
    return True


def _write(changes: ChangeSet, row: ProfileSection, text: str, *, verb: str) -> None:
    before = copy(row)
    row.summary, row.actor_kind, row.extraction, row.prompt_version = text, changes.actor.kind, None, ""
    changes.revise_section(row, verb, before)
