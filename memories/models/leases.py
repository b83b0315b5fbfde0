"""Rows that somebody works on under a lease."""

from django.db.models import Q
from django.db.models.functions import Now


def unleased() -> Q:
    """Rows that nobody works on: none has begun, or whoever did has stopped or died; by the database's clock."""
    return Q(lease_until=None) | Q(lease_until__lte=Now())
