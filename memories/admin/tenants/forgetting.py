"""Forgetting: decay passes, the preview of a tenant's next one, running it now, and confirming a held pass."""

import uuid
from collections import defaultdict
from collections.abc import Callable
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db.models import Count
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import conf
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.dashboard.charts import Chart, Series, stacked
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.fields import LineField
from memories.admin.site.mentions import mention
from memories.admin.site.page import RecordPage, VerbForm, actor_of, render_page, require, url_of
from memories.admin.site.template_tags import number
from memories.admin.site.wording import KINDS
from memories.audit import Actor
from memories.curation.decay import confirm_decay, is_confirmable, run_decay
from memories.exceptions import DecayRunning
from memories.forgetting import decay, trash, upkeep
from memories.models import DecayPass, Episode, Fact, Operator, Tenant

FACTS_SHOWN = 25
FORECAST_DAYS = 30
SERIES = {
    "facts": Series("served", gettext_lazy("Faded facts")),
    "episodes": Series("gone", gettext_lazy("Faded episodes")),
    "expired": Series("waiting", gettext_lazy("Expired")),
}
VIEW, CHANGE = "memories.view_decaypass", "memories.change_decaypass"


class ConfirmForm(VerbForm):
    tenant = LineField(
        label=gettext_lazy("The tenant's slug"),
        max_length=63,
        help_text=gettext_lazy("Type it to confirm."),
    )
    record: DecayPass

    def clean_tenant(self) -> str:
        slug: str = self.cleaned_data["tenant"]
        if slug != self.record.tenant.slug:
            raise forms.ValidationError(_("This is not the slug of the pass's tenant."), code="slug")
        return slug

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        self.new_pass = confirm_decay(pass_id=self.record.pk, actor=actor, now=now)
        return _("%(pass)s is confirmed. A worker carries it out.") % {"pass": mention(self.record)}

    def leads_to(self) -> str:
        return url_of(self.new_pass)


def _count_column(description: Any, name: str) -> Callable[[Any, DecayPass], str]:
    @column(description)
    def cell(_page: Any, row: DecayPass) -> str:
        return number(row.counts.get(name, 0))

    return cell


class DecayPassPage(RecordPage):
    page_template = "memories/decay_pass.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"confirm": ConfirmForm}
    csv_columns = ("id", "tenant__slug", "state", "trigger", "counts", "started_at")
    list_display = ("started", "tenant", "shown_state", "facts", "episodes", "expired", "purged", "begun_by")
    list_filter = ("state", "trigger", "tenant")
    list_select_related = ("tenant",)
    ordering = ("-started_at", "-id")
    list_links = ((gettext_lazy("Retention"), "event_busy", "admin:retention", VIEW),)
    started = moment_column(gettext_lazy("Started"), "started_at")
    facts = _count_column(gettext_lazy("Facts faded"), "facts")
    episodes = _count_column(gettext_lazy("Episodes faded"), "episodes")
    expired = _count_column(gettext_lazy("Expired"), "expired")
    purged = _count_column(gettext_lazy("Permanently deleted"), "purged")
    empty_title = gettext_lazy("Nothing has been forgotten yet")
    empty_hint = gettext_lazy(
        "A worker runs a pass for each tenant at night. The page of a tenant previews the next one."
    )

    @column(gettext_lazy("State"), label=KINDS, ordering="state")
    def shown_state(self, row: DecayPass) -> tuple[str, str]:
        return row.state, row.get_state_display()

    @column(gettext_lazy("Started by"), ordering="trigger")
    def begun_by(self, row: DecayPass) -> str:
        return row.get_trigger_display()

    def gather(self, request: HttpRequest, record: DecayPass) -> dict[str, Any]:
        operator = Operator.objects.filter(pk=record.actor_id).first() if record.actor_id else None
        context: dict[str, Any] = {"pass": record, "by": operator}
        if request.user.has_perm("memories.view_fact"):
            context["facts"] = Fact.objects.filter(revisions__change_set=record.pk)[:FACTS_SHOWN]
        if is_confirmable(record):
            context["waiting"] = decay.preview(record.tenant, record.as_of)
        return context


def urls() -> list[URLPattern]:
    view = admin.site.admin_view
    return [
        path("forgetting/", view(tenants), name="forgetting"),
        path("forgetting/<uuid:tenant_id>/", view(next_pass), name="next_decay_pass"),
    ]


def tenants(request: HttpRequest) -> HttpResponse:
    """Choose the tenant of the next pass."""
    require(request, VIEW)
    context: dict[str, Any] = {"tenants": tenants_of(request.user), "next_page": "admin:next_decay_pass"}
    return render_page(request, "memories/forgetting.html", title=_("Forgetting"), **context)


def next_pass(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    """What the tenant's next pass would take now. A POST starts a pass."""
    require(request, VIEW)
    tenant = get_object_or_404(tenants_of(request.user), pk=tenant_id)
    if request.method == "POST":
        require(request, CHANGE)
        return _run(request, tenant)
    now = timezone.now()
    preview = decay.preview(tenant, now)
    context: dict[str, Any] = {
        "tenant": tenant,
        "preview": preview,
        "forecast": forecast(tenant, now=now),
        "rules": conf.rules(tenant),
        "no_upkeep": upkeep.reason_disabled(conf.rules(tenant), tenant),
        "latest": DecayPass.objects.filter(tenant=tenant).first(),
        "may_run": request.user.has_perm(CHANGE),
    }
    if request.user.has_perm("memories.view_fact"):
        context["facts"] = Fact.objects.filter(pk__in=preview.facts).order_by("forget_at", "pk")
        context["episodes"] = Episode.objects.filter(pk__in=preview.episodes).order_by("forget_at", "pk")
    return render_page(request, "memories/next_decay_pass.html", title=_("Next clean-up"), **context)


def _run(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    try:
        row = run_decay(tenant=tenant, actor=actor_of(request), now=timezone.now())
    except DecayRunning as error:
        messages.error(request, error.detail)
        return HttpResponseRedirect(request.path)
    messages.success(request, _("%(pass)s has started. A worker carries it out.") % {"pass": mention(row)})
    return HttpResponseRedirect(url_of(row))


def forecast(tenant: Tenant, *, now: datetime) -> Chart:
    """What of a tenant is due on each of the next days, if nothing recalls or confirms it.

    The days are those of the operator's time zone, today first; today has what is due already.

    What both fades and expires within these days counts once, on the day on which it expires.
    """
    today = timezone.localdate(now)
    days = [today + timedelta(days=ahead) for ahead in range(FORECAST_DAYS)]
    # The last moment of the last day: what falls due at midnight is the next day's.
    end = timezone.make_aware(datetime.combine(days[-1], clock_time.max))
    per_day: dict[date, dict[str, int]] = defaultdict(lambda: dict.fromkeys(SERIES, 0))
    for group in (*trash.EXPIRED, *trash.FADED):
        rows = trash.due(group, tenant, as_of=end).order_by().annotate(on=TruncDate(group.moment))
        for on, count in rows.values_list("on").annotate(count=Count("pk")):
            per_day[max(on, today)][group.counted] += count
    values = {day: list(counts.values()) for day, counts in per_day.items()}
    return stacked(days, list(SERIES.values()), values)
