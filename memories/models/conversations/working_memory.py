"""Working memory: what of a session has left its window, the running summary of that, and when to look again."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from memories.models.conversations.conversations import Session
from memories.models.leases import unleased


class WorkingMemoryQuerySet(models.QuerySet["WorkingMemory"]):
    def unclaimed(self) -> Self:
        """Rows that no live lease holds, by the database's clock."""
        return self.filter(unleased(), parked_at=None)

    def due(self) -> Self:
        """Rows whose time has come and that no live lease holds; those of people under restriction wait."""
        restricted = Session.objects.filter(pk=OuterRef("pk"), end_user__restricted_at__isnull=False)
        return self.unclaimed().filter(~Exists(restricted), due_at__lte=Now())

    def with_clock(self) -> Self:
        """Each row with the database's time as `clock`."""
        return self.annotate(clock=Now())


class WorkingMemory(models.Model):
    """One row per session; the window is the turns beyond `left_number`, trimmed to its limits when it is read."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, primary_key=True, related_name="working_memory")
    summary = models.TextField(blank=True, help_text="Of the turns that have left the window.")
    extractor = models.CharField(max_length=120, blank=True)
    prompt_version = models.CharField(max_length=40, blank=True)
    left_number = models.PositiveIntegerField(default=0, help_text="Turns up to here have left the window.")
    left_tokens = models.PositiveBigIntegerField(default=0, help_text="Tokens of these turns.")
    left_rounds = models.PositiveIntegerField(default=0, help_text="User turns among these.")
    episode_number = models.PositiveIntegerField(
        default=0, help_text="Turns up to here are in an episode, or need none."
    )
    episodes_made = models.PositiveIntegerField(default=0, help_text="Also those that were deleted since.")
    # When to look whether the window is too full, the session idle or ended; empty: nothing to do.
    due_at = models.DateTimeField(null=True)
    over_since = models.DateTimeField(null=True, help_text="When the window became too full.")
    unarmed = models.BooleanField(default=False, help_text="Turns came while there was no model, and nobody armed it.")
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    woken_at = models.DateTimeField(null=True, help_text="When the last wake-up was sent.")
    attempts = models.PositiveIntegerField(default=0, help_text="Attempts at the present stretch.")
    parked_at = models.DateTimeField(null=True)
    failure = models.CharField(max_length=40, blank=True, help_text="Code of the last failure.")
    updated_at = models.DateTimeField(null=True, help_text="When the summary was last written.")

    clock: datetime  # only on rows read with_clock()

    objects = WorkingMemoryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "working memories"
        indexes = [
            # Serves the sweep once a second.
            models.Index(
                fields=["due_at"], name="working_memory_due_idx", condition=Q(due_at__isnull=False, parked_at=None)
            ),
            # Serves the look for rows to arm, and is empty but after the model was switched off.
            models.Index(fields=["session"], name="working_memory_unarmed_idx", condition=Q(unarmed=True)),
            # Serves the count of parked ones.
            models.Index(fields=["parked_at"], name="working_memory_parked_idx", condition=Q(parked_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"Working memory of session {self.session_id}"
