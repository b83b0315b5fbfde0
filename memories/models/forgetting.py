"""Passes of forgetting: what each took and why it stopped, in counts."""

from django.db import models
from django.db.models import Q

from memories.models.ids import new_id
from memories.models.tenants import Tenant


class DecayPass(models.Model):
    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        # It would take more than the brake allows: somebody has to confirm it.
        HELD = "held"

    class Trigger(models.TextChoices):
        SCHEDULE = "schedule"
        COMMAND = "command"
        OPERATOR = "operator"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="decay_passes", db_index=False)
    trigger = models.CharField(max_length=8, choices=Trigger.choices)
    as_of = models.DateTimeField(help_text="The moment that it judges by.")
    state = models.CharField(max_length=7, choices=State.choices, default=State.RUNNING)
    counts = models.JSONField(default=dict, blank=True, help_text="facts, episodes, expired, purged, refreshed, …")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-started_at", "-id"]
        verbose_name_plural = "decay passes"
        constraints = [
            # One at a time: two that run at once would take what the brake allows twice.
            models.UniqueConstraint(fields=["tenant"], name="decay_pass_running_once", condition=Q(state="running")),
        ]
        indexes = [
            # Serves the list of a tenant and its newest pass.
            models.Index(fields=["tenant", "-started_at"], name="decay_pass_newest_idx"),
        ]

    def __str__(self) -> str:
        return f"Decay pass {self.id}"
