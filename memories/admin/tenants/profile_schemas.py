"""The profiles that a tenant defines by a JSON Schema of its own: a form for each, and one for a new one."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldBooleanSwitchWidget

from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.fields import AgentField, LineField, TextField
from memories.admin.site.naming import called
from memories.admin.site.page import actor_of, message_of, render_page, require
from memories.curation.people.external_ids import LONGEST_ID
from memories.curation.tenants.profile_schemas import (
    delete_profile_schema,
    find_profile_schema,
    put_profile_schema,
)
from memories.exceptions import InvalidInput, MemoryHubError
from memories.models import ProfileSchema, Tenant
from memories.profiles.checking import MOST_BYTES

CHANGE = "memories.change_tenant"
# To begin with.
_EXAMPLE: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "home_airport": {"type": "string", "maxLength": 80},
        "seat": {"type": "string", "enum": ["aisle", "window"]},
        "languages": {"type": "array", "items": {"type": "string"}},
    },
}


class ProfileSchemaForm(forms.Form):
    """One profile; `version` 0: a new one."""

    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    name = LineField(
        label=gettext_lazy("Name"),
        max_length=24,
        help_text=gettext_lazy("Small letters, digits and _. Applications fetch it by this name."),
    )
    agent_id = AgentField(
        label=gettext_lazy("Agent"),
        required=False,
        max_length=LONGEST_ID,
        help_text=gettext_lazy("Only this agent fills and is told the profile. Empty: every agent."),
    )
    in_context = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        label=gettext_lazy("In every context"),
        help_text=gettext_lazy("If off: applications fetch it, or name it in their request."),
    )
    schema = TextField(
        label=gettext_lazy("JSON Schema"),
        rows=16,
        max_length=MOST_BYTES,
        help_text=gettext_lazy(
            "An object of fields: texts, choices (enum), days, numbers, true or false, lists of these, and groups of "
            "such fields."
        ),
    )

    def __init__(self, data: Any = None, *, row: ProfileSchema | None = None, tenant: Tenant, **kwargs: Any) -> None:
        self.row = row
        names = ("version", "name", "agent_id", "in_context")
        initial: dict[str, Any] = {name: getattr(row, name) for name in names} if row else {"version": 0}
        initial["schema"] = json.dumps(row.schema if row else _EXAMPLE, ensure_ascii=False, indent=2)
        super().__init__(data, initial=initial, **kwargs)
        agent = self.fields["agent_id"]
        if isinstance(agent, AgentField):
            agent.within(tenant)
        if row:
            self.fields["name"].widget = forms.HiddenInput()

    def clean_schema(self) -> Any:
        try:
            return json.loads(self.cleaned_data["schema"])
        except (ValueError, RecursionError):
            raise forms.ValidationError(_("This is no JSON."), code="json") from None


@dataclass(frozen=True)
class Shown:
    """A profile with its form; open where the operator has to look."""

    title: str
    form: ProfileSchemaForm
    is_open: bool = False


def urls() -> list[URLPattern]:
    view = admin.site.admin_view(profile_schemas)
    return [path("memories/tenant/<uuid:object_id>/profiles/", view, name="memories_tenant_profiles")]


def profile_schemas(request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
    """The page. A POST saves or removes one: 400 for invalid input, the error's status if it fails."""
    require(request, "memories.view_tenant", CHANGE)
    tenant = get_object_or_404(tenants_of(request.user), pk=object_id)
    if request.method != "POST":
        return _page(request, tenant)
    row = find_profile_schema(tenant, request.POST.get("name", ""))
    is_new = request.POST.get("version") == "0"
    form = ProfileSchemaForm(request.POST, row=None if is_new else row, tenant=tenant, auto_id="tried_%s")
    act = request.POST.get("act", "")
    if act not in ("save", "remove") or (act == "save" and not form.is_valid()):
        return _page(request, tenant, tried=form, status=HTTPStatus.BAD_REQUEST)
    try:
        done = _remove(request, tenant) if act == "remove" else _save(request, tenant, form)
    except MemoryHubError as error:
        if act == "remove":
            messages.error(request, message_of(error))
            return _page(request, tenant, status=error.status)
        _refuse(form, error)
        return _page(request, tenant, tried=form, status=error.status)
    messages.success(request, done)
    return HttpResponseRedirect(reverse("admin:memories_tenant_profiles", args=[tenant.pk]))


def _save(request: HttpRequest, tenant: Tenant, form: ProfileSchemaForm) -> str:
    given = dict(form.cleaned_data)
    version = given.pop("version")
    row, _made = put_profile_schema(
        tenant=tenant, **given, actor=actor_of(request), now=timezone.now(), expected_version=version
    )
    return _("The profile “%(name)s” is saved. It holds from the next extraction on.") % {"name": row.name}


def _remove(request: HttpRequest, tenant: Tenant) -> str:
    name = request.POST.get("name", "")
    delete_profile_schema(tenant=tenant, name=name, actor=actor_of(request), now=timezone.now())
    return _("The profile “%(name)s” is removed. What it said of people stays as facts.") % {"name": name}


def _refuse(form: ProfileSchemaForm, error: MemoryHubError) -> None:
    form.full_clean()
    if not isinstance(error, InvalidInput):
        form.add_error(None, message_of(error))
    for fault in error.faults:
        field = fault.pointer.split("/")[1] if fault.pointer.count("/") else ""
        text = f"{fault.pointer.removeprefix('/schema') or '/'}: {fault.detail}" if field == "schema" else fault.detail
        form.add_error(field if field in form.fields else None, text)


def _page(
    request: HttpRequest, tenant: Tenant, *, tried: ProfileSchemaForm | None = None, status: int = 200
) -> HttpResponse:
    rows = list(ProfileSchema.objects.present().filter(tenant=tenant))
    of_tried = tried.row.name if tried is not None and tried.row else ""
    if tried is not None:
        # What the operator sees now is what the next attempt changes.
        current = next((row.version for row in rows if row.name == of_tried), 0)
        tried.data = {**tried.data.dict(), "version": current}  # type: ignore[attr-defined]  # a QueryDict
    shown = [
        Shown(row.name, tried, True)
        if tried is not None and row.name == of_tried
        else Shown(row.name, ProfileSchemaForm(row=row, tenant=tenant, auto_id=f"{row.name}_%s"))
        for row in rows
    ]
    is_new = tried is not None and not of_tried
    new = tried if is_new and tried is not None else ProfileSchemaForm(tenant=tenant, auto_id="new_%s")
    return render_page(
        request,
        "memories/tenant_profiles.html",
        status=status,
        title=_("Profiles of %(tenant)s") % {"tenant": called(tenant)},
        tenant=tenant,
        opts=Tenant._meta,
        original=tenant,
        here=_("Profiles"),
        shown=shown,
        new=Shown("", new, is_new or not rows),
        tried=tried,
    )
