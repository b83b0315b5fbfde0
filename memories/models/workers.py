"""Workers' signs of life, read by /readyz."""

from django.db import models


class WorkerHeartbeat(models.Model):
    """One row per running worker cluster; written only once its tokenizer is loaded."""

    name = models.CharField(primary_key=True, max_length=255, help_text="Host and process id.")
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField()

    class Meta:
        indexes = [
            # Serves the freshest heartbeat.
            models.Index(fields=["-beat_at"], name="worker_beat_idx"),
        ]

    def __str__(self) -> str:
        return f"Worker {self.name}"
