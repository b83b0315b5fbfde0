"""The tenants that an operator may see: all, or those that the operator is limited to."""

from typing import Any

from django.contrib.admin import ModelAdmin, RelatedFieldListFilter
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Field, QuerySet
from django.http import HttpRequest

from memories.models import Operator, Tenant


def within(operator: Operator | AnonymousUser, rows: QuerySet[Any], path: str = "tenant") -> QuerySet[Any]:
    """The rows that the operator may see. `path` leads from a row to its tenant or the tenant's id."""
    if not isinstance(operator, Operator):
        return rows.none()
    if operator.all_tenants:
        return rows
    return rows.filter(**{f"{path}__in": operator.tenants.order_by().values("pk")})


def tenants_of(operator: Operator | AnonymousUser) -> QuerySet[Tenant]:
    """The tenants that the operator may see, by slug."""
    return within(operator, Tenant.objects.order_by("slug"), "pk")


class TenantFilter(RelatedFieldListFilter):
    """Filters a list by tenant. Offers the operator's tenants."""

    def field_choices(
        self, field: "Field[Any, Any]", request: HttpRequest, model_admin: "ModelAdmin[Any]"
    ) -> list[tuple[str, Any]]:
        return [(str(tenant.pk), str(tenant)) for tenant in tenants_of(request.user)]


def check(operator: Operator | AnonymousUser, tenant: Tenant) -> None:
    """Errors: PermissionDenied if the operator may not see the tenant."""
    if not tenants_of(operator).filter(pk=tenant.pk).exists():
        raise PermissionDenied
