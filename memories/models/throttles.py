"""How many requests each key made in the present window."""

from django.db import models

from memories.models.api_keys import APIKey, Scope


class ThrottleCounter(models.Model):
    """One row per key and scope; unlogged (see its migration): after a crash the counting begins anew."""

    id = models.BigAutoField(primary_key=True)
    key = models.ForeignKey(APIKey, on_delete=models.CASCADE, related_name="+", db_index=False)
    scope = models.CharField(max_length=16, choices=Scope.choices)
    window = models.BigIntegerField(help_text="Number of the window since 1970.")
    requests = models.PositiveIntegerField()

    class Meta:
        constraints = [
            # Serves the upsert at every request.
            models.UniqueConstraint(fields=["key", "scope"], name="throttle_once_per_scope"),
        ]

    def __str__(self) -> str:
        return f"Requests of key {self.key_id} ({self.scope})"
