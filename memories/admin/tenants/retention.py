"""Retention: the preview of a tenant's next pass, its latest passes, and running one now."""

import uuid
from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import conf
from memories.admin.access import fresh
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.mentions import mention
from memories.admin.site.page import actor_of, render_page, require
from memories.exceptions import RetentionRunning
from memories.kinds import PLAIN
from memories.models import RetentionPass, Tenant
from memories.privacy import retention

VIEW, RUN = "memories.view_decaypass", "memories.change_decaypass"
PASSES_SHOWN = 10
WORDS = {
    "turns": gettext_lazy("Turns"),
    "sessions": gettext_lazy("Empty sessions"),
    "episodes": gettext_lazy("Episodes"),
    "runs": gettext_lazy("Extraction runs"),
    "audit": gettext_lazy("Audit events"),
    "exports": gettext_lazy("Exports"),
    "contexts": gettext_lazy("Log of contexts"),
    "store": gettext_lazy("Items of the store"),
    "trajectories": gettext_lazy("Trajectories"),
    **{kind.plural: kind.plain.listed for kind in PLAIN if kind.plain},
    "waiting": gettext_lazy("Old turns kept: not extracted yet, or in an open window"),
}


def urls() -> list[URLPattern]:
    view = admin.site.admin_view
    return [
        path("retention/", view(tenants), name="retention"),
        path("retention/<uuid:tenant_id>/", view(next_pass), name="next_retention_pass"),
    ]


def tenants(request: HttpRequest) -> HttpResponse:
    """Choose the tenant of the next pass."""
    require(request, VIEW)
    context: dict[str, Any] = {"tenants": tenants_of(request.user), "next_page": "admin:next_retention_pass"}
    return render_page(request, "memories/retention.html", title=_("Retention"), **context)


def next_pass(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    """What the tenant's next pass would delete now. A POST starts a pass."""
    require(request, VIEW)
    tenant = get_object_or_404(tenants_of(request.user), pk=tenant_id)
    if request.method == "POST":
        require(request, RUN)
        return fresh.required(request) or _run(request, tenant)
    rules, counts = conf.rules(tenant), retention.preview(tenant, timezone.now())
    numbers = [number for number in conf.NUMBERS.values() if number.group == conf.SettingGroup.RETENTION]
    passes = RetentionPass.objects.filter(tenant=tenant)[:PASSES_SHOWN]
    context: dict[str, Any] = {
        "title": _("Next retention pass"),
        "tenant": tenant,
        "counts": [(WORDS[name], count) for name, count in counts.items()],
        "due": sum(count for name, count in counts.items() if name != "waiting"),
        "first_number": numbers[0].name,
        "days": [(number.label, getattr(rules, number.name)) for number in numbers],
        "passes": [(row, [(WORDS[name], count) for name, count in row.counts.items() if count]) for row in passes],
        "may_run": request.user.has_perm(RUN),
    }
    return render_page(request, "memories/next_retention_pass.html", **context)


def _run(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    try:
        row = retention.run(tenant=tenant, actor=actor_of(request), now=timezone.now())
    except RetentionRunning as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, _("%(pass)s has started. A worker carries it out.") % {"pass": mention(row)})
    return HttpResponseRedirect(request.path)
