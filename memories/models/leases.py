"""Rows that workers claim under a lease."""

from datetime import datetime
from typing import ClassVar, Self, TypeVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

_Row = TypeVar("_Row", bound="Leased")


class LeasedQuerySet(models.QuerySet[_Row]):
    def free(self) -> Self:
        """Rows that nobody works on: none has begun, or whoever did has stopped or died; by the database's clock."""
        return self.filter(Q(lease_until=None) | Q(lease_until__lte=Now()))

    def leased(self) -> Self:
        """Rows that somebody works on, if they are alive."""
        return self.filter(lease_token__isnull=False)

    def with_clock(self) -> Self:
        """Each row with the database's time as `clock`."""
        return self.annotate(clock=Now())


class Leased(models.Model):
    """A row that one worker at a time works on: the one whose token it has (queue/leases.py)."""

    lease_token = models.UUIDField(null=True, editable=False)
    lease_until = models.DateTimeField(
        null=True, editable=False, help_text="Nobody else claims it before; without a token it is a pause."
    )
    attempts = models.PositiveIntegerField(default=0, editable=False, help_text="Claims since it last got on.")
    failure = models.CharField(max_length=40, blank=True, editable=False, help_text="Code of the last failure.")

    # Among which rows leased ones are found: the condition of a partial index, where the table grows for ever.
    IN_WORK: ClassVar[Q] = Q()

    clock: datetime  # only on rows read with_clock()

    class Meta:
        abstract = True

    def is_leased(self, *, now: datetime) -> bool:
        """Whether a worker holds the row."""
        return self.lease_until is not None and self.lease_until > now
