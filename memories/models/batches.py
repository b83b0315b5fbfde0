"""Batches: one verb on many memories at once, noted so that one undo takes back all of it."""

from django.db import models
from django.db.models import Q

from memories.models.facts import Fact
from memories.models.ids import new_id
from memories.models.operators import Operator
from memories.models.review import ReviewItem


class Batch(models.Model):
    """What an operator did to many memories in one go."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operator = models.ForeignKey(Operator, null=True, on_delete=models.SET_NULL, related_name="+", editable=False)
    verb = models.CharField(max_length=32, editable=False)
    # How many were asked for, done, and refused because somebody had changed them meanwhile.
    counts = models.JSONField(default=dict, editable=False)
    created_at = models.DateTimeField(editable=False)
    undone_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"batch {self.pk}"


class BatchEntry(models.Model):
    """One memory of a batch: the change set of what was done to it, by which it is undone."""

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="entries", editable=False)
    item = models.ForeignKey(ReviewItem, null=True, on_delete=models.CASCADE, related_name="+", editable=False)
    fact = models.ForeignKey(Fact, null=True, on_delete=models.CASCADE, related_name="+", editable=False)
    # The version that the item or the fact was left at: a later one means that somebody went on from here.
    version = models.PositiveIntegerField(editable=False)
    change_set = models.UUIDField(null=True, editable=False)
    undone = models.BooleanField(default=False, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                name="batch_entry_of_one", condition=Q(item=None, fact__isnull=False) | Q(fact=None, item__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"entry {self.pk} of batch {self.batch_id}"
