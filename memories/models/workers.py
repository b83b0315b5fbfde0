"""Workers' signs of life, and what they know together of the model's endpoint."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models.functions import Now

from memories.models.columns import MACHINE, Columns
from memories.models.people.tenants import Tenant


class WorkerKind(models.TextChoices):
    CLUSTER = "cluster"
    EMBEDDER = "embedder"


class WorkerHeartbeat(models.Model):
    """One row per running worker cluster and embedder; written only once its tokenizer or embedding is loaded."""

    name = models.CharField(primary_key=True, max_length=255, help_text="Host and process id.")
    kind = models.CharField(max_length=8, choices=WorkerKind.choices, default=WorkerKind.CLUSTER)
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField()
    # Written by the database where the version before, which does not know it, makes a row.
    keys = models.CharField(
        max_length=60, blank=True, db_default="", help_text="Fingerprints of the keys that all hosts share."
    )
    columns = Columns(waived="host names and process ids")

    class Meta:
        indexes = [
            # Serves the freshest heartbeat.
            models.Index(fields=["-beat_at"], name="worker_beat_idx"),
        ]

    def __str__(self) -> str:
        return f"Worker {self.name}"


class EndpointStateQuerySet(models.QuerySet["EndpointState"]):
    def with_clock(self) -> Self:
        """Each row with the database's time as `clock`."""
        return self.annotate(clock=Now())


class EndpointState(models.Model):
    """Failures of a model's endpoint that were not about one batch, and the pause after them.

    At most one row for each tenant with a model of its own, and one without a tenant for the hub's.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, related_name="+", db_index=False)
    failures = models.PositiveIntegerField(default=0, help_text="Of different sessions, since it last answered.")
    failing_since = models.DateTimeField(null=True, help_text="The first of these failures.")
    last_session = models.UUIDField(null=True, help_text="The session that failed last; none: several did.")
    until = models.DateTimeField(null=True, help_text="Nobody asks before; then one batch finds out.")
    confirmed = models.BooleanField(default=False, help_text="It failed at a question that holds nobody's words, too.")
    stated_until = models.DateTimeField(null=True, help_text="What the endpoint itself asked for (Retry-After).")
    columns = Columns(omitted=MACHINE.omitted)

    clock: datetime  # only on rows read with_clock()

    objects = EndpointStateQuerySet.as_manager()

    class Meta:
        constraints = [
            # Serves every look at it.
            models.UniqueConstraint(fields=["tenant"], name="endpoint_state_once", nulls_distinct=False),
        ]

    def __str__(self) -> str:
        return "State of the model's endpoint"
