"""One table with one index beside its key."""

from django.db import models


class Row(models.Model):
    owner = models.CharField(max_length=255)
    role = models.CharField(max_length=20)
    content = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "floor"
        indexes = [models.Index(fields=["owner", "-id"], name="floor_owner_idx")]

    def __str__(self) -> str:
        return f"Row {self.pk}"
