"""API keys: a public prefix and the SHA-256 of the secret; the secret itself is shown once and never stored."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.ids import new_id
from memories.models.tenants import Tenant


class Scope(models.TextChoices):
    INGEST = "ingest", _("Ingest: turns and sessions")
    READ = "read", _("Read: context, search, lists")
    WRITE = "write", _("Write: facts and profile")
    PRIVACY = "privacy", _("Privacy: requests and exports")


class APIKey(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True, help_text="What uses it, e.g. support-bot.")
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    digest = models.BinaryField(max_length=32, editable=False)
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope.choices))
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    successor = models.OneToOneField(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="predecessor",
        editable=False,
        help_text="The key that it was rotated to.",
    )
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="To the nearest five minutes.")

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")

    def __str__(self) -> str:
        return f"mh_{self.prefix}_…"
