"""Extraction runs, one per attempt, with outcome and cost and without content; other model calls as sums per day."""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import CODE, VALUE, Column, Columns
from memories.models.conversations.conversations import Session
from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant


class ExtractionRun(models.Model):
    class RunStatus(models.TextChoices):
        RUNNING = "running", _("Running")
        COMMITTED = "committed", _("Done")
        FAILED = "failed", _("Failed")
        PARKED = "parked", _("Parked")
        DISCARDED = "discarded", _("Discarded")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="runs", db_index=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="runs")
    first_number = models.PositiveIntegerField(help_text="First turn of the range.")
    last_number = models.PositiveIntegerField(help_text="Last turn of the range.")
    fed_turns = models.PositiveIntegerField(default=0, help_text="Turns of the range that the model was shown.")
    status = models.CharField(_("outcome"), max_length=9, choices=RunStatus.choices, default=RunStatus.RUNNING)
    attempt = models.PositiveIntegerField()
    extractor = models.CharField(max_length=120, help_text="What made it, e.g. llm:gpt-4o-mini.")
    prompt_version = models.CharField(max_length=40, blank=True)
    guidance_version = models.PositiveIntegerField(default=1)
    calls = models.PositiveIntegerField(default=0, help_text="Model calls made.")
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True, help_text="US dollars.")
    outcome = models.JSONField(default=dict, blank=True, help_text="Counts: stored, reinforced, superseded, …")
    refusals = models.JSONField(default=dict, blank=True, help_text="Counts of refused candidates by reason.")
    failure = models.CharField(max_length=40, blank=True, help_text="Code of the failure.")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    columns = Columns(
        id=VALUE, session=VALUE, first_number=VALUE, last_number=VALUE, fed_turns=VALUE, status=CODE, attempt=VALUE,
        extractor=CODE, prompt_version=CODE, calls=VALUE, prompt_tokens=VALUE, completion_tokens=VALUE, cost=VALUE,
        outcome=CODE, refusals=CODE, failure=CODE, started_at=VALUE, finished_at=VALUE,
        guidance_version=Column(omitted="a version of the application's settings"),
    )  # fmt: skip

    class Meta:
        ordering = ["-started_at", "-id"]
        verbose_name = _("extraction run")
        verbose_name_plural = _("extraction runs")
        constraints = [
            models.CheckConstraint(condition=Q(first_number__lte=F("last_number")), name="run_range_in_order"),
        ]
        indexes = [
            # Serves GET /extractions of a tenant, newest first.
            models.Index(fields=["tenant", "-started_at", "-id"], name="run_newest_idx"),
            # Serves the dashboard and the admin's list, of all tenants.
            models.Index(fields=["-started_at", "-id"], name="run_newest_of_all_idx"),
            # Serves GET /extractions of one person.
            models.Index(fields=["end_user", "-started_at"], name="run_of_end_user_idx"),
            # Serves ending the runs that a dead worker left, and the count of parked ones.
            models.Index(fields=["status", "-started_at"], name="run_by_status_idx"),
        ]

    def __str__(self) -> str:
        return f"Extraction {self.id}"

    @property
    def owner(self) -> str:
        """The agent whose the facts are that it makes; empty: they are the person's own.

        An attempt reads the tenant once, with its claim: a setting that changes meanwhile is the next one's.
        """
        return self.session.owner(self.tenant)


class ModelUse(models.Model):
    """A tenant's calls of one model for one purpose on one day (UTC)."""

    class Purpose(models.TextChoices):
        SUMMARIES = "summaries"
        UPKEEP = "upkeep"
        DREAMS = "dreams"
        ANSWERS = "answers"
        SKILLS = "skills"
        PICTURES = "pictures"

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    purpose = models.CharField(max_length=16, choices=Purpose.choices)
    calls = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=6, null=True, help_text="US dollars.")
    columns = Columns(waived="sums of a tenant's day")

    class Meta:
        constraints = [
            # Serves adding to it, and the days of a tenant.
            models.UniqueConstraint(fields=["tenant", "day", "purpose"], name="model_use_once_a_day"),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} of {self.day}"
