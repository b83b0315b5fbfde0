"""The overview on a tenant's page: what it holds, what waits in it, and the pages of its work."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from memories.admin.dashboard.needs import WORK, Work
from memories.admin.lists import tabs
from memories.admin.recall import playground, turn_search
from memories.admin.tenants import rollback
from memories.db.counts import counts
from memories.models import (
    Agent,
    APIKey,
    EndUser,
    Episode,
    Fact,
    ReviewItem,
    Session,
    Status,
    Tenant,
    WebhookEndpoint,
)

# From here on it says "10,000+": to count on would read the whole index.
MOST = 10_000


class Holding(NamedTuple):
    """A figure of what the tenant has, with its list: `narrowed` are parameters of the list's address."""

    title: str | Promise
    model: type[Model]
    narrowed: dict[str, str]

    def rows(self, tenant: Tenant, now: datetime) -> QuerySet[Any]:
        rows = self.model._default_manager.filter(tenant=tenant)
        if self.model is Fact:
            return rows.filter(status=Status.ACTIVE)
        return rows.filter(tabs.where(self.model, self.narrowed.get(tabs.TAB, ""), now=now))


HOLDINGS = (
    Holding(_("End users"), EndUser, {}),
    Holding(_("Active facts"), Fact, {"status__exact": Status.ACTIVE}),
    Holding(_("Episodes"), Episode, {}),
    Holding(_("Sessions"), Session, {}),
    Holding(_("Agents"), Agent, {}),
    Holding(_("Valid API keys"), APIKey, {tabs.TAB: "active"}),
    Holding(_("Webhooks"), WebhookEndpoint, {}),
)


class Figure(NamedTuple):
    title: str | Promise
    number: int
    is_more: bool
    link: str


class WaitingWork(NamedTuple):
    icon: str
    text: str
    link: str
    is_urgent: bool


def overview(request: HttpRequest, tenant: Tenant, *, now: datetime) -> dict[str, Any]:
    """Figures, waiting work and pages, as far as the operator may see them. One query."""
    may = request.user.has_perm
    held = [one for one in HOLDINGS if may(f"{one.model._meta.app_label}.view_{one.model._meta.model_name}")]
    work = [one for one in WORK if may(one.permission)]
    rows = [one.rows(tenant, now) for one in held] + [one.rows(now).filter(tenant=tenant) for one in work]
    totals = counts(rows, most=MOST + 1) if rows else []
    figures = [
        Figure(one.title, min(count, MOST), count > MOST, _list(one.model, tenant, one.narrowed))
        for one, count in zip(held, totals, strict=False)
    ]
    waiting = [
        WaitingWork(one.icon, str(one.text % {"count": min(count, MOST)}), _link(one, tenant), one.is_urgent)
        for one, count in zip(work, totals[len(held) :], strict=True)
        if count
    ]
    return {"figures": figures, "waiting": waiting, "pages": _pages(request, tenant)}


def _pages(request: HttpRequest, tenant: Tenant) -> Sequence[tuple[str | Promise, str, str]]:
    """Title, icon and address of the pages of daily work, for this tenant."""
    one, of = [tenant.pk], urlencode({"tenant": str(tenant.pk)})
    every = (
        (_("New API key"), "key", f"{reverse('admin:memories_apikey_add')}?{of}", ("memories.add_apikey",)),
        (_("What was said"), "forum", reverse("admin:said"), turn_search.MAY),
        (_("Why recalled?"), "manage_search", reverse("admin:recalled"), playground.MAY),
        (_("Roll back"), "settings_backup_restore", f"{reverse('admin:rollback')}?{of}", rollback.MAY),
        (_("Forgetting"), "auto_delete", reverse("admin:next_decay_pass", args=one), ("memories.view_decaypass",)),
        (_("Retention"), "folder_delete", reverse("admin:next_retention_pass", args=one), ("memories.view_decaypass",)),
    )
    # No key can be made for a tenant that is off-boarded.
    offered = every[1:] if tenant.offboarded_at else every
    return [page[:3] for page in offered if request.user.has_perms(page[3])]


def _list(model: type[Model], tenant: Tenant, narrowed: dict[str, str]) -> str:
    query = urlencode({"tenant__id__exact": str(tenant.pk), **narrowed})
    return f"{reverse(f'admin:memories_{model._meta.model_name}_changelist')}?{query}"


def _link(work: Work, tenant: Tenant) -> str:
    """The list of just this work; the queue calls the tenant by another parameter."""
    if work.model is ReviewItem:
        return f"{work.link}?tenant={tenant.pk}"
    return f"{work.link}&tenant__id__exact={tenant.pk}"
