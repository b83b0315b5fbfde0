"""The seals of the audit trail: how many events each tenant's chain seals, and whether the newest seals verify."""

import uuid
from typing import Any

from django.contrib import admin
from django.db.models import Count, Max, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.page import render_page, require
from memories.models import AuditSeal, Operator, Tenant
from memories.privacy.trail import chain_check

MAY = "memories.view_auditevent"
# Seals that a page recomputes. The command checks the whole chain.
NEWEST = 25
SEALED, PRUNED = Q(kind=AuditSeal.SealKind.SEAL), Q(kind=AuditSeal.SealKind.PRUNING)


def urls() -> list[URLPattern]:
    view = admin.site.admin_view
    return [
        path("audit-chains/", view(chains), name="audit_chains"),
        path("audit-chains/none/", view(chain_of_none), name="audit_chain_of_none"),
        path("audit-chains/<uuid:tenant_id>/", view(chain_of), name="audit_chain"),
    ]


def chains(request: HttpRequest) -> HttpResponse:
    """The figures of every chain that the operator may see."""
    require(request, MAY)
    slugs: dict[uuid.UUID | None, str] = {tenant.pk: tenant.slug for tenant in tenants_of(request.user)}
    sums = {"links": Count("pk"), "sealed": Sum("count", filter=SEALED), "pruned": Sum("count", filter=PRUNED)}
    figures = (
        AuditSeal.objects.order_by("tenant_uuid").values("tenant_uuid").annotate(**sums, newest_seal=Max("sealed_at"))
    )
    rows = [
        {**row, "slug": slugs.get(row["tenant_uuid"], row["tenant_uuid"])}
        for row in figures
        if row["tenant_uuid"] in slugs or _sees_all(request)
    ]
    return render_page(request, "memories/audit_chains.html", title=_("Seals of the audit trail"), chains=rows)


def chain_of(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    """A tenant's chain. Its newest seals are recomputed."""
    require(request, MAY)
    return _chain(request, get_object_or_404(tenants_of(request.user), pk=tenant_id))


def chain_of_none(request: HttpRequest) -> HttpResponse:
    """The chain of events without a tenant, for operators who see all tenants."""
    require(request, MAY)
    if not _sees_all(request):
        raise Http404
    return _chain(request, None)


def _chain(request: HttpRequest, tenant: Tenant | None) -> HttpResponse:
    try:
        report = chain_check.check(tenant.pk if tenant else None, newest=NEWEST)
    except ValueError:
        # The file of notes is not one of ours: the page shows what the seals themselves say.
        report = None
    context: dict[str, Any] = {"tenant": tenant, "report": report, "newest": NEWEST}
    return render_page(request, "memories/audit_chain.html", title=_("Seals of the audit trail"), **context)


def _sees_all(request: HttpRequest) -> bool:
    return isinstance(request.user, Operator) and request.user.all_tenants
