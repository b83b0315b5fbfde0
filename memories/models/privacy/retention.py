"""Retention passes and table rewrites: what was deleted for good because its time was over, in counts."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import Columns
from memories.models.forgetting import DecayPass
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.people.tenants import Tenant


class RetentionPassQuerySet(LeasedQuerySet["RetentionPass"]):
    def open(self) -> Self:
        """Passes that are not done, whether somebody works on them or not."""
        return self.filter(finished_at=None)


class RetentionPass(Leased):
    """One pass; the row is the queue: whoever holds its lease works on it, and another goes on where that one died."""

    class Stage(models.TextChoices):
        """What it is at; in this order."""

        TURNS = "turns", _("Turns")
        EPISODES = "episodes", _("Episodes")
        RUNS = "runs", _("Runs")
        AUDIT = "audit", _("Audit events")
        EXPORTS = "exports", _("Exports")
        CONTEXTS = "contexts", _("Log of contexts")
        STORE = "store", _("Items of the store")
        DIARY = "diary", _("Diary entries")
        TRAJECTORIES = "trajectories", _("Trajectories")

    IN_WORK = Q(finished_at=None)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="retention_passes", db_index=False
    )
    trigger = models.CharField(max_length=8, choices=DecayPass.Trigger.choices)
    actor_id = models.CharField(max_length=36, blank=True, help_text="Id of the operator who began it.")
    as_of = models.DateTimeField(help_text="The moment that it judges by.")
    stage = models.CharField(max_length=12, choices=Stage.choices, default=Stage.TURNS)
    reached = models.UUIDField(null=True, editable=False, help_text="Row up to which its stage has come.")
    counts = models.JSONField(
        default=dict,
        blank=True,
        help_text="turns, sessions, episodes, runs, audit, exports, contexts, store, diary, trajectories.",
    )
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    columns = Columns(waived="counts by code")

    objects = RetentionPassQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "-id"]
        default_permissions = ()
        verbose_name = _("retention pass")
        verbose_name_plural = _("retention passes")
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="retention_pass_once", condition=Q(finished_at=None)),
        ]
        indexes = [
            # Serves the newest passes of a tenant.
            models.Index(fields=["tenant", "-started_at"], name="retention_pass_newest_idx"),
        ]

    def __str__(self) -> str:
        return f"Retention pass {self.id}"


class TableRewrite(models.Model):
    """What was deleted from the table before this moment is in its file no more."""

    table = models.CharField(primary_key=True, max_length=63)
    rewritten_at = models.DateTimeField()
    columns = Columns(waived="names of tables, and times")

    def __str__(self) -> str:
        return self.table
