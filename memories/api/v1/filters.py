"""Filters of lists: a field of a query says itself which rows it selects, and selected() applies those that are given.

What no single look-up says stands in the view (`as_of` of facts).
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db.models import QuerySet
from rest_framework import serializers

Filter = TypeVar("Filter", bound=serializers.Field[Any, Any, Any, Any])
Rows = TypeVar("Rows", bound=QuerySet[Any])


def where(look_up: str, field: Filter, *, by: Callable[[Any], Any] | None = None) -> Filter:
    """The field, which selects rows by this look-up. `by` makes the look-up's value of the field's; None: every row."""
    field.selects = look_up, by  # type: ignore[attr-defined]  # REST framework copies fields without it: see selected()
    return field


def selected(rows: Rows, query: type[serializers.Serializer[Any]], given: Mapping[str, Any]) -> Rows:
    """The rows that all given filters of the query select; None is none given."""
    declared: Mapping[str, Any] = query._declared_fields
    wanted = {}
    for name, field in declared.items():
        if hasattr(field, "selects") and given.get(name) is not None:
            look_up, by = field.selects
            wanted[look_up] = by(given[name]) if by else given[name]
    return rows.filter(**{look_up: value for look_up, value in wanted.items() if value is not None})
