"""Exports for people who ask what is kept about them."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.cases import EXPORTING, PrivacyCase
from memories.models.ids import new_id


class ExportState(models.TextChoices):
    MAKING = "making", _("Being made")
    READY = "ready", _("Ready")
    TAKEN = "taken", _("Downloaded")
    EXPIRED = "expired", _("Expired")


class PrivacyExport(models.Model):
    """A ZIP file for who asked; it goes with its one download, after a week, or with the person."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    case = models.ForeignKey(PrivacyCase, on_delete=models.CASCADE, related_name="exports")
    profile = models.CharField(max_length=11, choices=[(one.value, one.label) for one in EXPORTING])
    state = models.CharField(max_length=7, choices=ExportState.choices, default=ExportState.MAKING)
    content = models.BinaryField(default=bytes, editable=False)
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes.")
    # Of the one-time link only the SHA-256 of its token; it stays, so that a link says that it was used.
    token_digest = models.BinaryField(max_length=32, null=True, editable=False)
    made_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    taken_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("export")
        verbose_name_plural = _("exports")
        constraints = [
            models.UniqueConstraint(fields=["token_digest"], name="export_token_once"),
            models.CheckConstraint(
                name="export_gone_is_empty",
                condition=Q(state__in=["making", "ready"]) | Q(content=b""),
            ),
        ]
        indexes = [
            # Serves taking away what has expired.
            models.Index(fields=["expires_at"], name="export_expiry_idx", condition=Q(state="ready")),
        ]

    def __str__(self) -> str:
        return f"Export {self.id}"
