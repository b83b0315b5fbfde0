"""What was refused for good."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.facts import Fact
from memories.models.people import EndUser


class FactRefusal(models.Model):
    """What an operator rejected or forgot: keyed hashes only, so that it outlives the fact itself."""

    class Kind(models.TextChoices):
        TEXT = "text", _("Text")
        KEY = "key", _("Key")

    id = models.BigAutoField(primary_key=True)
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="refusals", db_index=False)
    kind = models.CharField(max_length=4, choices=Kind.choices)
    digest = models.BinaryField(max_length=32)
    fact = models.ForeignKey(Fact, null=True, on_delete=models.SET_NULL, related_name="refusals")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            # Serves the gate's look-up of a candidate's hashes.
            models.UniqueConstraint(fields=["end_user", "kind", "digest"], name="refusal_once"),
        ]

    def __str__(self) -> str:
        return f"Refusal {self.pk}"
