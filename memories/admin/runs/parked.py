"""Parked work by reason of failure, with a button that retries all work of one reason."""

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, Min
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories.admin.access.tenant_scope import tenants_of, within
from memories.admin.dashboard import figures
from memories.admin.site.page import actor_of, render_page, require
from memories.curation.retries import EXTRACTION, MOST, WINDOW, retry_parked
from memories.models import SessionQueue, WorkingMemory

VIEW, CHANGE = "memories.view_session", ("memories.change_session", "memories.change_extractionrun")
WORK = {EXTRACTION: gettext_lazy("Extraction"), WINDOW: gettext_lazy("Working memory")}


class RetryParkedForm(forms.Form):
    work = forms.ChoiceField(choices=list(WORK.items()))
    failure = forms.CharField(max_length=40, required=False)


def urls() -> list[URLPattern]:
    return [path("parked/", admin.site.admin_view(parked), name="parked")]


def parked(request: HttpRequest) -> HttpResponse:
    """The parked work that the operator may see. A POST retries the work of one reason."""
    require(request, VIEW)
    now = timezone.now()
    if request.method == "POST":
        require(request, *CHANGE)
        form = RetryParkedForm(request.POST)
        if not form.is_valid():
            return HttpResponse(status=400)
        tenants, actor = tenants_of(request.user), actor_of(request)
        count = retry_parked(**form.cleaned_data, tenants=tenants, actor=actor, now=now)
        message = ngettext("%(count)s session is due again.", "%(count)s sessions are due again.", count)
        # Where they wait for the model nevertheless, the page says so.
        messages.success(request, message % {"count": count})
        return HttpResponseRedirect(request.path)
    context: dict[str, Any] = {
        **figures.model_waits(partial(within, request.user), now=now),
        "title": _("Parked work"),
        "groups": [*_groups(request, EXTRACTION, SessionQueue), *_groups(request, WINDOW, WorkingMemory)],
        "most": MOST,
        "may_retry": request.user.has_perms(CHANGE),
    }
    return render_page(request, "memories/session_parked.html", **context)


def _groups(request: HttpRequest, work: str, model: Any) -> list[dict[str, Any]]:
    """The number of parked sessions per reason and the oldest of them, most frequent first."""
    rows = within(request.user, model.objects.filter(parked_at__isnull=False), "session__tenant")
    groups = rows.values("failure").annotate(count=Count("pk"), oldest=Min("parked_at")).order_by("-count", "failure")
    return [{"work": work, "title": WORK[work], **group} for group in groups]
