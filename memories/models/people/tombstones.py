"""That somebody was erased, kept so that they do not come back unnoticed."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.columns import Columns
from memories.models.people.tenants import Tenant


class ReturnPolicy(models.TextChoices):
    """What happens when somebody comes under the id of an erased person."""

    REFUSE = "refuse", _("Refuse")
    FLAG = "flag", _("Allow as a new person and flag to staff")
    ALLOW_NEW = "allow_new", _("Allow as a new person")


class Tombstone(models.Model):
    """That a person of this id was erased: a keyed hash, from which nobody learns the id without the pepper."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    digest = models.BinaryField(max_length=32, editable=False)
    policy = models.CharField(max_length=9, choices=ReturnPolicy.choices)
    # A plain id: the tombstone outlives the case.
    case_uuid = models.UUIDField()
    created_at = models.DateTimeField()
    met = models.PositiveIntegerField(default=0, help_text="How often somebody came under the id again.")
    last_met_at = models.DateTimeField(null=True)
    columns = Columns(waived="a keyed hash of an id, for ever: without it an erased person could come back")

    class Meta:
        verbose_name = _("tombstone")
        verbose_name_plural = _("tombstones")
        constraints = [
            # Serves the look-up whenever a person is made.
            models.UniqueConstraint(fields=["tenant", "digest"], name="tombstone_once"),
        ]

    def __str__(self) -> str:
        return f"Tombstone {self.pk}"
