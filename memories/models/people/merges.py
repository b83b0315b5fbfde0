"""Merges of two people: the ids of what moved, by which an undo finds it again; never what it says."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant


class PersonMerge(models.Model):
    """Of two people one stays, and what was the other's is theirs from then on; its id is that of the change set."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    survivor = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="merges", db_index=False)
    merged = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="merged_by")
    counts = models.JSONField(default=dict, editable=False)
    # Names of the fields of the person's record that the survivor took over.
    taken = models.JSONField(default=list, editable=False)
    created_at = models.DateTimeField(editable=False)
    undone_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("person merge")
        verbose_name_plural = _("person merges")
        constraints = [
            # One at a time leads away from a person, also when two operators merge them.
            models.UniqueConstraint(fields=["merged"], name="person_merged_once", condition=Q(undone_at=None)),
        ]
        indexes = [
            # Serves a person's merges, newest first.
            models.Index(fields=["survivor", "-created_at"], name="person_merge_idx"),
        ]

    def __str__(self) -> str:
        return f"Merge {self.id}"


class MergeEntry(models.Model):
    """One row that a merge moved or made, by its id; rows that go with it are not noted."""

    class EntryKind(models.TextChoices):
        SESSION = "session"
        # A session of that id was there already: it got another one.
        RENAMED = "renamed"
        FACT = "fact"
        SECTION = "section"
        REVISION = "revision"
        REFUSAL = "refusal"
        EVIDENCE = "evidence"
        NAME = "name"

    id = models.BigAutoField(primary_key=True)
    merge = models.ForeignKey(PersonMerge, on_delete=models.CASCADE, related_name="entries", db_index=False)
    kind = models.CharField(max_length=8, choices=EntryKind.choices)
    uuid = models.UUIDField(null=True)
    number = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["id"]
        verbose_name = _("merge entry")
        verbose_name_plural = _("merge entries")
        constraints = [
            models.CheckConstraint(
                name="merge_entry_of_one",
                condition=Q(uuid=None, number__isnull=False) | Q(number=None, uuid__isnull=False),
            ),
        ]
        indexes = [
            # Serves the undo: what moved, of one kind.
            models.Index(fields=["merge", "kind"], name="merge_entry_idx"),
        ]

    def __str__(self) -> str:
        return f"Entry {self.pk} of merge {self.merge_id}"
