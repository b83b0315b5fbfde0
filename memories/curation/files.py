"""Writing memory files: keys and operators write, edit, delete and restore them, operators lock them.

Each verb locks the person, so that two edits, an edit and a merge, or a write and an erasure follow each other. Secrets
and invisible letters are cut out. A key's text that speaks to a model is refused, with the place: what an agent reads
as its own memory steers it in every later conversation. It is not kept as a proposal, because the agent would go on as
if its note were there; told at once, it can write the same as a note about the person. Notes need no review otherwise,
whoever the key speaks for: only the agent that wrote them reads them.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit, conf
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import lock_person, open_write
from memories.exceptions import (
    Conflict,
    FileIsBinary,
    FileIsFolder,
    FileNotFound,
    FileTooLarge,
    FolderIsFile,
    InvalidInput,
    OperatorWord,
    PreconditionFailed,
    ReviewNeeded,
    TextNotFound,
    TextNotUnique,
    TooManyFiles,
)
from memories.files import paths, texts
from memories.files.passages import ChangedText
from memories.files.reading import FileTree
from memories.files.versions import add_version
from memories.invisible import strip_invisible
from memories.models import Encoding, EndUser, FileVersion, MemoryFile, Trust
from memories.text.secrets.redaction import redact_text

Verb = FileVersion.Verb
KILOBYTE = 1_000
# Characters of new text that one request may have judged: its meaning takes 1 to 2 ms a sentence. What only changed its
# place counts a tenth.
MOST_JUDGED = 200_000


@dataclass
class Judging:
    """How much new text a request has had judged."""

    characters: int = 0

    def take(self, characters: int) -> None:
        """Errors: FileTooLarge, beyond MOST_JUDGED."""
        if self.characters + characters > MOST_JUDGED:
            raise FileTooLarge(
                _("One request can add at most %(most)d characters of new text. Store the rest with the next ones.")
                % {"most": MOST_JUDGED}
            )
        self.characters += characters


@dataclass(frozen=True)
class FileWriter:
    """Who writes, when, as whom and why. Files of one request have the same."""

    actor: Actor
    now: datetime
    write_trust: WriteTrust = AS_USER
    reason: str = ""
    judging: Judging = field(default_factory=Judging)

    @property
    def trust(self) -> Trust:
        return Trust.OPERATOR if self.actor.is_operator else self.write_trust.trust


@dataclass(frozen=True)
class WrittenFile:
    """The file after a change; how many places an edit changed, and how many secrets were cut out."""

    file: MemoryFile
    is_new: bool = False
    occurrences: int = 0
    redactions: int = 0


@dataclass(frozen=True)
class NewContent:
    """What is to be stored: a text without NUL, or base64 of other bytes, and its size in bytes."""

    content: str
    encoding: str
    size: int

    @classmethod
    def of(cls, data: bytes, base64: str) -> "NewContent":
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return cls(base64, Encoding.BASE64, len(data))
        # PostgreSQL has no NUL in texts.
        return cls(base64, Encoding.BASE64, len(data)) if "\x00" in text else cls(text, Encoding.UTF_8, len(data))


def write_file(
    *,
    end_user: EndUser,
    agent_id: str,
    path: str,
    content: NewContent,
    writer: FileWriter,
    verb: FileVersion.Verb = Verb.WRITE,
    expected_version: int | None = None,
) -> WrittenFile:
    """Make the file, or give it this content. `expected_version` 0: there is none yet.

    Errors: NotFound (erased meanwhile), PersonRestricted, OperatorWord (locked), PreconditionFailed, FileIsFolder,
    FolderIsFile, FileTooLarge, TooManyFiles, ReviewNeeded.
    """
    with _locked(end_user, agent_id, path, writer, expected_version) as (tree, row, before):
        if before is None:
            _check_unlocked(row, writer)
            check_place(tree, path)
            _check_number(tree)
        new, redactions = _clean(tree, path, content, _existing_text(before), writer)
        if not new.size:
            _check_ends(before, writer)
        file = _stored(tree, row, path)
        is_new = before is None or before.version == 0
        _save(file, verb, new, writer)
    return WrittenFile(file, is_new, redactions=redactions)


def edit_file(
    *,
    end_user: EndUser,
    agent_id: str,
    path: str,
    old: str,
    new: str,
    every: bool,
    writer: FileWriter,
    expected_version: int | None = None,
) -> WrittenFile:
    """Replace `old` by `new` where it stands once, or `every` time.

    Errors: FileNotFound, FileIsBinary, TextNotFound, TextNotUnique, and those of write_file().
    """
    with _locked(end_user, agent_id, path, writer, expected_version) as (tree, row, before):
        if before is None:
            raise FileNotFound
        if not before.is_text:
            raise FileIsBinary
        # As the file has been stored.
        done = texts.replace(before.content, strip_invisible(old), new, every=every)
        if isinstance(done, texts.NotReplaced):
            if done.occurrences:
                raise TextNotUnique(occurrences=done.occurrences)
            raise TextNotFound(newline_only=done.newline_only, without_newline=done.without_newline)
        content = NewContent(done.content, Encoding.UTF_8, len(done.content.encode()))
        clean, redactions = _clean(tree, path, content, before.content, writer)
        if not clean.size:
            _check_ends(before, writer)
        file = _stored(tree, row, path)
        _save(file, Verb.EDIT, clean, writer)
    return WrittenFile(file, before.version == 0, occurrences=done.occurrences, redactions=redactions)


def delete_files(
    *, end_user: EndUser, agent_id: str, path: str, writer: FileWriter, expected_version: int | None = None
) -> int:
    """Delete the file, or the folder with all that is in it; returns how many files. They can be restored for a while.

    Errors: FileNotFound, PersonRestricted, OperatorWord (one of them is locked), PreconditionFailed, ReviewNeeded (one
    of them was written last with more trust than the writer's).
    """
    with _locked(end_user, agent_id, path, writer, expected_version) as (tree, row, before):
        rows = [] if before is None else [_stored(tree, row, path)]
        rows += list(_for_update(tree.present.below(paths.folder(path))))
        if not rows:
            raise FileNotFound
        for file in rows:
            _check_unlocked(file, writer)
            _check_ends(file, writer)
        for file in rows:
            if file._state.adding:
                # The first file is stored, so that it is gone.
                _add(file, Verb.WRITE, NewContent(before.content, Encoding.UTF_8, before.size), writer)  # type: ignore[union-attr]
            _add(file, Verb.DELETE, NewContent("", file.encoding, 0), writer)
        _record("delete", rows[0], writer, files=len(rows))
    return len(rows)


def restore_file(
    *,
    end_user: EndUser,
    agent_id: str,
    path: str,
    version: int,
    writer: FileWriter,
    expected_version: int | None = None,
) -> WrittenFile:
    """Give the file the content of an earlier version, also when it was deleted since.

    Errors: FileNotFound (no such file, or no such version), Conflict (a deletion has no content), and those of
    write_file().
    """
    with _locked(end_user, agent_id, path, writer, expected_version) as (tree, row, before):
        found = FileVersion.objects.filter(file=row, version=version).first() if row else None
        if found is None or row is None:
            raise FileNotFound(_("There is no such version of a file at this path."))
        if found.verb == Verb.DELETE:
            raise Conflict(_("In this version the file is deleted. Restore an earlier one."))
        _check_ends(before, writer)
        if before is None:
            _check_unlocked(row, writer)
            check_place(tree, path)
            _check_number(tree)
        given = NewContent(found.content, found.encoding, found.size)
        new, redactions = _clean(tree, path, given, _existing_text(before), writer)
        _save(row, Verb.RESTORE, new, writer, restored=version)
    return WrittenFile(row, before is None, redactions=redactions)


@dataclass
class OpenFile:
    """A file whose person is locked, while edits change its text; save() stores the outcome as one version."""

    tree: FileTree
    path: str
    row: MemoryFile | None
    writer: FileWriter
    # None: there is no such file.
    text: str | None

    def replace(self, old: str, new: str, *, longest: int) -> None:
        """Put `new` where `old` stands once; without `old` at the end, or as the text of a new file.

        An edit that is refused leaves the text as it is. Errors: FileNotFound, TextNotFound, TextNotUnique,
        FileTooLarge (also beyond so many characters, unless it gets shorter), TooManyFiles, FileIsFolder, FolderIsFile,
        ReviewNeeded, InvalidInput.
        """
        existing = self.text
        if existing is None and old:
            raise FileNotFound
        text = texts.with_end(existing or "", new) if not old else _replaced(existing or "", old, new)
        if longest < len(text) > len(existing or ""):
            raise FileTooLarge(_("A dream keeps such a file at %(most)d characters.") % {"most": longest})
        if existing is None:
            check_place(self.tree, self.path)
            _check_number(self.tree)
        given = NewContent(text, Encoding.UTF_8, len(text.encode()))
        self.text = _clean(self.tree, self.path, given, existing, self.writer)[0].content

    def save(self, verb: FileVersion.Verb, *, trust: Trust, change_set: uuid.UUID) -> MemoryFile:
        """Store the text as the next version, of this trust; of a deletion it is empty."""
        file = _stored(self.tree, self.row, self.path)
        text = self.text or ""
        add_version(
            file,
            verb,
            content=text,
            encoding=Encoding.UTF_8,
            size=len(text.encode()),
            actor=self.writer.actor,
            trust=trust,
            now=self.writer.now,
            reason=redact_text(self.writer.reason)[0],
            change_set=change_set,
        )
        _record(verb, file, self.writer)
        return file


@contextmanager
def open_file(*, end_user: EndUser, agent_id: str, path: str, writer: FileWriter) -> Iterator[OpenFile]:
    """Lock the person and the file at this path, also where there is none, for several edits that are one version.

    All or nothing. Errors: NotFound (erased meanwhile), PersonRestricted, OperatorWord (locked), FileIsBinary.
    """
    with _locked(end_user, agent_id, path, writer, None) as (tree, row, before):
        if before is None:
            _check_unlocked(row, writer)
        elif not before.is_text:
            raise FileIsBinary
        yield OpenFile(tree, path, row, writer, before.content if before else None)


def _replaced(text: str, old: str, new: str) -> str:
    done = texts.replace(text, strip_invisible(old), new, every=False)
    if isinstance(done, texts.Replaced):
        return done.content
    if done.occurrences:
        raise TextNotUnique(occurrences=done.occurrences)
    raise TextNotFound(newline_only=done.newline_only, without_newline=done.without_newline)


def set_lock(*, file: MemoryFile, locked: bool, writer: FileWriter, expected_version: int | None = None) -> MemoryFile:
    """An operator locks the file, so that no key changes it, or unlocks it. Its version stays.

    Errors: FileNotFound, PreconditionFailed, Conflict where it is so already.
    """
    with _locked(file.end_user, file.agent_id, file.path, writer, expected_version) as (_tree, row, before):
        if row is None or before is None:
            raise FileNotFound
        if row.locked == locked:
            raise Conflict(_("Somebody else has done this meanwhile."))
        row.locked = locked
        row.save(update_fields=["locked"])
        _record("lock" if locked else "unlock", row, writer)
    return row


@contextmanager
def holding_file(file: MemoryFile, *, expected_version: int) -> Iterator[MemoryFile]:
    """The file as it is once its person is locked: a merge may have given it another owner and another path meanwhile.

    For verbs on a file that somebody looked at, also a deleted one. All or nothing. Errors: NotFound (erased
    meanwhile), FileNotFound, PreconditionFailed (another version).
    """
    with transaction.atomic():
        owner = lock_person(file.end_user_id)
        row = _for_update(MemoryFile.objects.filter(pk=file.pk)).first()
        if row is None:
            raise FileNotFound
        # Of another owner: that a merge was undone between the two lines above is as good as a change.
        if row.version != expected_version or row.end_user_id != owner:
            raise PreconditionFailed
        yield row


@contextmanager
def _locked(
    end_user: EndUser, agent_id: str, path: str, writer: FileWriter, expected_version: int | None
) -> Iterator[tuple[FileTree, MemoryFile | None, MemoryFile | None]]:
    """Lock the person and the row at this path; yields also the file as a reader sees it now.

    The file is None where there is none; the first file, where nobody wrote it, has no row. All or nothing.
    """
    with open_write(end_user, writer.actor, follows_merge=True) as person:
        tree = FileTree(person.tenant, person, agent_id, writer.now)
        row = _for_update(tree.rows.filter(path=path)).first()
        before = tree.file(path)
        if row and before:
            before.locked = row.locked
        if expected_version is not None and expected_version != (before.version if before else 0):
            raise PreconditionFailed
        if before:
            _check_unlocked(before, writer)
        yield tree, row, before


def _for_update(rows: Any) -> Any:
    return rows.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")


def _stored(tree: FileTree, row: MemoryFile | None, path: str) -> MemoryFile:
    """The row, or a new one that is not saved."""
    return row or MemoryFile(tenant=tree.tenant, end_user=tree.person, agent_id=tree.agent_id, path=path)


def _check_unlocked(row: MemoryFile | None, writer: FileWriter) -> None:
    """Errors: OperatorWord. A deleted file that is locked stays so: no key writes another one in its place."""
    if row and row.locked and not writer.actor.is_operator:
        raise OperatorWord(_("An operator locked this file. Only an operator can change it."))


def _check_ends(before: MemoryFile | None, writer: FileWriter) -> None:
    """Errors: ReviewNeeded where what the file says now has more trust than the writer; the first file, which nobody
    wrote, has none."""
    if before and not before._state.adding and not writer.actor.is_operator:
        guarding.check_outranks(before.trust, writer.write_trust)


def check_place(tree: FileTree, path: str) -> None:
    """Errors: FileIsFolder, FolderIsFile."""
    if tree.is_folder(path):
        raise FileIsFolder
    if tree.files(list(paths.folders_above(path))):
        raise FolderIsFile


def _existing_text(before: MemoryFile | None) -> str | None:
    """The text that a file has; empty of bytes that are none, None where there is no file."""
    if before is None:
        return None
    return before.content if before.is_text else ""


def _check_number(tree: FileTree) -> None:
    """Errors: TooManyFiles. A person's files of all agents count together."""
    most = conf.rules(tree.tenant).files_per_person
    if MemoryFile.objects.filter(tenant=tree.tenant, end_user=tree.person).present(now=tree.now).count() >= most:
        raise TooManyFiles(
            _("A person can have %(most)d files. Delete some, or have the limit raised.") % {"most": most}
        )


def _clean(
    tree: FileTree, path: str, given: NewContent, existing: str | None, writer: FileWriter
) -> tuple[NewContent, int]:
    """The content without secrets and invisible letters, and how many secrets it had; `existing`: its text until now.

    Errors: FileTooLarge, InvalidInput (a secret in the path), ReviewNeeded.
    """
    most = conf.rules(tree.tenant).file_kilobytes
    if given.size > most * KILOBYTE:
        raise FileTooLarge(_("A file can have at most %(most)d kB. Split it, or shorten it.") % {"most": most})
    if existing is None and redact_text(path)[1]:
        raise InvalidInput.at("/path", _("The path holds what looks like a secret: name the file otherwise."))
    if given.encoding != Encoding.UTF_8:
        return given, 0
    text, redactions = redact_text(strip_invisible(given.content))
    changed_path = path if existing is None else ""
    if not writer.actor.is_operator:
        _check_text(changed_path, existing or "", text, writer)
    # After that, because that limits how much a request may have judged.
    guarding.check_new_words(tree.tenant, Road.FILE, _name_of(changed_path), ChangedText(existing or "", text))
    return NewContent(text, Encoding.UTF_8, len(text.encode())), redactions


def _name_of(path: str) -> str:
    return path.replace("/", " ").replace("_", " ").replace("-", " ").removesuffix(".md").strip()


def _check_text(path: str, before: str, text: str, writer: FileWriter) -> None:
    """Errors: FileTooLarge; ReviewNeeded with the passage's lines, when the text speaks to a model as it did not
    before."""
    name = _name_of(path)
    if name and guarding.speaks_to_model(name):
        raise ReviewNeeded(_("The name of the file speaks to a model: name it after what it is about."))
    changed = ChangedText(before, text)
    writer.judging.take(changed.effort)
    found = guarding.newly_speaks(changed)
    if found:
        detail = _(
            "The file was not changed: %(where)s tell a model what to do, whom to believe or what to keep from "
            "people. Write what the user said or wants as a note about them. An operator can write it as it is."
        )
        guarding.refuse_at(found, text, detail)


def _save(file: MemoryFile, verb: FileVersion.Verb, new: NewContent, writer: FileWriter, **more: Any) -> None:
    _add(file, verb, new, writer, **more)
    _record(verb, file, writer)


def _add(file: MemoryFile, verb: FileVersion.Verb, new: NewContent, writer: FileWriter, **more: Any) -> None:
    add_version(
        file,
        verb,
        content=new.content,
        encoding=new.encoding,
        size=new.size,
        actor=writer.actor,
        trust=writer.trust,
        now=writer.now,
        reason=redact_text(writer.reason)[0],
        **more,
    )


def _record(verb: str, file: MemoryFile, writer: FileWriter, **counts: int) -> None:
    audit.record(actor=writer.actor, verb=verb, target=file, now=writer.now, counts=counts)
