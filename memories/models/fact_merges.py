"""Facts that an operator made one."""

from django.db import models

from memories.models.facts import Fact
from memories.models.ids import new_id


class FactMerge(models.Model):
    """One merge: the fact that stayed, and what an undo goes by besides the revisions of its change set."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    survivor = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="merges", editable=False)
    change_set = models.UUIDField(unique=True, editable=False)
    traces = models.JSONField(default=dict, editable=False, help_text="Ids, versions and keyed hashes, no text.")
    created_at = models.DateTimeField(editable=False)
    undone_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"merge {self.pk}"
