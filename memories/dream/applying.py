"""Applies the edits of a dream to the files: each alone, those of one file as one version."""

from collections.abc import Sequence
from html import unescape

from django.db import transaction

from memories.curation.files import FileWriter, OpenFile, open_file
from memories.dream.proposals import LONGEST_FILE
from memories.exceptions import ContentForbidden, MemoryHubError, NotFound, PersonRestricted
from memories.files.texts import with_end
from memories.models import Dream, DreamEdit, FileVersion

Verb = FileVersion.Verb
State = DreamEdit.State


def apply(dream: Dream, edits: Sequence[DreamEdit], *, writer: FileWriter) -> None:
    """Apply these edits, which are not refused, in their order; set on each its state, the code or the version.

    In the transaction that locked the person; nothing is saved of the edits. Errors: NotFound (erased meanwhile),
    PersonRestricted.
    """
    for path in dict.fromkeys(edit.path for edit in edits):
        _apply_to_file(dream, path, [edit for edit in edits if edit.path == path], writer)


def judge(dream: Dream, edits: Sequence[DreamEdit], *, writer: FileWriter) -> None:
    """Find out which of these edits would be refused now; those that would not wait. No file is changed."""
    with transaction.atomic():
        apply(dream, edits, writer=writer)
        transaction.set_rollback(True)
    for edit in edits:
        if edit.state == State.APPLIED:
            edit.state, edit.file_version = State.WAITING, None


def _apply_to_file(dream: Dream, path: str, edits: Sequence[DreamEdit], writer: FileWriter) -> None:
    try:
        with open_file(end_user=dream.end_user, agent_id=dream.agent_id, path=path, writer=writer) as file:
            is_new, before = file.text is None, file.text
            for edit in edits:
                _refuse(edit, _code_of(file, edit))
            if file.text == before:
                version = file.row.version if file.row else None
            else:
                verb = Verb.WRITE if is_new else Verb.EDIT
                version = file.save(verb, trust=writer.trust, change_set=dream.pk).version
            for edit in edits:
                if not edit.code:
                    edit.state, edit.file_version = State.APPLIED, version
    except MemoryHubError as error:
        # Of the person, and not of the file.
        if type(error) in (NotFound, PersonRestricted):
            raise
        for edit in edits:
            _refuse(edit, error.code)


def _code_of(file: OpenFile, edit: DreamEdit) -> str:
    """Apply the edit to the open file; why not, or an empty string."""
    try:
        try:
            file.replace(edit.old_text, edit.new_text, longest=LONGEST_FILE)
        except NotFound:
            old = unescape(edit.old_text)
            if old == edit.old_text:
                raise
            # Some models copy the characters that the prompt escapes as it has them.
            file.replace(old, unescape(edit.new_text), longest=LONGEST_FILE)
            edit.old_text, edit.new_text = old, unescape(edit.new_text)
    except MemoryHubError as error:
        return error.code
    return ""


def _refuse(edit: DreamEdit, code: str) -> None:
    edit.code = code
    if code:
        edit.state = State.REFUSED
    if code == ContentForbidden.code:
        # It is not kept beside the files either.
        edit.new_text = ""


def rebuild(text: str, edits: Sequence[DreamEdit]) -> str | None:
    """The text after these edits of a dream, which were applied before; None if one of them does not fit by now."""
    for edit in edits:
        if not edit.old_text:
            text = with_end(text, edit.new_text)
        elif text.count(edit.old_text) == 1:
            text = text.replace(edit.old_text, edit.new_text)
        else:
            return None
    return text
