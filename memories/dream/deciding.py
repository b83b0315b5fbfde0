"""What people decide about dreams: approve or decline, undo one edit, take the text of a refused one, restore.

Each verb locks the person, then the dream, as the commit of a dream does.
"""

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.files import FileWriter, OpenFile, open_file
from memories.curation.people.errors import PersonMerged
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import lock_person
from memories.dream import applying
from memories.dream.dreaming import counts_of, record, writer_of
from memories.dream.errors import DreamDecided, EditNotUndone, NothingToRestore
from memories.dream.proposals import LONGEST_FILE
from memories.dream.summaries import summary_of
from memories.exceptions import NotFound, PersonRestricted, PreconditionFailed, ReviewNeeded
from memories.files.versions import restore_version
from memories.models import Dream, DreamEdit, FileVersion, MemoryFile, Trust

State, EditState = Dream.State, DreamEdit.State
Verb = FileVersion.Verb
# Of a dream whose files have, or had, something of it.
DONE = (State.APPLIED, State.UNCHANGED)


def approve(
    *, dream_id: uuid.UUID, accepted: Collection[int], actor: Actor, now: datetime, expected_version: int | None = None
) -> Dream:
    """Apply these edits of a dream that waits, by their numbers; the others are declined.

    One that no longer applies is refused, and says why. Errors: NotFound, PersonRestricted, DreamDecided,
    PreconditionFailed.
    """
    with _deciding(dream_id, expected_version) as dream:
        if dream.state != State.WAITING:
            raise DreamDecided
        _check_unrestricted(dream)
        edits = list(dream.edits.order_by("number"))
        waiting = [edit for edit in edits if edit.state == EditState.WAITING]
        taken = [edit for edit in waiting if edit.number in accepted]
        for edit in waiting:
            edit.state = EditState.DECLINED
        applying.apply(dream, taken, writer=writer_of(dream, now=now))
        DreamEdit.objects.bulk_update(waiting, ["state", "code", "file_version", "old_text", "new_text"])
        dream.state = State.APPLIED if any(edit.state == EditState.APPLIED for edit in edits) else State.DECLINED
        dream.summary = summary_of(edits) or dream.summary
        _decided(dream, "approve" if taken else "decline", actor=actor, now=now, edits=waiting)
    return dream


def decline(*, dream_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None) -> Dream:
    """Decline all that waits of a dream; its episodes stay read. Errors: those of approve()."""
    return approve(dream_id=dream_id, accepted=(), actor=actor, now=now, expected_version=expected_version)


def accept(
    *, dream_id: uuid.UUID, number: int, actor: Actor, now: datetime, expected_version: int | None = None
) -> Dream:
    """An operator takes over an edit that was refused or declined: from now on the text is the operator's own.

    Errors: NotFound, PersonRestricted, DreamDecided, PreconditionFailed, and why it cannot be applied.
    """
    with _deciding(dream_id, expected_version) as dream:
        edit = _edit_of(dream, number)
        if dream.state in (State.RUNNING, State.WAITING, State.RESTORED) or not is_acceptable(edit):
            raise DreamDecided
        _check_unrestricted(dream)
        writer = FileWriter(actor, now, reason=_("Taken over from a dream."))
        with open_file(end_user=dream.end_user, agent_id=dream.agent_id, path=edit.path, writer=writer) as file:
            is_new = file.text is None
            file.replace(edit.old_text, edit.new_text, longest=LONGEST_FILE)
            saved = file.save(Verb.WRITE if is_new else Verb.EDIT, trust=Trust.OPERATOR, change_set=dream.pk)
        edit.state, edit.code, edit.file_version = EditState.APPLIED, "", saved.version
        edit.save(update_fields=["state", "code", "file_version"])
        dream.state = State.APPLIED
        dream.summary = summary_of(dream.edits.all())
        _decided(dream, "accept", actor=actor, now=now, edits=[edit])
    return dream


def is_acceptable(edit: DreamEdit) -> bool:
    """Whether an operator can take it over: one that a person declined, or that waits for a person's word."""
    return edit.state == EditState.DECLINED or (edit.state == EditState.REFUSED and edit.code == ReviewNeeded.code)


def undo_edit(
    *, dream_id: uuid.UUID, number: int, actor: Actor, now: datetime, expected_version: int | None = None
) -> Dream:
    """Take one applied edit back. What others wrote into the file since stays.

    Errors: NotFound, PreconditionFailed, DreamDecided, EditNotUndone.
    """
    with _deciding(dream_id, expected_version) as dream:
        edit = _edit_of(dream, number)
        if edit.state != EditState.APPLIED or dream.state != State.APPLIED:
            raise DreamDecided
        writer = FileWriter(actor, now, reason=_("An edit of a dream was undone."))
        with open_file(end_user=dream.end_user, agent_id=dream.agent_id, path=edit.path, writer=writer) as file:
            _undo_in(file, dream, edit)
        edit.state, edit.file_version = EditState.UNDONE, None
        edit.save(update_fields=["state", "file_version"])
        dream.summary = summary_of(dream.edits.all())
        _decided(dream, "undo", actor=actor, now=now, edits=[edit])
    return dream


def restore(
    *,
    dream_id: uuid.UUID,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    write_trust: WriteTrust = AS_USER,
) -> tuple[Dream, int]:
    """Make the files what they were before this dream, and let its episodes, and those of later ones, be new again.

    A file that somebody else changed since, that is locked, or whose version is gone by now stays as it is; returns
    the dream and how many stayed. Errors: NotFound, PersonRestricted for a key, PreconditionFailed, DreamDecided,
    NothingToRestore, BeyondTrust where a key's `write_trust` may not end what one of the files says.
    """
    with _deciding(dream_id, expected_version) as dream:
        if dream.end_user.restricted_at and not actor.is_operator:
            raise PersonRestricted
        if dream.state not in DONE or dream.kind != Dream.Kind.FILES:
            raise DreamDecided
        rows = _since(dream).exclude(state__in=[State.FAILED, State.RESTORED]).select_for_update(of=("self",))
        going = list(rows.order_by("-started_at", "-pk"))
        if any(one.state == State.RUNNING for one in going):
            raise DreamDecided
        back, kept = _put_files_back(dream, [one.pk for one in going], actor=actor, now=now, write_trust=write_trust)
        if kept and not back:
            raise NothingToRestore
        for one in going:
            one.read.all().delete()
            one.edits.filter(state__in=[EditState.APPLIED, EditState.WAITING]).update(state=EditState.UNDONE)
            one.state = State.RESTORED
            _decided(one, "restore", actor=actor, now=now, edits=())
        dream.refresh_from_db()
    return dream, kept


def keep(*, dream_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None) -> Dream:
    """Somebody has looked at a dream that read what is gone by now: what stands of it in the files may stay.

    Errors: NotFound, PreconditionFailed, DreamDecided where nothing was to be looked at.
    """
    with _deciding(dream_id, expected_version) as dream:
        if dream.doubted_at is None:
            raise DreamDecided
        dream.doubted_at = None
        _decided(dream, "keep", actor=actor, now=now, edits=())
    return dream


def _since(dream: Dream) -> QuerySet[Dream]:
    """This dream and later ones about the same files."""
    files = Dream.objects.filter(kind=Dream.Kind.FILES, agent_id=dream.agent_id)
    return files.filter(end_user=dream.end_user_id, started_at__gte=dream.started_at)


def _put_files_back(
    dream: Dream, dreams: Sequence[uuid.UUID], *, actor: Actor, now: datetime, write_trust: WriteTrust
) -> tuple[int, int]:
    """How many files are what they were before these dreams, and how many stay. Errors: BeyondTrust."""
    versions = FileVersion.objects.filter(change_set__in=dreams, file__end_user=dream.end_user_id)
    # The last one counts: the lowest version.
    firsts = dict(versions.order_by("-version").values_list("file", "version"))
    # What a later dream wrote that was taken back since is nobody else's either.
    own = _since(dream).values("pk")
    back = kept = 0
    files = MemoryFile.objects.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")
    for file in files.filter(pk__in=firsts).order_by("pk"):
        first = firsts[file.pk]
        before = FileVersion.objects.filter(file=file, version=first - 1).first()
        others = FileVersion.objects.filter(file=file, version__gte=first).exclude(change_set__in=own)
        is_lost = first > 1 and before is None
        if (file.locked and not actor.is_operator) or is_lost or others.exists() or file.trashed_at:
            kept += 1
            continue
        if not actor.is_operator:
            guarding.check_outranks(file.trust, write_trust)
        reason = _("Restored to before a dream.")
        restore_version(file, before, actor=actor, now=now, reason=reason, change_set=dream.pk)
        back += 1
    return back, kept


def _undo_in(file: OpenFile, dream: Dream, edit: DreamEdit) -> None:
    """Take the edit out of the open file. Errors: EditNotUndone."""
    row, now_text = file.row, file.text
    if row is None or now_text is None:
        raise EditNotUndone
    text = _rebuilt(row, dream, edit)
    if text is None and edit.new_text.strip() and now_text.count(edit.new_text) == 1:
        text = now_text.replace(edit.new_text, edit.old_text)
    if text is None:
        raise EditNotUndone
    began = _version_before(row, dream)
    file.text = text
    is_gone = not text and began is None
    # Nobody has vouched for what is left.
    file.save(Verb.DELETE if is_gone else Verb.EDIT, trust=Trust(row.trust), change_set=dream.pk)


def _rebuilt(row: MemoryFile, dream: Dream, edit: DreamEdit) -> str | None:
    """The text as it would be without this edit, if nobody but the dream has changed the file since."""
    own = FileVersion.objects.filter(file=row, change_set=dream.pk).order_by("version")
    first = own.values_list("version", flat=True).first()
    if first is None or own.count() != row.version - first + 1:
        return None
    before = _version_before(row, dream)
    if before is None and first > 1:
        return None
    left = dream.edits.filter(path=edit.path, state=EditState.APPLIED).exclude(pk=edit.pk).order_by("number")
    return applying.rebuild(before.content if before else "", list(left))


def _version_before(row: MemoryFile, dream: Dream) -> FileVersion | None:
    """What the file was before the dream; None: it was not there, or the version is gone by now."""
    first = FileVersion.objects.filter(file=row, change_set=dream.pk).order_by("version").first()
    if first is None:
        return None
    found = FileVersion.objects.filter(file=row, version=first.version - 1).first()
    return None if found is None or found.verb == Verb.DELETE else found


def _edit_of(dream: Dream, number: int) -> DreamEdit:
    edit = dream.edits.select_for_update().filter(number=number).first()
    if edit is None:
        raise NotFound
    return edit


def _check_unrestricted(dream: Dream) -> None:
    if dream.end_user.restricted_at:
        raise PersonRestricted


@contextmanager
def _deciding(dream_id: uuid.UUID, expected_version: int | None) -> Iterator[Dream]:
    """Lock the person and the dream. All or nothing. Errors: NotFound, PersonMerged, PreconditionFailed."""
    with transaction.atomic():
        owner = lock_person(Dream.objects.filter(pk=dream_id).values_list("end_user", flat=True).first())
        rows = Dream.objects.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user__tenant")
        dream = rows.filter(pk=dream_id).first()
        if dream is None:
            raise NotFound
        # What was dreamt about somebody who was merged stays with that id; the files are the other person's.
        if dream.end_user_id != owner:
            raise PersonMerged
        if expected_version not in (None, dream.version):
            raise PreconditionFailed
        yield dream


def _decided(dream: Dream, verb: str, *, actor: Actor, now: datetime, edits: Sequence[DreamEdit]) -> None:
    dream.version, dream.decided_at = dream.version + 1, now
    if not dream.edits.filter(state__in=[EditState.APPLIED, EditState.WAITING]).exists():
        # Nothing of it is in a file any more.
        dream.doubted_at = None
    dream.save(update_fields=["version", "decided_at", "doubted_at", "state", "summary"])
    record(dream, verb, actor=actor, now=now, counts=counts_of(edits))
