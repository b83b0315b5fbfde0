"""Parked work: what was given up, by its reason, with a button that tries all of it anew."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, Min
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories import curation
from memories.admin import room
from memories.admin.page import actor_of
from memories.admin.reach import tenants_of, within
from memories.curation.parking import EXTRACTION, MOST, WINDOW
from memories.models import SessionQueue, WorkingMemory

VIEW, CHANGE = "memories.view_session", ("memories.change_session", "memories.change_extractionrun")
WORK = {EXTRACTION: gettext_lazy("Extraction"), WINDOW: gettext_lazy("Working memory")}


class RetryForm(forms.Form):
    work = forms.ChoiceField(choices=list(WORK.items()))
    failure = forms.CharField(max_length=40, required=False)


def urls() -> list[URLPattern]:
    return [path("parked/", admin.site.admin_view(parked), name="parked")]


def parked(request: HttpRequest) -> HttpResponse:
    """What is parked of the tenants within reach; posted, the work that failed for one reason is due again."""
    room.check(request, VIEW)
    if request.method == "POST":
        return _retry(request, now=timezone.now())
    shown: dict[str, Any] = {
        "title": _("Parked work"),
        "groups": [*_groups(request, EXTRACTION, SessionQueue), *_groups(request, WINDOW, WorkingMemory)],
        "most": MOST,
        "may_retry": request.user.has_perms(CHANGE),
    }
    return room.draw(request, "memories/session_parked.html", **shown)


def _groups(request: HttpRequest, work: str, model: Any) -> list[dict[str, Any]]:
    """How many sessions are parked for each reason, and since when, the most first."""
    rows = within(request.user, model.objects.filter(parked_at__isnull=False), "session__tenant")
    found = rows.values("failure").annotate(count=Count("pk"), oldest=Min("parked_at")).order_by("-count", "failure")
    return [{"work": work, "title": WORK[work], **row} for row in found]


def _retry(request: HttpRequest, *, now: datetime) -> HttpResponse:
    room.check(request, *CHANGE)
    form = RetryForm(request.POST)
    if not form.is_valid():
        return HttpResponse(status=400)
    given = {**form.cleaned_data, "tenants": tenants_of(request.user)}
    count = curation.retry_parked(**given, actor=actor_of(request), now=now)
    said = ngettext("%(count)s session is due again.", "%(count)s sessions are due again.", count)
    messages.success(request, said % {"count": count})
    return HttpResponseRedirect(request.path)
