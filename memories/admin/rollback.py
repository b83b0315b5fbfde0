"""Roll back: a form that says what from, a page that says what goes, and the result with its undo."""

import uuid
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from memories import curation
from memories.admin import fresh, room
from memories.admin.fields import LineField
from memories.admin.page import actor_of
from memories.admin.reach import tenants_of, within
from memories.exceptions import NotFound
from memories.models import APIKey, AuditEvent, EndUser, Operator, Session, Tenant

# What a page that leads here may name in the address: our ids, nothing personal.
PREFILLED = ("tenant", "person", "session", "key")
# It changes memories of many people at once: who may only edit single facts may not.
MAY = ("memories.view_fact", "memories.change_fact", "memories.change_session")


class MomentInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]  # Unfold has no types
    """The browser's own field for a day and a time."""

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
        help_text=_("The hub's id of a person; empty: of all people."),
    )
    session = forms.UUIDField(
        required=False,
        label=_("Session"),
        widget=UnfoldAdminTextInputWidget,
        help_text=_("The hub's id of a session."),
    )
    agent = LineField(
        required=False, max_length=255, label=_("Agent"), help_text=_("What came of all sessions with this agent.")
    )
    key = forms.ModelChoiceField(
        APIKey.objects.none(),
        required=False,
        label=_("API key"),
        widget=UnfoldAdminSelectWidget,
        empty_label="–",
        help_text=_("What came of the turns that it posted, and what it stated."),
    )
    since = forms.DateTimeField(
        required=False, label=_("Since"), widget=MomentInput, help_text=_("Extracted at or after, in your time zone.")
    )
    until = forms.DateTimeField(required=False, label=_("Until"), widget=MomentInput, help_text=_("Extracted before."))
    reason = LineField(required=False, max_length=500, label=_("Reason"), help_text=_("Kept with every change."))

    def __init__(self, *args: Any, operator: Operator | AnonymousUser, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = {"tenant": tenants_of(operator), "key": within(operator, APIKey.objects.all())}
        for name, rows in choices.items():
            self.fields[name].queryset = rows  # type: ignore[attr-defined]  # of a choice of rows

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if not any(data.get(name) for name in ("session", "agent", "key", "since", "until")):
            raise forms.ValidationError(gettext("Name a session, an agent, a key or a time."), code="origin")
        tenant = data.get("tenant")
        for name, model in (("person", EndUser), ("session", Session), ("key", APIKey)):
            wanted = getattr(data.get(name), "pk", data.get(name))
            if tenant and wanted and not model._default_manager.filter(tenant=tenant, pk=wanted).exists():
                self.add_error(name, gettext("This tenant has none such."))
        return data

    def named(self) -> list[tuple[str, Any]]:
        """Label and value of what the valid form names."""
        given = self.cleaned_data.items()
        return [(str(self[name].label), value) for name, value in given if value and name != "reason"]

    def selector(self) -> curation.Selector:
        """What the valid form names."""
        data = self.cleaned_data
        return curation.Selector(
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
        path("rollback/", view(roll_back), name="rollback"),
        path("rollback/<uuid:change_set>/", view(rolled_back), name="rolled_back"),
    ]


def roll_back(request: HttpRequest) -> HttpResponse:
    """The form; posted, what it would do; confirmed, it is done."""
    room.check(request, *MAY)
    if request.method != "POST":
        given = {name: request.GET[name] for name in PREFILLED if name in request.GET}
        return _page(request, RollbackForm(initial=given, operator=request.user))
    form = RollbackForm(request.POST, operator=request.user)
    if not form.is_valid():
        return _page(request, form, status=400)
    if "confirmed" not in request.POST:
        return _page(request, form, preview=curation.preview_rollback(form.selector()))
    if asked := fresh.required(request):
        return asked
    done = curation.roll_back(
        selector=form.selector(),
        actor=actor_of(request),
        now=timezone.now(),
        reason=form.cleaned_data["reason"],
    )
    return HttpResponseRedirect(reverse("admin:rolled_back", args=[done.change_set]))


def rolled_back(request: HttpRequest, change_set: uuid.UUID) -> HttpResponse:
    """What a roll back did, from the trail; posted, it is undone."""
    room.check(request, *MAY)
    events = within(request.user, AuditEvent.objects.filter(object_type="RolledBack"), "tenant_uuid")
    event = events.filter(object_id=change_set, verb="roll_back").first()
    if event is None:
        raise Http404
    undone = events.filter(object_id=change_set, verb="undo_roll_back")
    if request.method == "POST" and not undone.exists():
        _undo(request, change_set)
        return HttpResponseRedirect(request.path)
    title = gettext("Rolled back")
    return room.draw(request, "memories/rolled_back.html", title=title, event=event, undone=undone.first())


def _undo(request: HttpRequest, change_set: uuid.UUID) -> None:
    try:
        curation.undo_rollback(change_set=change_set, actor=actor_of(request), now=timezone.now())
    except NotFound:
        messages.info(request, gettext("There is nothing to undo."))
        return
    messages.success(request, gettext("The roll back is undone, but for what changed since."))


def _page(
    request: HttpRequest, form: RollbackForm, *, preview: curation.Preview | None = None, status: int = 200
) -> TemplateResponse:
    named = form.named() if preview else []
    shown = {"title": gettext("Roll back"), "form": form, "preview": preview, "named": named}
    return room.draw(request, "memories/rollback.html", status=status, **shown)
