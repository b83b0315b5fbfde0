"""An operator's own tabs: saved filters of a list."""

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

from memories.admin.lists.change_list import HubChangeList
from memories.audit import Actor
from memories.curation.access.saved_filters import forget_filter, save_filter
from memories.exceptions import MemoryHubError
from memories.models import SavedFilter


class SaveForm(forms.ModelForm[SavedFilter]):
    class Meta:
        model = SavedFilter
        fields = ("name",)


def narrowed(page: Any, request: HttpRequest) -> HubChangeList:
    """The list with the filters and the search in the request's body. Errors: IncorrectLookupParameters."""
    if "%00" in request.POST.get("query", ""):
        raise IncorrectLookupParameters
    request.GET = QueryDict(request.POST.get("query", ""))
    return page.get_changelist_instance(request)  # type: ignore[no-any-return]


def save(page: Any, request: HttpRequest, *, actor: Actor) -> HttpResponse:
    """Save the posted filters, without the search."""
    if refusal := _refusal(page, request):
        return refusal
    form = SaveForm(request.POST)
    try:
        chosen = narrowed(page, request).chosen
    except IncorrectLookupParameters:
        return HttpResponse(status=400)
    if not form.is_valid() or not chosen:
        messages.error(request, _("Not saved. Choose filters and enter a name."))
        return _back(page, request.GET.urlencode())
    values = {"model": page.model.__name__, "name": form.cleaned_data["name"], "choices": chosen}
    try:
        save_filter(operator=request.user, **values, actor=actor, now=timezone.now())  # type: ignore[arg-type]
    except MemoryHubError as error:
        messages.error(request, error.detail)
    return _back(page, request.GET.urlencode())


def forget(page: Any, request: HttpRequest, filter_id: uuid.UUID, *, actor: Actor) -> HttpResponse:
    """Delete one of the operator's own tabs."""
    if refusal := _refusal(page, request):
        return refusal
    forget_filter(operator=request.user, filter_id=filter_id, actor=actor, now=timezone.now())  # type: ignore[arg-type]
    return _back(page)


def _refusal(page: Any, request: HttpRequest) -> HttpResponse | None:
    if not page.has_view_permission(request):
        raise PermissionDenied
    return None if request.method == "POST" else HttpResponseNotAllowed(["POST"])


def _back(page: Any, query: str = "") -> HttpResponseRedirect:
    address = reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_changelist")
    return HttpResponseRedirect(f"{address}?{query}" if query else address)
