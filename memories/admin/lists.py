"""The lists: Django's change list with tabs over it, counted in one query."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.utils import prepare_lookup_value
from django.core.exceptions import FieldError, ValidationError
from django.db.models import IntegerField, QuerySet, Subquery
from django.http import HttpRequest
from django.utils import timezone
from unfold.views import ChangeList

from memories.admin import tabs
from memories.admin.tabs import TAB
from memories.models import Operator, SavedFilter

# Counting stops here: how many more there are decides nothing.
COUNTED = 1_000


class _Capped(Subquery):
    """How many rows a query has, counted no further than COUNTED + 1."""

    template = "(SELECT count(*) FROM (%(subquery)s) capped)"
    output_field = IntegerField()


@dataclass(frozen=True)
class Shown:
    """A tab as the page shows it; `saved`: the operator's own, which can be forgotten."""

    title: str
    link: str
    count: int
    active: bool
    saved: SavedFilter | None = None

    @property
    def counted(self) -> str:
        return f"{COUNTED:,}+" if self.count > COUNTED else f"{self.count:,}"


class HubChangeList(ChangeList):  # type: ignore[misc]  # Unfold has no types
    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self.request = request
        super().__init__(request, *args, **kwargs)

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        kept: dict[str, Any] = super().get_filters_params(params)
        kept.pop(TAB, None)
        return kept

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return rows.filter(tabs.where(self.model, self.tab, now=timezone.now())) if self.tab else rows

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not (self.query or self.has_active_filters or self.tab):
            # Everything is shown: the header needs no "show all".
            self.full_result_count = self.result_count

    @property
    def tab(self) -> str:
        """The tab that is asked for; "" for none that there is."""
        asked = str(self.params.get(TAB, ""))
        return asked if any(tab.slug == asked for tab in tabs.tabs_of(self.model)) else ""

    @cached_property
    def chosen(self) -> dict[str, str]:
        """The filters that are in force, by their parameters: not what was searched for, nor other look-ups."""
        names = [name for spec in self.filter_specs for name in spec.expected_parameters()]
        given = {name: str(self.params[name]) for name in names if name in self.params}
        return {TAB: self.tab, **given} if self.tab else given

    @cached_property
    def tabs(self) -> list[Shown]:
        """All, the fixed ones, and the operator's own with what they hold."""
        operator, now = self.request.user, timezone.now()
        if not tabs.tabs_of(self.model) or not isinstance(operator, Operator):
            return []
        fixed = [(str(tab.title), {TAB: tab.slug}, None) for tab in tabs.tabs_of(self.model)]
        own = [(row.name, row.choices, row) for row in operator.saved_filters.filter(model=self.model.__name__)]
        entries = [*fixed, *own]
        counts = _counts(operator, [self._rows(choices, now) for _, choices, _ in entries])
        return [
            Shown(title, f"?{urlencode(choices)}", count, self.chosen == choices, saved)
            for (title, choices, saved), count in zip(entries, counts, strict=True)
        ]

    @property
    def may_be_saved(self) -> bool:
        """Whether filters are chosen that have no tab yet."""
        return bool(self.chosen) and not any(tab.active for tab in self.tabs)

    def _rows(self, choices: dict[str, str], now: datetime) -> QuerySet[Any]:
        """What these filters leave of all that the operator may see."""
        left = {name: value for name, value in choices.items() if name != TAB}
        rows: QuerySet[Any] = self.root_queryset.filter(tabs.where(self.model, choices.get(TAB, ""), now=now))
        for spec in self.list_filter:
            if callable(spec) and spec.parameter_name in left:
                given = {spec.parameter_name: [left.pop(spec.parameter_name)]}
                rows = spec(self.request, given, self.model, self.model_admin).queryset(self.request, rows)
        try:
            return rows.filter(**{name: prepare_lookup_value(name, value) for name, value in left.items()})
        except (FieldError, ValidationError, ValueError):
            # Saved under a version that had such a filter: it can still be seen and forgotten.
            return rows.none()


def _counts(operator: Operator, rows: Iterable[QuerySet[Any]]) -> list[int]:
    """How many rows each query has, all in one."""
    counted = [_Capped(each.order_by().values("pk")[: COUNTED + 1]) for each in rows]
    found = Operator.objects.filter(pk=operator.pk).values_list(*counted).get()
    # No rows at all are no number to Django.
    return [int(count or 0) for count in found]
