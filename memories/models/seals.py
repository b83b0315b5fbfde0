"""Seals of the audit trail: what was recorded, chained by keyed digests, so that a change of it shows."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class AuditSeal(models.Model):
    """A link of a tenant's chain, or of the chain of events without a tenant; never changed, never deleted.

    A `seal` vouches for the events from `first_id` to `last_id`; a `pruning` says that all up to `last_id` were
    deleted, as the tenant's retention wants it. What the digest is made of: memories/privacy/trail/chain.py.
    """

    class Kind(models.TextChoices):
        SEAL = "seal", _("Seal")
        PRUNING = "pruning", _("Pruning")

    id = models.BigAutoField(primary_key=True)
    # No foreign key, as in the trail itself.
    tenant_uuid = models.UUIDField(null=True)
    number = models.PositiveIntegerField(help_text="From 1, without gaps, in its chain.")
    kind = models.CharField(max_length=7, choices=Kind.choices)
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    count = models.PositiveIntegerField(help_text="Events sealed, or deleted.")
    newest_at = models.DateTimeField(help_text="When the newest of these events was.")
    leaves = models.BinaryField(help_text="Of each event its id and a keyed digest; empty for a pruning.")
    previous = models.BinaryField(max_length=32, help_text="Digest of the link before; empty for the first.")
    digest = models.BinaryField(max_length=32)
    sealed_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        verbose_name = _("audit seal")
        verbose_name_plural = _("audit seals")
        constraints = [
            # Serves walking a chain from either end.
            models.UniqueConstraint(fields=["tenant_uuid", "number"], name="audit_seal_once"),
            models.UniqueConstraint(
                fields=["number"], name="audit_seal_once_of_none", condition=Q(tenant_uuid__isnull=True)
            ),
        ]
        indexes = [
            # Serves finding how far the trail is sealed.
            models.Index(fields=["-last_id"], name="audit_sealed_idx"),
            # Serves the trigger that guards the trail: what may go; and what of a tenant may be pruned.
            models.Index(fields=["tenant_uuid", "kind", "-last_id"], name="audit_pruned_idx"),
        ]

    def __str__(self) -> str:
        return f"Audit seal {self.number}"
