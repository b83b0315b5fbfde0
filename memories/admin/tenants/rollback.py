"""Roll back what a session, an agent, a key or a time brought: a form, a preview, the result and its undo."""

import uuid
from typing import Any, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from memories.admin.access import fresh
from memories.admin.access.tenant_scope import tenants_of, within
from memories.admin.people.finding import find_person
from memories.admin.site import reasons
from memories.admin.site.fields import AgentField, PersonField, SessionField, TenantField
from memories.admin.site.page import actor_of, render_page, require
from memories.admin.site.reasons import ReasonField
from memories.admin.site.wording import exact
from memories.admin.trail.authors import names_of
from memories.curation.people.external_ids import LONGEST_ID
from memories.curation.reverting import revert
from memories.curation.rollback.roll_back import RollbackPreview, preview_rollback, roll_back
from memories.curation.rollback.selection import ROLL_BACK, Selector
from memories.exceptions import MemoryHubError
from memories.models import ActorKind, APIKey, ChangeSet, EndUser, Operator, Session, Tenant
from memories.models.ids import parse_uuid

# Query parameters that fill in the form: the hub's ids, nothing personal.
PREFILLED = ("tenant", "person", "session", "agent", "key")
# A roll back changes memories of many people at once, so the right to edit facts is not enough.
MAY = ("memories.view_fact", "memories.change_fact", "memories.change_session")


Rows = TypeVar("Rows", bound=QuerySet[Any])


class UnfoldMomentInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]  # Unfold has no types
    """The browser's own field for date and time."""

    input_type = "datetime-local"

    def format_value(self, value: Any) -> Any:
        return value if isinstance(value, str) or value is None else value.strftime("%Y-%m-%dT%H:%M")


class RollbackForm(forms.Form):
    tenant = TenantField()
    person = PersonField(
        required=False,
        max_length=LONGEST_ID,
        label=_("End user"),
        help_text=_("The external id, or the name. Leave empty for all end users."),
    )
    session = SessionField(
        required=False,
        max_length=LONGEST_ID,
        label=_("Session"),
        help_text=_("The application's own id (session_id), as the page of the session shows it."),
    )
    agent = AgentField(
        required=False,
        max_length=255,
        label=_("Agent"),
        help_text=_(
            "Everything from sessions with this agent, its memory files, its diary, and what was said in groups "
            "through it."
        ),
    )
    key = forms.ModelChoiceField(
        APIKey.objects.none(),
        required=False,
        label=_("API key"),
        widget=UnfoldAdminSelectWidget,
        empty_label="–",
        help_text=_(
            "Everything from turns that the key posted, every fact, memory file and diary entry that it wrote, and "
            "what it stated in groups."
        ),
    )
    since = forms.DateTimeField(
        required=False,
        label=_("Since"),
        widget=UnfoldMomentInput,
        help_text=_("Extracted at this time or later, in your time zone."),
    )
    until = forms.DateTimeField(
        required=False, label=_("Until"), widget=UnfoldMomentInput, help_text=_("Extracted before.")
    )
    reason = ReasonField(*reasons.ROLL_BACK, longest=500, help_text=_("Optional; recorded with every change."))

    def __init__(self, *args: Any, operator: Operator | AnonymousUser, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]
        self.fields["key"].queryset = within(operator, APIKey.objects.all())  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if not any(data.get(name) for name in ("session", "agent", "key", "since", "until")):
            raise forms.ValidationError(gettext("Choose a session, an agent, a key or a period."), code="origin")
        # The records come in the place of the words that name them.
        if tenant := data.get("tenant"):
            if words := data.get("person"):
                person = _with_id(EndUser.objects.filter(tenant=tenant), words).first()
                data["person"], why_not = (person, "") if person else find_person(tenant, words)
                if why_not:
                    self.add_error("person", why_not)
            if words := data.get("session"):
                data["session"], why_not = _session(tenant, data.get("person") or None, words)
                if why_not:
                    self.add_error("session", why_not)
            if (key := data.get("key")) and key.tenant_id != tenant.pk:
                self.add_error("key", gettext("This tenant has no such key."))
        return data

    def settle(self) -> None:
        """Let the hidden fields of a preview name the records by the hub's ids: another end user may get the same name
        before it is confirmed."""
        posted: QueryDict = self.data.copy()  # type: ignore[attr-defined]  # of a request
        for name in ("person", "session"):
            if record := self.cleaned_data[name]:
                posted[name] = str(record.pk)
        self.data = posted

    def named(self) -> list[tuple[str, Any]]:
        """Labels and values of the selection."""
        values = {**self.cleaned_data}
        if person := values["person"]:
            names = [person.display_name, person.external_id]
            values["person"] = " · ".join(name for name in names if name)
        if session := values["session"]:
            values["session"] = session.external_id
        for name in ("since", "until"):
            if values[name]:
                values[name] = exact(values[name])
        return [(str(self[name].label), value) for name, value in values.items() if value and name != "reason"]

    def selector(self) -> Selector:
        data = self.cleaned_data
        return Selector(
            tenant=data["tenant"],
            end_user=data["person"] or None,
            session=data["session"].pk if data["session"] else None,
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
        return _page(request, RollbackForm(initial=_prefilled(request), operator=request.user))
    form = RollbackForm(request.POST, operator=request.user)
    if not form.is_valid():
        return _page(request, form, status=400)
    if "confirmed" not in request.POST:
        form.settle()
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
    rows = ChangeSet.objects.filter(verb=ROLL_BACK).select_related("tenant", "end_user")
    done = get_object_or_404(within(request.user, rows), pk=change_set)
    if request.method == "POST" and not done.undone_at:
        try:
            revert(change_set=change_set, actor=actor_of(request), now=timezone.now())
        except MemoryHubError as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, gettext("Roll back undone; later changes were kept."))
        return HttpResponseRedirect(request.path)
    undone = ChangeSet.objects.filter(pk=done.reverted_by).first()
    by = names_of([done]).get(done.actor_id, str(ActorKind(done.actor_kind).label))
    shown = {"title": gettext("Rolled back"), "done": done, "undone": undone, "by": by, "selected": _selected(done)}
    return render_page(request, "memories/rolled_back.html", **shown)


def _selected(done: ChangeSet) -> dict[str, Any]:
    """What the roll back was asked for, as the form names it: the records that there still are, and moments."""
    given = done.selected or {}
    moments = {name: parse_datetime(given[name]) for name in ("since", "until") if name in given}
    return {
        "agent": given.get("agent", ""),
        "session_id": given.get("session", ""),
        "session": _with_id(Session.objects.filter(tenant=done.tenant_id), given.get("session", "")).first(),
        "key_id": given.get("key", ""),
        "key": _with_id(APIKey.objects.filter(tenant=done.tenant_id), given.get("key", "")).first(),
        **moments,
    }


def _prefilled(request: HttpRequest) -> dict[str, str]:
    """What the address names. Records are shown by the id that the application gave them, if it names no other."""
    initial = {name: request.GET[name] for name in PREFILLED if name in request.GET}
    tenant = _with_id(tenants_of(request.user), initial.get("tenant", "")).first()
    if tenant:
        person = _with_id(EndUser.objects.filter(tenant=tenant), initial.get("person", "")).first()
        session = _with_id(Session.objects.filter(tenant=tenant), initial.get("session", "")).first()
        if person:
            initial["person"] = person.external_id
        if session and _session(tenant, None, session.external_id)[0] == session:
            initial["session"] = session.external_id
    return initial


def _session(tenant: Tenant, person: EndUser | None, words: str) -> tuple[Session | None, str]:
    """By the hub's id, or by the application's, if only one session has it."""
    rows = Session.objects.filter(tenant=tenant, **({"end_user": person} if person else {}))
    found = list(_with_id(rows, words)) or list(rows.filter(external_id=words)[:2])
    if len(found) == 1:
        return found[0], ""
    if found:
        return None, gettext(
            "Several end users have a session with this id. Enter the end user, too, or open the session."
        )
    return None, gettext("This tenant has no such session.")


def _with_id(rows: Rows, text: str) -> Rows:
    pk = parse_uuid(text)
    return rows.filter(pk=pk) if pk else rows.none()


def _page(
    request: HttpRequest, form: RollbackForm, *, preview: RollbackPreview | None = None, status: int = 200
) -> TemplateResponse:
    named = form.named() if preview else []
    context = {"title": gettext("Roll back"), "form": form, "preview": preview, "named": named}
    return render_page(request, "memories/rollback.html", status=status, **context)
