"""The chains of the audit trail: what of it is sealed, and whether the newest seals hold."""

import uuid
from typing import Any

from django.contrib import admin
from django.db.models import Count, Max, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from memories.admin import room
from memories.admin.reach import tenants_of
from memories.models import AuditSeal, Operator, Tenant
from memories.privacy.trail import chain_check

MAY = "memories.view_auditevent"
# What a page recomputes; the whole chain is for the command.
NEWEST = 25
SEALED, PRUNED = Q(kind=AuditSeal.Kind.SEAL), Q(kind=AuditSeal.Kind.PRUNING)


def urls() -> list[URLPattern]:
    view = admin.site.admin_view
    return [
        path("audit-chains/", view(chains), name="audit_chains"),
        path("audit-chains/none/", view(chain_of_none), name="audit_chain_of_none"),
        path("audit-chains/<uuid:tenant_id>/", view(chain_of), name="audit_chain"),
    ]


def chains(request: HttpRequest) -> HttpResponse:
    """Every chain within reach, in figures of its seals."""
    room.check(request, MAY)
    slugs = {tenant.pk: tenant.slug for tenant in tenants_of(request.user)}
    rows = [row for row in _figures() if row["tenant_uuid"] in slugs or _sees_all(request)]
    for row in rows:
        row["slug"] = slugs.get(row["tenant_uuid"], row["tenant_uuid"])
    return room.draw(request, "memories/audit_chains.html", title=_("Seals of the audit trail"), chains=rows)


def chain_of(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    """One tenant's chain, its newest seals recomputed."""
    room.check(request, MAY)
    return _chain(request, get_object_or_404(tenants_of(request.user), pk=tenant_id))


def chain_of_none(request: HttpRequest) -> HttpResponse:
    """The chain of what belongs to no tenant: for who sees all of them."""
    room.check(request, MAY)
    if not _sees_all(request):
        raise Http404
    return _chain(request, None)


def _chain(request: HttpRequest, tenant: Tenant | None) -> HttpResponse:
    try:
        report = chain_check.check(tenant.pk if tenant else None, newest=NEWEST)
    except ValueError:
        # A file of notes that is none of ours: the page says what the chain's own seals say.
        report = None
    given: dict[str, Any] = {"tenant": tenant, "report": report, "newest": NEWEST}
    return room.draw(request, "memories/audit_chain.html", title=_("Seals of the audit trail"), **given)


def _figures() -> list[dict[str, Any]]:
    rows = AuditSeal.objects.order_by("tenant_uuid").values("tenant_uuid")
    sums = {"links": Count("pk"), "sealed": Sum("count", filter=SEALED), "pruned": Sum("count", filter=PRUNED)}
    return [dict(row) for row in rows.annotate(**sums, newest_seal=Max("sealed_at"))]


def _sees_all(request: HttpRequest) -> bool:
    return isinstance(request.user, Operator) and request.user.all_tenants
