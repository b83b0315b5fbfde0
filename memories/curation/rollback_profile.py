"""The profiles of a roll back: a section gets back the text that it had before; one that had none is emptied."""

from copy import copy

from memories import audit
from memories.curation.rollback_facts import Act
from memories.curation.rollback_selection import ROLL_BACK, UNDO
from memories.models import ProfileRevision, ProfileSection


def put_back(act: Act, row: ProfileSection) -> bool:
    """Give the section its text before the `first` version that is taken back, if it had one. Returns True."""
    own = ProfileRevision.objects.filter(end_user=row.end_user_id, section=row.section)
    _write(act, row, own.get(version=row.first).before, verb=ROLL_BACK)  # type: ignore[attr-defined]
    return True


def undo(act: Act, revision: ProfileRevision) -> bool:
    """Take back what a roll back did to a section; False when somebody wrote it since."""
    rows = ProfileSection.objects.select_for_update(of=("self",)).select_related("end_user")
    row = rows.filter(end_user=revision.end_user_id, section=revision.section).first()
    if row is None or row.version != revision.version:
        return False
    _write(act, row, revision.before, verb=UNDO)
    return True


def _write(act: Act, row: ProfileSection, text: str, *, verb: str) -> None:
    before = copy(row)
    row.version, row.summary, row.updated_at = row.version + 1, text, act.now
    row.actor_kind, row.extraction, row.prompt_version = act.actor.kind, None, ""
    row.save()
    audit.revise_section(
        row=row, verb=verb, actor=act.actor, before=before, now=act.now, reason=act.reason, change_set=act.change_set
    )
