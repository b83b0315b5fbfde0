"""The forms of a file's verbs: each carries the version that the operator was looking at."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.site import reasons
from memories.admin.site.fields import TextField
from memories.admin.site.mentions import mention
from memories.admin.site.page import Button, VersionForm
from memories.admin.site.reasons import ReasonField
from memories.admin.site.wording import CUT_OUT
from memories.audit import Actor
from memories.curation.files import (
    FileWriter,
    NewContent,
    WrittenFile,
    delete_files,
    holding_file,
    restore_file,
    set_lock,
    write_file,
)
from memories.exceptions import FileNotFound
from memories.files.reading import is_present
from memories.models import FileVersion, MemoryFile

KEPT_WITH_VERSION = _("Optional; kept with the version.")
# Of a column of the database.
_MOST_VERSIONS = 2_147_483_647


class FileForm(VersionForm):
    """A verb of `curation.files`; `change` calls it on the file as it is once the person is locked."""

    record: MemoryFile

    def offered(self) -> Button | None:
        """None of a file that agents no longer find."""
        return self.button if is_present(self.record, timezone.now()) else None

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        writer = FileWriter(actor, now, reason=self.cleaned_data.get("reason", ""))
        with holding_file(self.record, expected_version=self.cleaned_data["version"]) as file:
            done = self.change(file, writer)
        cut_out = str(CUT_OUT) if isinstance(done, WrittenFile) and done.redactions else ""
        return f"{str(self.done) % {'file': mention(self.record)}}{cut_out}"

    def change(self, file: MemoryFile, writer: FileWriter) -> WrittenFile | None:
        raise NotImplementedError


class EditFileForm(FileForm):
    button = Button(
        "edit",
        "edit",
        _("Edit"),
        _("Save this file"),
        _(
            "Agents read your text as it is, with every conversation. Secrets are cut out. Lock the file if they must "
            "not change it."
        ),
    )
    content = TextField(label=_("Text"), required=False, strip=False, rows=16)
    reason = ReasonField(*reasons.CORRECT, help_text=KEPT_WITH_VERSION)
    done = _("%(file)s is saved. Agents read your text.")

    def offered(self) -> Button | None:
        return super().offered() if self.record.is_text else None

    def values_of(self, record: MemoryFile) -> dict[str, Any]:
        return {**super().values_of(record), "content": record.content if record.is_text else ""}

    def clean_content(self) -> str:
        """The text with the ends of lines that the file has: a browser sends each as two characters."""
        text: str = self.cleaned_data["content"].replace("\r\n", "\n")
        stored = self.record.content
        has_two = "\r\n" in stored and "\n" not in stored.replace("\r\n", "")
        return text.replace("\n", "\r\n") if has_two else text

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        if self.record.trashed_at is None and self.cleaned_data["content"] == self.record.content:
            return gettext("Nothing was changed.")
        return super().carry_out(actor=actor, now=now)

    def change(self, file: MemoryFile, writer: FileWriter) -> WrittenFile:
        if file.trashed_at or (file.expires_at and file.expires_at <= writer.now):
            # Written, it would be a new file under the old name.
            raise FileNotFound
        content = NewContent.of(self.cleaned_data["content"].encode(), "")
        return write_file(
            end_user=file.end_user,
            agent_id=file.agent_id,
            path=file.path,
            content=content,
            writer=writer,
            verb=FileVersion.Verb.EDIT,
        )


class LockFileForm(FileForm):
    button = Button(
        "lock",
        "lock",
        _("Lock"),
        _("Lock this file"),
        _("Agents read it, and can neither change nor delete it. Operators can."),
    )
    done = _("%(file)s is locked. Agents read it, and can no longer change or delete it.")
    locked = True

    def offered(self) -> Button | None:
        return super().offered() if self.record.locked != self.locked else None

    def change(self, file: MemoryFile, writer: FileWriter) -> None:
        set_lock(file=file, locked=self.locked, writer=writer)


class UnlockFileForm(LockFileForm):
    button = Button(
        "unlock", "lock_open", _("Unlock"), _("Unlock this file"), _("Agents can change and delete it again.")
    )
    done = _("%(file)s is unlocked. Agents can change it again.")
    locked = False


class RestoreFileForm(FileForm):
    done = _("%(file)s has the content of the earlier version again.")
    earlier = forms.IntegerField(min_value=1, max_value=_MOST_VERSIONS, widget=forms.HiddenInput)
    reason = ReasonField(*reasons.RESTORE, help_text=KEPT_WITH_VERSION)

    def change(self, file: MemoryFile, writer: FileWriter) -> WrittenFile:
        return restore_file(
            end_user=file.end_user,
            agent_id=file.agent_id,
            path=file.path,
            version=self.cleaned_data["earlier"],
            writer=writer,
        )


class DeleteFileForm(FileForm):
    button = Button(
        "delete",
        "delete",
        _("Delete"),
        _("Delete this file"),
        _("Agents no longer find it. It stays in the trash for a while, and you can restore a version."),
        danger=True,
    )
    reason = ReasonField(*reasons.FORGET, help_text=KEPT_WITH_VERSION)
    done = _("%(file)s is deleted. You can restore a version below.")

    def change(self, file: MemoryFile, writer: FileWriter) -> None:
        delete_files(end_user=file.end_user, agent_id=file.agent_id, path=file.path, writer=writer)
