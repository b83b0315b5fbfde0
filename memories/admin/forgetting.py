"""Forgetting: the passes with their counts, what the next one takes of a tenant, run now, and confirm a held one."""

import uuid
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import conf, curation
from memories.admin import cells, room
from memories.admin.columns import column
from memories.admin.fields import LineField
from memories.admin.page import RecordPage, VerbForm, actor_of, url_of
from memories.admin.reach import tenants_of
from memories.admin.wording import KINDS
from memories.audit import Actor
from memories.exceptions import DecayRunning
from memories.models import DecayPass, Episode, Fact, Operator, Tenant
from memories.pipeline import decay, upkeep_passes

FACTS_SHOWN = 25
VIEW, CHANGE = "memories.view_decaypass", "memories.change_decaypass"


class ConfirmForm(VerbForm):
    tenant = LineField(
        label=gettext_lazy("The tenant's slug"),
        max_length=63,
        help_text=gettext_lazy("Typed out, so that it is no slip."),
    )
    record: DecayPass

    def clean_tenant(self) -> str:
        slug: str = self.cleaned_data["tenant"]
        if slug != self.record.tenant.slug:
            raise forms.ValidationError(_("This is not the slug of the pass's tenant."), code="slug")
        return slug

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        self.begun = curation.confirm_decay(pass_id=self.record.pk, actor=actor, now=now)
        return _("%(pass)s is confirmed: a worker takes what it would have taken.") % {"pass": self.record}

    def leads_to(self) -> str:
        return url_of(self.begun)


class DecayPassPage(RecordPage):
    page_template = "memories/decay_pass.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"confirm": ConfirmForm}
    list_display = ("started", "tenant", "shown_state", "facts", "episodes", "expired", "purged", "begun_by")
    list_filter = ("state", "trigger", "tenant")
    list_select_related = ("tenant",)
    ordering = ("-started_at", "-id")
    list_links = ((gettext_lazy("Retention"), "event_busy", "admin:retention", VIEW),)
    empty_title = gettext_lazy("Nothing was forgotten yet")
    empty_hint = gettext_lazy(
        "A worker runs a pass for each tenant at night. The page of a tenant shows what the next one takes."
    )

    @column(gettext_lazy("Started"), ordering="started_at")
    def started(self, row: DecayPass) -> SafeString | str:
        return cells.moment(row.started_at)

    @column(gettext_lazy("State"), label=KINDS, ordering="state")
    def shown_state(self, row: DecayPass) -> tuple[str, str]:
        return row.state, row.get_state_display()

    @column(gettext_lazy("Facts faded"))
    def facts(self, row: DecayPass) -> int:
        return int(row.counts.get("facts", 0))

    @column(gettext_lazy("Episodes faded"))
    def episodes(self, row: DecayPass) -> int:
        return int(row.counts.get("episodes", 0))

    @column(gettext_lazy("Expired"))
    def expired(self, row: DecayPass) -> int:
        return int(row.counts.get("expired", 0))

    @column(gettext_lazy("Deleted for good"))
    def purged(self, row: DecayPass) -> int:
        return int(row.counts.get("purged", 0))

    @column(gettext_lazy("Begun by"), ordering="trigger")
    def begun_by(self, row: DecayPass) -> str:
        return row.get_trigger_display()

    def gather(self, request: HttpRequest, record: DecayPass) -> dict[str, Any]:
        shown: dict[str, Any] = {"pass": record, "by": _operator(record.actor_id)}
        if request.user.has_perm("memories.view_fact"):
            shown["facts"] = Fact.objects.filter(revisions__change_set=record.pk)[:FACTS_SHOWN]
        if curation.is_confirmable(record):
            shown["waiting"] = decay.preview(record.tenant, record.as_of)
        return shown


def urls() -> list[URLPattern]:
    view = admin.site.admin_view
    return [
        path("forgetting/", view(tenants), name="forgetting"),
        path("forgetting/<uuid:tenant_id>/", view(next_pass), name="next_decay_pass"),
    ]


def tenants(request: HttpRequest) -> HttpResponse:
    """Whose next pass is to be looked at."""
    room.check(request, VIEW)
    shown: dict[str, Any] = {"tenants": tenants_of(request.user), "next_page": "admin:next_decay_pass"}
    return room.draw(request, "memories/forgetting.html", title=_("Forgetting"), **shown)


def next_pass(request: HttpRequest, tenant_id: uuid.UUID) -> HttpResponse:
    """What the next pass takes of the tenant, as it is now; posted, one is run."""
    room.check(request, VIEW)
    tenant = get_object_or_404(tenants_of(request.user), pk=tenant_id)
    if request.method == "POST":
        room.check(request, CHANGE)
        return _run(request, tenant)
    told = decay.preview(tenant, timezone.now())
    shown: dict[str, Any] = {
        "tenant": tenant,
        "preview": told,
        "rules": conf.rules(tenant),
        "no_upkeep": upkeep_passes.hindrance(conf.rules(tenant)),
        "latest": DecayPass.objects.filter(tenant=tenant).first(),
        "may_run": request.user.has_perm(CHANGE),
    }
    if request.user.has_perm("memories.view_fact"):
        shown["facts"] = Fact.objects.filter(pk__in=told.facts).order_by("forget_at", "pk")
        shown["episodes"] = Episode.objects.filter(pk__in=told.episodes).order_by("forget_at", "pk")
    return room.draw(request, "memories/next_decay_pass.html", title=_("What the next pass takes"), **shown)


def _run(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    try:
        row = curation.run_decay(tenant=tenant, actor=actor_of(request), now=timezone.now())
    except DecayRunning as error:
        messages.error(request, error.detail)
        return HttpResponseRedirect(request.path)
    messages.success(request, _("%(pass)s has begun: a worker carries it out.") % {"pass": row})
    return HttpResponseRedirect(url_of(row))


def _operator(actor_id: str) -> Operator | None:
    return Operator.objects.filter(pk=actor_id).first() if actor_id else None
