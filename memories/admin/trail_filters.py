"""Filters of the audit trail: verb, object, tenant, privacy case and time."""

import uuid
from datetime import timedelta
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin import wording
from memories.admin.naming import kinds
from memories.admin.reach import tenants_of
from memories.admin.verb_words import VERBS
from memories.models import AuditEvent, Operator

NONE, ANY = "none", "any"
Choices = list[tuple[str, Any]]


class VerbFilter(SimpleListFilter):
    title = gettext_lazy("What")
    parameter_name = "verb"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        codes = [words.lower().replace(" ", "_") for words in VERBS]
        return sorted(((code, wording.verb_of(code)) for code in codes), key=lambda choice: choice[1])

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        return queryset.filter(verb=self.value()) if self.value() else queryset


class ObjectFilter(SimpleListFilter):
    title = gettext_lazy("Object")
    parameter_name = "object_type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return sorted(kinds(), key=lambda choice: choice[1])

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        return queryset.filter(object_type=self.value()) if self.value() else queryset


class TenantFilter(SimpleListFilter):
    """Those within reach; an event names its tenant by a plain id."""

    title = gettext_lazy("Tenant")
    parameter_name = "tenant"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        choices: Choices = [(str(tenant.pk), str(tenant)) for tenant in tenants_of(request.user)]
        everywhere = isinstance(request.user, Operator) and request.user.all_tenants
        return [*choices, (NONE, _("Without a tenant"))] if everywhere else choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        return _by_uuid(queryset, "tenant_uuid", self.value())


class CaseFilter(SimpleListFilter):
    """Of any privacy case, of none, or of the one that a link names."""

    title = gettext_lazy("Privacy case")
    parameter_name = "case"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        named = request.GET.get(self.parameter_name, "")
        choices: Choices = [(ANY, _("Of any case")), (NONE, _("Of none"))]
        return [*choices, (named, named)] if _uuid(named) else choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        return _by_uuid(queryset, "case_uuid", self.value())


class WhenFilter(SimpleListFilter):
    title = gettext_lazy("When")
    parameter_name = "days"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [
            ("1", _("Last 24 hours")),
            ("7", _("Last 7 days")),
            ("30", _("Last 30 days")),
            ("365", _("Last 365 days")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        days = self.value() or ""
        if days not in dict(self.lookup_choices):
            return queryset
        return queryset.filter(created_at__gte=timezone.now() - timedelta(days=int(days)))


def _by_uuid(events: QuerySet[AuditEvent], column: str, value: str | None) -> QuerySet[AuditEvent]:
    if not value:
        return events
    if value in (NONE, ANY):
        return events.filter(**{f"{column}__isnull": value == NONE})
    found = _uuid(value)
    return events.filter(**{column: found}) if found else events.none()


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
