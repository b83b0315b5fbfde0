"""The profiles of a roll back: a section gets back the text that it had before."""

from django.db.models import QuerySet

from memories.curation.rollback_facts import Act
from memories.curation.rollback_selection import ROLL_BACK, UNDO
from memories.models import ProfileRevision, ProfileSection


def put_back(act: Act, row: ProfileSection) -> bool:
    """Give the section its text before the `first` selected revision; without one it is removed. Returns True."""
    text = ProfileRevision.objects.get(pk=row.first).before  # type: ignore[attr-defined]
    _write(act, row, text, verb=ROLL_BACK)
    return True


def undo(act: Act, revision: ProfileRevision) -> bool:
    """Take back what a roll back did to a section; False when somebody wrote it since."""
    own = ProfileRevision.objects.filter(end_user=revision.end_user_id, section=revision.section)
    if own.filter(version__isnull=False).order_by("pk").last() != revision:
        return False
    known: QuerySet[ProfileSection] = ProfileSection.objects.select_for_update()
    row = known.filter(end_user=revision.end_user_id, section=revision.section).first()
    _write(act, row or _blank(revision), revision.before, verb=UNDO)
    return True


def _blank(revision: ProfileRevision) -> ProfileSection:
    person = revision.end_user
    version = revision.version or 0
    return ProfileSection(tenant=person.tenant, end_user=person, section=revision.section, version=version)


def _write(act: Act, row: ProfileSection, text: str, *, verb: str) -> None:
    revision = ProfileRevision(
        end_user=row.end_user,
        section=row.section,
        version=row.version + 1,
        verb=verb,
        actor_kind=act.actor.kind,
        actor_id=act.actor.id,
        before=row.summary,
        after=text,
        binding_before=row.binding,
        reason=act.reason,
        change_set=act.change_set,
        created_at=act.now,
    )
    row.version, row.summary, row.updated_at = row.version + 1, text, act.now
    row.actor_kind, row.extraction, row.prompt_version = act.actor.kind, None, ""
    if text:
        row.save()
    else:
        row.delete()
    revision.save(force_insert=True)
