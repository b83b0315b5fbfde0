"""Memory files: text files that agents keep about a person, with every version."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, INSIDE, STAFF, TEXT, VALUE, Columns
from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant
from memories.trust import Trust

# Bytes of UTF-8, so that owner, agent and path fit into one entry of the index.
LONGEST_PATH = 1_000


class Encoding(models.TextChoices):
    UTF_8 = "utf-8", _("Text")
    # Bytes that are no text.
    BASE64 = "base64", _("Binary")


class MemoryFileQuerySet(models.QuerySet["MemoryFile"]):
    def of(self, tenant: Tenant, end_user: EndUser) -> Self:
        """The files of one person: every read starts here."""
        return self.filter(tenant=tenant, end_user=end_user)

    def present(self, *, now: datetime) -> Self:
        """Files that are neither deleted nor past their time."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), trashed_at=None)

    def below(self, folder: str) -> Self:
        """Files at any depth of a folder, whose name ends with a slash."""
        if folder == "/":
            return self
        # The character after the slash: a range of the index, whatever wildcards the name has.
        return self.filter(path__gt=folder, path__lt=f"{folder[:-1]}0")

    def discarded(self, *, now: datetime) -> Self:
        """What is in the trash since then, or longer."""
        return self.filter(trashed_at__lte=now)

    def outdated(self, *, now: datetime) -> Self:
        """Scratch files whose time is over."""
        return self.filter(expires_at__lte=now)


class MemoryFile(models.Model):
    """A file as it is now. A deleted one stays until it leaves the trash, so that its versions go on."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="files", db_index=False
    )
    agent_id = models.CharField(
        _("agent"), max_length=255, blank=True, help_text="Whose it is alone; empty: of requests that name no agent."
    )
    path = models.CharField(_("path"), max_length=LONGEST_PATH, db_collation="C")
    content = models.TextField(blank=True, help_text="The text, or base64.")
    encoding = models.CharField(max_length=6, choices=Encoding.choices, default=Encoding.UTF_8)
    size = models.PositiveIntegerField(_("size"), default=0, help_text="Bytes, in UTF-8.")
    version = models.PositiveIntegerField(_("version"), default=1)
    locked = models.BooleanField(_("locked"), default=False, help_text="By an operator: no key changes it.")
    actor_kind = models.CharField(_("written by"), max_length=8, choices=ActorKind.choices)
    trust = models.CharField(_("trust"), max_length=9, choices=Trust.choices, help_text="Of whoever wrote it last.")
    created_at = models.DateTimeField(_("created"))
    updated_at = models.DateTimeField(_("changed"))
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Of scratch files.")
    trashed_at = models.DateTimeField(null=True, blank=True, help_text="Since when it is deleted.")
    columns = Columns(
        id=VALUE, agent_id=TEXT, path=TEXT, content=TEXT, encoding=CODE, size=VALUE, version=VALUE, locked=VALUE,
        actor_kind=CODE, trust=CODE, created_at=VALUE, updated_at=VALUE, expires_at=VALUE, trashed_at=VALUE,
    )  # fmt: skip

    objects = MemoryFileQuerySet.as_manager()

    class Meta:
        ordering = ["path"]
        default_permissions = ("view", "change")
        verbose_name = _("memory file")
        verbose_name_plural = _("memory files")
        constraints = [
            # Serves every read of a person's files, and ranges of folders.
            models.UniqueConstraint(fields=["end_user", "tenant", "agent_id", "path"], name="memory_file_once"),
            models.CheckConstraint(condition=Q(path__startswith="/"), name="memory_file_path_is_absolute"),
            models.CheckConstraint(condition=Q(version__gte=1), name="memory_file_version_from_1"),
        ]
        indexes = [
            # Serve the nightly pass: only what is due.
            models.Index(
                fields=["tenant", "trashed_at", "id"],
                name="memory_file_trash_idx",
                condition=Q(trashed_at__isnull=False),
            ),
            models.Index(
                fields=["tenant", "expires_at", "id"],
                name="memory_file_expires_idx",
                condition=Q(expires_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"Memory file {self.id}"

    @property
    def is_text(self) -> bool:
        return self.encoding == Encoding.UTF_8


class FileVersion(models.Model):
    """One version of a file: what it was after a change, who made the change, and when."""

    class Verb(models.TextChoices):
        WRITE = "write", _("Written")
        EDIT = "edit", _("Edited")
        UPLOAD = "upload", _("Uploaded")
        RESTORE = "restore", _("Restored")
        DELETE = "delete", _("Deleted")

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    file = models.ForeignKey(MemoryFile, on_delete=models.CASCADE, related_name="versions", db_index=False)
    version = models.PositiveIntegerField(_("version"))
    verb = models.CharField(_("change"), max_length=7, choices=Verb.choices)
    content = models.TextField(blank=True, help_text="As of a file; of a deletion empty.")
    encoding = models.CharField(max_length=6, choices=Encoding.choices, default=Encoding.UTF_8)
    size = models.PositiveIntegerField(default=0)
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=36, blank=True)
    trust = models.CharField(max_length=9, choices=Trust.choices)
    reason = models.TextField(blank=True, max_length=2000)
    restored = models.PositiveIntegerField(null=True, blank=True, help_text="The version whose text it has again.")
    change_set = models.UUIDField(null=True, editable=False, help_text="Of many memories at once, such as a roll back.")
    created_at = models.DateTimeField(_("time"))
    columns = Columns(
        version=VALUE, verb=CODE, content=TEXT, encoding=CODE, size=VALUE, actor_kind=CODE, trust=CODE,
        restored=VALUE, reason=TEXT, change_set=VALUE, created_at=VALUE, id=INSIDE, file=INSIDE, actor_id=STAFF,
    )  # fmt: skip

    class Meta:
        ordering = ["-version"]
        default_permissions = ()
        verbose_name = _("version of a memory file")
        verbose_name_plural = _("versions of memory files")
        constraints = [
            # Serves a file's history, and makes two changes of one version impossible.
            models.UniqueConstraint(fields=["file", "tenant", "version"], name="file_version_once"),
            models.CheckConstraint(
                condition=Q(restored__isnull=True) | Q(restored__lt=F("version")), name="file_version_restores_older"
            ),
        ]
        indexes = [
            # Serves rolling back what a key made.
            models.Index(fields=["actor_id"], name="file_version_actor_idx"),
            # Serves the nightly pass: only what is old.
            models.Index(fields=["tenant", "created_at", "id"], name="file_version_old_idx"),
            # Serves the undo of a change set.
            models.Index(
                fields=["change_set"], name="file_version_change_set_idx", condition=Q(change_set__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"Version {self.version} of memory file {self.file_id}"

    @property
    def is_text(self) -> bool:
        return self.encoding == Encoding.UTF_8
