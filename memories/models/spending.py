"""What models were asked besides extraction, which has its runs: sums per day."""

from django.db import models

from memories.models.tenants import Tenant


class ModelUse(models.Model):
    """A tenant's calls of one model for one purpose on one day (UTC)."""

    class Purpose(models.TextChoices):
        SUMMARIES = "summaries"
        UPKEEP = "upkeep"

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    purpose = models.CharField(max_length=16, choices=Purpose.choices)
    calls = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=6, null=True, help_text="US dollars.")

    class Meta:
        constraints = [
            # Serves adding to it, and the days of a tenant.
            models.UniqueConstraint(fields=["tenant", "day", "purpose"], name="model_use_once_a_day"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} of {self.day}"
