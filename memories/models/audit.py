"""The audit trail: who did what to which object and when, never the content."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind


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
