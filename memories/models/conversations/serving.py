"""What a tenant's applications were served on a day, as sums: how long contexts took, and how much was recalled."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from memories.models.columns import Columns
from memories.models.people.tenants import Tenant

# Upper limits of the buckets in milliseconds, about a quarter apart. What took longer is in one more.
CONTEXT_MS = (
    1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 200, 250, 300, 400, 500, 600, 800,
    1_000, 1_200, 1_500, 2_000, 2_500, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 15_000, 20_000, 30_000,
)  # fmt: skip
BUCKETS = len(CONTEXT_MS) + 1


class ServedDay(models.Model):
    """One row for a tenant and a day (UTC): it names no person, agent or key."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    context_times = ArrayField(
        models.PositiveBigIntegerField(), help_text="Contexts by the time that they took, in the order of CONTEXT_MS."
    )
    recalls = models.PositiveBigIntegerField(default=0, help_text="Memories that a search or a context ranked.")
    columns = Columns(waived="sums of a tenant's day")

    class Meta:
        default_permissions = ()
        constraints = [
            # Serves adding to it, and reading a tenant's days.
            models.UniqueConstraint(fields=["tenant", "day"], name="served_day_once"),
        ]

    def __str__(self) -> str:
        return f"Served on {self.day}"
