"""Django's change list with tabs, which one query counts. Only declared filters apply."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import prepare_lookup_value
from django.contrib.admin.views.main import ALL_VAR, ORDER_VAR, SEARCH_VAR
from django.core.exceptions import FieldError, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.views import ChangeList

from memories.admin.lists import tabs
from memories.admin.lists.tabs import TAB
from memories.db.counts import counts
from memories.models import Operator, SavedFilter

# Counting stops here: no decision depends on larger numbers.
COUNTED = 1_000
# Parameters that are not filters. Without Django's _popup and _to_field, which belong to its own forms.
NOT_FILTERS = frozenset({ALL_VAR, "_facets", ORDER_VAR, SEARCH_VAR, TAB})


@dataclass(frozen=True)
class ShownTab:
    """A tab on the page. `saved`: the operator's own, which can be deleted."""

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
        params = self.filter_params if params is None else params
        return {name: value for name, value in params.items() if name not in NOT_FILTERS}

    def get_filters(self, request: HttpRequest) -> Any:
        """Only the declared filters. Errors: IncorrectLookupParameters.

        Django would pass any lookup of a model field to the database, and the answers would reveal, letter by letter,
        what no page shows.
        """
        filters = super().get_filters(request)
        not_taken = filters[2]
        if not not_taken.keys() <= self.model_admin.linked_lookups():
            raise IncorrectLookupParameters
        return filters

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return rows.filter(tabs.where(self.model, self.tab, now=timezone.now())) if self.tab else rows

    def _get_default_ordering(self) -> Any:
        """Marks the column that the list is sorted by as long as nobody chose one."""
        return self.model_admin.get_ordering(self.request)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if not (self.query or self.has_active_filters or self.tab):
            # The list shows all rows: the header needs no "show all".
            self.full_result_count = self.result_count

    @property
    def first_shown(self) -> int:
        """The number of the page's first row among all."""
        return (int(self.page_num) - 1) * int(self.list_per_page) + 1

    @property
    def last_shown(self) -> int:
        return self.first_shown + len(self.result_list) - 1

    @property
    def tab(self) -> str:
        """The requested tab; "" for none or an unknown one."""
        slug = str(self.params.get(TAB, ""))
        return slug if tabs.named(self.model, slug) else ""

    @cached_property
    def chosen(self) -> dict[str, str]:
        """The current filters by parameter, without the search and lookups of links."""
        names = [name for spec in self.filter_specs for name in spec.expected_parameters()]
        filters = {name: str(self.params[name]) for name in names if name in self.params}
        return {TAB: self.tab, **filters} if self.tab else filters

    @cached_property
    def tabs(self) -> list[ShownTab]:
        """The fixed tabs, then the operator's own, with their counts."""
        operator, now = self.request.user, timezone.now()
        if not tabs.tabs_of(self.model) or not isinstance(operator, Operator):
            return []
        fixed = [(str(tab.title), {TAB: tab.slug}, None) for tab in tabs.tabs_of(self.model)]
        own = [(row.name, row.choices, row) for row in operator.saved_filters.filter(model=self.model.__name__)]
        entries = [*fixed, *own]
        numbers = counts((self._rows(choices, now) for _, choices, _ in entries), most=COUNTED + 1)
        return [
            ShownTab(title, f"?{urlencode(choices)}", count, self.chosen == choices, saved)
            for (title, choices, saved), count in zip(entries, numbers, strict=True)
        ]

    @property
    def may_be_saved(self) -> bool:
        """Whether the current filters have no tab yet."""
        return bool(self.chosen) and not any(tab.active for tab in self.tabs)

    def _rows(self, choices: dict[str, str], now: datetime) -> QuerySet[Any]:
        """The visible rows that match these filters."""
        lookups = {name: value for name, value in choices.items() if name != TAB}
        rows: QuerySet[Any] = self.root_queryset.filter(tabs.where(self.model, choices.get(TAB, ""), now=now))
        for spec in self.list_filter:
            if callable(spec) and spec.parameter_name in lookups:
                params = {spec.parameter_name: [lookups.pop(spec.parameter_name)]}
                rows = spec(self.request, params, self.model, self.model_admin).queryset(self.request, rows)
        try:
            return rows.filter(**{name: prepare_lookup_value(name, value) for name, value in lookups.items()})
        except (FieldError, ValidationError, ValueError):
            # Saved by a version that had such a filter. The tab can still be shown and deleted.
            return rows.none()
