"""Filters of the audit trail: verb, object, tenant, privacy case and time."""

from datetime import timedelta
from typing import Any, ClassVar

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.naming import kinds
from memories.models import AuditEvent, Operator
from memories.models.ids import parse_uuid
from memories.verbs import VERBS

NONE, ANY = "none", "any"
Choices = list[tuple[str, Any]]


class _ValueFilter(SimpleListFilter):
    """Events with this value in the field that the parameter names."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class VerbFilter(_ValueFilter):
    title = gettext_lazy("What")
    parameter_name = "verb"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return sorted(((name, str(verb.label)) for name, verb in VERBS.items()), key=lambda choice: choice[1])


class ObjectFilter(_ValueFilter):
    title = gettext_lazy("Object")
    parameter_name = "object_type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return sorted(kinds(), key=lambda choice: choice[1])


class _UuidFilter(SimpleListFilter):
    """Events with this UUID in the column, with any, or with none."""

    column: ClassVar[str]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
        value = self.value()
        if not value:
            return queryset
        if value in (NONE, ANY):
            return queryset.filter(**{f"{self.column}__isnull": value == NONE})
        found = parse_uuid(value)
        return queryset.filter(**{self.column: found}) if found else queryset.none()


class EventTenantFilter(_UuidFilter):
    """The operator's tenants. An event has no foreign key to its tenant, only the id."""

    title = gettext_lazy("Tenant")
    parameter_name = "tenant"
    column = "tenant_uuid"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        choices: Choices = [(str(tenant.pk), str(tenant)) for tenant in tenants_of(request.user)]
        sees_all = isinstance(request.user, Operator) and request.user.all_tenants
        return [*choices, (NONE, _("Without a tenant"))] if sees_all else choices


class CaseFilter(_UuidFilter):
    """Any privacy case, none, or the one in a link."""

    title = gettext_lazy("Privacy case")
    parameter_name = "case"
    column = "case_uuid"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        linked = request.GET.get(self.parameter_name, "")
        choices: Choices = [(ANY, _("Of any case")), (NONE, _("Of none"))]
        return [*choices, (linked, linked)] if parse_uuid(linked) else choices


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
