"""Backups of the database that were made, or failed."""

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.columns import Columns
from memories.models.ids import new_id


class BackupQuerySet(models.QuerySet["Backup"]):
    def made(self) -> Self:
        """Those that did not fail."""
        return self.filter(failed=False)


class Backup(models.Model):
    """One attempt at a backup, written when it is over. No dump has these rows: a restored hub has made none since."""

    class Kind(models.TextChoices):
        DUMP = "dump", _("Dump in one file")
        BASE = "base", _("Base backup of the embedded server")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=4, choices=Kind.choices)
    nightly = models.BooleanField(default=False, help_text="The hub began it by itself.")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    failed = models.BooleanField(default=False)
    size = models.BigIntegerField(default=0, help_text="Bytes.")
    columns = Columns(waived="times and sizes")

    objects = BackupQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        verbose_name = _("backup")
        verbose_name_plural = _("backups")
        indexes = [
            # Serves the last one.
            models.Index(fields=["-started_at"], name="backup_newest_idx"),
        ]

    def __str__(self) -> str:
        return f"Backup {self.id}"
