"""Working memory: what of a session has left its window, the running summary of that, and when to look again."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.conversations.conversations import QueueRow, QueueRowQuerySet, Session


class WorkingMemory(QueueRow):
    """One row per session; the window is the turns beyond `left_number`, trimmed to its limits when it is read."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, primary_key=True, related_name="working_memory")
    summary = models.TextField(blank=True, help_text="Of the turns that have left the window.")
    extractor = models.CharField(max_length=120, blank=True)
    prompt_version = models.CharField(max_length=40, blank=True)
    left_number = models.PositiveIntegerField(default=0, help_text="Turns up to here have left the window.")
    left_tokens = models.PositiveBigIntegerField(
        default=0, help_text="Tokens of these turns, and of turns of branches that the client left."
    )
    left_rounds = models.PositiveIntegerField(default=0, help_text="User turns among these.")
    episode_number = models.PositiveIntegerField(
        default=0, help_text="Turns up to here are in an episode, or need none."
    )
    episodes_made = models.PositiveIntegerField(default=0, help_text="Also those that were deleted since.")
    over_since = models.DateTimeField(null=True, help_text="When the window became too full.")
    unarmed = models.BooleanField(default=False, help_text="Turns came while there was no model, and nobody armed it.")
    updated_at = models.DateTimeField(null=True, help_text="When the summary was last written.")

    objects = QueueRowQuerySet.as_manager()

    class Meta:
        verbose_name = _("working memory")
        verbose_name_plural = _("working memories")
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
