"""Saved filters: lists as an operator wants to see them again."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.ids import new_id
from memories.models.operators import Operator


class SavedFilter(models.Model):
    """The filters of one list under a name; what was searched for is no part of them."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operator = models.ForeignKey(Operator, on_delete=models.CASCADE, related_name="saved_filters", editable=False)
    model = models.CharField(max_length=40, editable=False)
    name = models.CharField(_("name"), max_length=60)
    choices = models.JSONField(default=dict, editable=False)
    created_at = models.DateTimeField(editable=False)

    class Meta:
        ordering = ["name"]
        verbose_name = _("saved filter")
        verbose_name_plural = _("saved filters")
        # Everybody's own: there is nothing to permit.
        default_permissions = ()
        constraints = [
            # Serves the tabs over a list, too.
            models.UniqueConstraint(fields=["operator", "model", "name"], name="saved_filter_once"),
        ]

    def __str__(self) -> str:
        return f"Saved filter {self.pk}"
