"""An operator's own tabs: the filters of a list kept under a name, and forgotten."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from memories import curation
from memories.admin.lists import HubChangeList
from memories.audit import Actor
from memories.exceptions import MemoryHubError
from memories.models import SavedFilter


class SaveForm(forms.ModelForm[SavedFilter]):
    class Meta:
        model = SavedFilter
        fields = ("name",)


def narrowed(page: Any, request: HttpRequest) -> HubChangeList:
    """The list under the filters and the search that came in the body of the request.

    Errors: IncorrectLookupParameters.
    """
    if "%00" in request.POST.get("query", ""):
        raise IncorrectLookupParameters
    request.GET = QueryDict(request.POST.get("query", ""))
    chosen: HubChangeList = page.get_changelist_instance(request)
    return chosen


def save(page: Any, request: HttpRequest, *, actor: Actor) -> HttpResponse:
    """Keep the posted filters; what was searched for is left out of them."""
    if not page.has_view_permission(request):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    form = SaveForm(request.POST)
    try:
        chosen = narrowed(page, request).chosen
    except IncorrectLookupParameters:
        return HttpResponse(status=400)
    if not form.is_valid() or not chosen:
        messages.error(request, _("Nothing was saved: choose filters, and give them a name."))
        return _back(page, request.GET.urlencode())
    given = {"model": page.model.__name__, "name": form.cleaned_data["name"], "choices": chosen}
    try:
        curation.save_filter(operator=request.user, **given, actor=actor, now=timezone.now())  # type: ignore[arg-type]
    except MemoryHubError as error:
        messages.error(request, error.detail)
    return _back(page, request.GET.urlencode())


def forget(page: Any, request: HttpRequest, filter_id: uuid.UUID, *, actor: Actor) -> HttpResponse:
    """Forget one of the operator's own."""
    if not page.has_view_permission(request):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    curation.forget_filter(operator=request.user, filter_id=filter_id, actor=actor, now=timezone.now())  # type: ignore[arg-type]
    return _back(page)


def _back(page: Any, query: str = "") -> HttpResponseRedirect:
    address = reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_changelist")
    return HttpResponseRedirect(f"{address}?{query}" if query else address)
