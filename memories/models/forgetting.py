"""Passes of forgetting: what each took and why it stopped, in counts."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import CODE, MACHINE, Columns
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.people.tenants import Tenant


class DecayPassQuerySet(LeasedQuerySet["DecayPass"]):
    def open(self) -> Self:
        """Passes that are not done, whether somebody works on them or not."""
        return self.filter(state=DecayPass.PassState.RUNNING)

    def in_upkeep(self) -> Self:
        """Those whose upkeep is not over."""
        return self.filter(upkeep_open=True)


class DecayPass(Leased):
    """One pass; the row is the queue: whoever holds its lease works on it, and another goes on where that one died."""

    class PassState(models.TextChoices):
        RUNNING = "running", _("Running")
        DONE = "done", _("Done")
        # It would take more than the brake allows: somebody has to confirm it.
        HELD = "held", _("Held")
        # It ended its worker too often.
        FAILED = "failed", _("Failed")

    class Trigger(models.TextChoices):
        SCHEDULE = "schedule", _("Schedule")
        COMMAND = "command", _("Command")
        OPERATOR = "operator", _("Operator")

    IN_WORK = Q(state=PassState.RUNNING) | Q(upkeep_open=True)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="decay_passes", db_index=False
    )
    trigger = models.CharField(_("started by"), max_length=8, choices=Trigger.choices)
    actor_id = models.CharField(max_length=36, blank=True, help_text="Id of the operator who began it.")
    as_of = models.DateTimeField(help_text="The moment that it judges by.")
    confirmed = models.BooleanField(default=False, help_text="Somebody has seen what it takes: no brake holds it.")
    state = models.CharField(_("state"), max_length=7, choices=PassState.choices, default=PassState.RUNNING)
    counts = models.JSONField(default=dict, blank=True, help_text="facts, episodes, expired, purged, refreshed, …")
    reached = models.UUIDField(null=True, editable=False, help_text="Person up to whom the scores are refreshed.")
    upkeep_open = models.BooleanField(default=False, editable=False, help_text="Its upkeep is not over.")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    columns = Columns(
        omitted=MACHINE.omitted, failure=CODE, trigger=CODE, actor_id=CODE, state=CODE, counts=CODE,
    )  # fmt: skip

    objects = DecayPassQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "-id"]
        verbose_name = _("decay pass")
        verbose_name_plural = _("decay passes")
        constraints = [
            # One at a time: two that run at once would take what the brake allows twice.
            models.UniqueConstraint(fields=["tenant"], name="decay_pass_running_once", condition=Q(state="running")),
            models.UniqueConstraint(fields=["tenant"], name="decay_pass_upkeep_once", condition=Q(upkeep_open=True)),
        ]
        indexes = [
            # Serves the list of a tenant and its newest pass.
            models.Index(fields=["tenant", "-started_at"], name="decay_pass_newest_idx"),
        ]

    def __str__(self) -> str:
        return f"Decay pass {self.id}"
