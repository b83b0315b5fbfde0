"""The day that pages of the graph show: their `?as_of=`, and the filter of the list."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext_lazy as _

from memories.admin.site.fields import DayInput, LineField

# Query parameter: a day such as 2026-11-26.
AS_OF = "as_of"


def day_of(request: HttpRequest) -> date:
    """The day that the address names; today, if it names none that can be read."""
    return parse_day(request.GET.get(AS_OF, "")) or timezone.localdate()


def parse_day(text: str) -> date | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    # The first and the last year have days whose end is no moment in every time zone.
    return day if day and date.min.year < day.year < date.max.year else None


def end_of(day: date) -> datetime:
    """The last moment of the day in the operator's time zone: what began on it holds, and what ended on it does not."""
    following = datetime.combine(day + timedelta(days=1), time.min, timezone.get_current_timezone())
    return following - timedelta(microseconds=1)


class AsOfFilter(SimpleListFilter):
    """Triples that held on a day, which is entered."""

    title = _("Held on")
    parameter_name = AS_OF
    template = "unfold/filters/filters_field.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> tuple[Any, ...]:
        return ()

    def has_output(self) -> bool:
        return True

    def choices(self, changelist: Any) -> Iterator[Any]:
        yield {"form": _DayForm({AS_OF: self.value() or ""})}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        day = parse_day(self.value() or "")
        return queryset.held_at(end_of(day)) if day else queryset  # type: ignore[attr-defined]


class _DayForm(forms.Form):
    as_of = LineField(label=AsOfFilter.title, required=False, widget=DayInput)
