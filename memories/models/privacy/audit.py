"""The audit trail: who did what to which object and when, never the content; sealed in chains of keyed digests."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import Columns


class AuditEvent(models.Model):
    id = models.BigAutoField(primary_key=True)
    # Plain ids, no foreign keys: the trail outlives what it speaks of.
    tenant_uuid = models.UUIDField(null=True)
    actor_kind = models.CharField(_("by"), max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=36, blank=True)
    verb = models.CharField(max_length=40)
    object_type = models.CharField(max_length=40)
    object_id = models.UUIDField()
    request_id = models.CharField(max_length=64, blank=True)
    case_uuid = models.UUIDField(null=True, help_text="The privacy case that it belongs to.")
    counts = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    columns = Columns(waived="ids of ours and codes; an audit event holds no content")

    class Meta:
        ordering = ["-id"]
        verbose_name = _("audit event")
        verbose_name_plural = _("audit events")
        indexes = [
            # Serves the trail of a tenant, newest first.
            models.Index(fields=["tenant_uuid", "-id"], name="audit_of_tenant_idx"),
            # Serves "what happened to this object".
            models.Index(fields=["object_id", "-id"], name="audit_of_object_idx"),
            # Serves the trail of a privacy case.
            models.Index(
                fields=["case_uuid", "-id"], name="audit_of_case_idx", condition=models.Q(case_uuid__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.object_type} {self.object_id}"


class AuditSeal(models.Model):
    """A link of a tenant's chain, or of the chain of events without a tenant; never changed, never deleted.

    A `seal` vouches for the events from `first_id` to `last_id`; a `pruning` says that all up to `last_id` were
    deleted, as the tenant's retention wants it. What the digest is made of: memories/privacy/trail/chain.py.
    """

    class SealKind(models.TextChoices):
        SEAL = "seal", _("Seal")
        PRUNING = "pruning", _("Pruning")

    id = models.BigAutoField(primary_key=True)
    # No foreign key, as in the trail itself.
    tenant_uuid = models.UUIDField(null=True)
    number = models.PositiveIntegerField(help_text="From 1, without gaps, in its chain.")
    kind = models.CharField(max_length=7, choices=SealKind.choices)
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    count = models.PositiveIntegerField(help_text="Events sealed, or deleted.")
    newest_at = models.DateTimeField(help_text="When the newest of these events was.")
    leaves = models.BinaryField(help_text="Of each event its id and a keyed digest; empty for a pruning.")
    previous = models.BinaryField(max_length=32, help_text="Digest of the link before; empty for the first.")
    digest = models.BinaryField(max_length=32)
    sealed_at = models.DateTimeField()
    columns = Columns(waived="keyed digests of audit events")

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
