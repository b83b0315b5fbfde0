"""The tenants that an operator may see: all, or those that the operator is limited to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.admin import ModelAdmin, RelatedFieldListFilter
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Field, QuerySet
from django.http import HttpRequest

from memories.db import tenancy
from memories.db.tenancy import Tenancy
from memories.models import Operator, Tenant


def within(operator: Operator | AnonymousUser, rows: QuerySet[Any], path: str = "tenant") -> QuerySet[Any]:
    """The rows that the operator may see, of the tenant in view if one is chosen. `path` leads from a row to its tenant
    or the tenant's id."""
    found = permitted(operator, rows, path)
    chosen = operator.tenant_in_view if isinstance(operator, Operator) else None
    return found.filter(**{path: chosen.pk}) if chosen else found


def permitted(operator: Operator | AnonymousUser, rows: QuerySet[Any], path: str = "tenant") -> QuerySet[Any]:
    """The rows that the operator may see, whichever tenant is in view."""
    if not isinstance(operator, Operator):
        return rows.none()
    if operator.all_tenants:
        return rows
    return rows.filter(**{f"{path}__in": operator.tenants.order_by().values("pk")})


def tenants_of(operator: Operator | AnonymousUser) -> QuerySet[Tenant]:
    """The tenants that the operator may see, by slug."""
    return permitted(operator, Tenant.objects.order_by("slug"), "pk")


def tenancy_of(operator: Operator) -> Tenancy:
    """The tenancy of the operator's pages, whichever tenant is in view."""
    if operator.all_tenants:
        return tenancy.EVERYTHING
    # Of the pairs alone: tenants themselves are not shown yet.
    pairs = Operator.tenants.through.objects.filter(operator=operator)
    return tenancy.of_several(pairs.values_list("tenant_id", flat=True))


@contextmanager
def any_tenant(operator: Operator | AnonymousUser) -> Iterator[None]:
    """Look beyond the tenant in view: a record's address leads to it whatever is chosen."""
    chosen = getattr(operator, "tenant_in_view", None)
    if chosen is None:
        yield
        return
    operator.tenant_in_view = None  # type: ignore[union-attr]
    try:
        yield
    finally:
        operator.tenant_in_view = chosen  # type: ignore[union-attr]


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
