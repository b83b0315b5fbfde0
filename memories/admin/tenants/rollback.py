"""Roll back what a session, an agent, a key or a time brought: a form, a preview, the result and its undo."""

import uuid
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from memories.admin.access import fresh
from memories.admin.access.tenant_scope import tenants_of, within
from memories.admin.site.fields import LineField
from memories.admin.site.page import actor_of, render_page, require
from memories.curation.reverting import revert
from memories.curation.rollback.roll_back import RollbackPreview, preview_rollback, roll_back
from memories.curation.rollback.selection import ROLL_BACK, Selector
from memories.exceptions import MemoryHubError
from memories.models import APIKey, ChangeSet, EndUser, Operator, Session, Tenant

# Query parameters that fill in the form: ids, nothing personal.
PREFILLED = ("tenant", "person", "session", "agent", "key")
# A roll back changes memories of many people at once, so the right to edit facts is not enough.
MAY = ("memories.view_fact", "memories.change_fact", "memories.change_session")


class MomentInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]  # Unfold has no types
    """The browser's own field for date and time."""

    input_type = "datetime-local"

    def format_value(self, value: Any) -> Any:
        return value if isinstance(value, str) or value is None else value.strftime("%Y-%m-%dT%H:%M")


class RollbackForm(forms.Form):
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(), label=_("Tenant"), widget=UnfoldAdminSelectWidget, empty_label=_("Choose a tenant")
    )
    person = forms.UUIDField(
        required=False,
        label=_("Person"),
        widget=UnfoldAdminTextInputWidget,
        help_text=_("The hub's id of an end user. Leave empty for all end users."),
    )
    session = forms.UUIDField(
        required=False,
        label=_("Session"),
        widget=UnfoldAdminTextInputWidget,
        help_text=_("The hub's id of a session."),
    )
    agent = LineField(
        required=False, max_length=255, label=_("Agent"), help_text=_("Everything from sessions with this agent.")
    )
    key = forms.ModelChoiceField(
        APIKey.objects.none(),
        required=False,
        label=_("API key"),
        widget=UnfoldAdminSelectWidget,
        empty_label="–",
        help_text=_("Everything from turns that the key posted, and everything that it stated."),
    )
    since = forms.DateTimeField(
        required=False,
        label=_("Since"),
        widget=MomentInput,
        help_text=_("Extracted at this time or later, in your time zone."),
    )
    until = forms.DateTimeField(required=False, label=_("Until"), widget=MomentInput, help_text=_("Extracted before."))
    reason = LineField(required=False, max_length=500, label=_("Reason"), help_text=_("Recorded with every change."))

    def __init__(self, *args: Any, operator: Operator | AnonymousUser, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]
        self.fields["key"].queryset = within(operator, APIKey.objects.all())  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if not any(data.get(name) for name in ("session", "agent", "key", "since", "until")):
            raise forms.ValidationError(gettext("Choose a session, an agent, a key or a period."), code="origin")
        tenant = data.get("tenant")
        for name, model in (("person", EndUser), ("session", Session), ("key", APIKey)):
            pk = getattr(data.get(name), "pk", data.get(name))
            if tenant and pk and not model._default_manager.filter(tenant=tenant, pk=pk).exists():
                self.add_error(name, gettext("This tenant has no such object."))
        return data

    def named(self) -> list[tuple[str, Any]]:
        """Labels and values of the selection."""
        values = self.cleaned_data.items()
        return [(str(self[name].label), value) for name, value in values if value and name != "reason"]

    def selector(self) -> Selector:
        data = self.cleaned_data
        return Selector(
            tenant=data["tenant"],
            end_user=EndUser.objects.get(pk=data["person"]) if data["person"] else None,
            session=data["session"],
            agent_id=data["agent"].lower(),
            key=data["key"].pk if data["key"] else None,
            since=data["since"],
            until=data["until"],
        )


def urls() -> list[URLPattern]:
    view = admin.site.admin_view
    return [
        path("rollback/", view(rollback_page), name="rollback"),
        path("rollback/<uuid:change_set>/", view(rolled_back), name="rolled_back"),
    ]


def rollback_page(request: HttpRequest) -> HttpResponse:
    """The form. A POST shows the preview; a confirmed POST rolls back."""
    require(request, *MAY)
    if request.method != "POST":
        initial = {name: request.GET[name] for name in PREFILLED if name in request.GET}
        return _page(request, RollbackForm(initial=initial, operator=request.user))
    form = RollbackForm(request.POST, operator=request.user)
    if not form.is_valid():
        return _page(request, form, status=400)
    if "confirmed" not in request.POST:
        return _page(request, form, preview=preview_rollback(form.selector()))
    if challenge := fresh.required(request):
        return challenge
    done = roll_back(
        selector=form.selector(),
        actor=actor_of(request),
        now=timezone.now(),
        reason=form.cleaned_data["reason"],
    )
    return HttpResponseRedirect(reverse("admin:rolled_back", args=[done.id]))


def rolled_back(request: HttpRequest, change_set: uuid.UUID) -> HttpResponse:
    """The result of a roll back. A POST undoes it."""
    require(request, *MAY)
    done = get_object_or_404(within(request.user, ChangeSet.objects.filter(verb=ROLL_BACK)), pk=change_set)
    if request.method == "POST" and not done.undone_at:
        try:
            revert(change_set=change_set, actor=actor_of(request), now=timezone.now())
        except MemoryHubError as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, gettext("Roll back undone; later changes were kept."))
        return HttpResponseRedirect(request.path)
    undone = ChangeSet.objects.filter(pk=done.reverted_by).first()
    return render_page(request, "memories/rolled_back.html", title=gettext("Rolled back"), done=done, undone=undone)


def _page(
    request: HttpRequest, form: RollbackForm, *, preview: RollbackPreview | None = None, status: int = 200
) -> TemplateResponse:
    named = form.named() if preview else []
    context = {"title": gettext("Roll back"), "form": form, "preview": preview, "named": named}
    return render_page(request, "memories/rollback.html", status=status, **context)
