"""Why recalled? A playground: this person, this agent, this question → what was ranked how, and the context beside it.

A look writes nothing; what a hit says can be set right from here.
"""

import uuid
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from memories.admin import reach, room
from memories.admin.fields import LineField, TextField
from memories.admin.person_views import MEMORY
from memories.admin.ranks import rank
from memories.admin.seen import LONGEST_QUERY, TokensField, agents_of, look
from memories.admin.unserved import unserved
from memories.models import EndUser, Tenant
from memories.pipeline.context import DEFAULT_WITH_QUERY, ContextRequest

MAY = ("memories.view_enduser", *MEMORY)


class RecallForm(forms.Form):
    """Whom, by which agent, and what is asked. It is posted: none of it belongs into an address."""

    tenant = forms.ModelChoiceField(
        Tenant.objects.none(), label=gettext_lazy("Tenant"), widget=UnfoldAdminSelectWidget, empty_label=None
    )
    user_id = LineField(label=gettext_lazy("Person"), max_length=255, help_text=gettext_lazy("The caller's own id."))
    agent = LineField(label=gettext_lazy("Agent"), required=False, max_length=255)
    query = TextField(label=gettext_lazy("What the agent is about to answer"), max_length=LONGEST_QUERY, rows=2)
    max_tokens = TokensField()

    def __init__(self, data: Any = None, *, operator: Any, person: EndUser | None = None) -> None:
        super().__init__(data, auto_id="recall_%s")
        self.person = person
        self.fields["tenant"].queryset = reach.tenants_of(operator)  # type: ignore[attr-defined]
        self.fields["agent"].widget.attrs["list"] = "recall-agents"
        if person:
            self.initial = {"tenant": person.tenant_id, "user_id": person.external_id}

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if "tenant" in given and "user_id" in given:
            people = EndUser.objects.of(given["tenant"]).select_related("tenant")
            self.person = people.filter(external_id=given["user_id"]).first()
            if self.person is None:
                self.add_error("user_id", _("The tenant has no such person."))
        return given

    def request(self) -> ContextRequest:
        """What the valid form asks for."""
        given = self.cleaned_data
        return ContextRequest(
            user_id=given["user_id"],
            agent_id=given["agent"].lower(),
            query=given["query"],
            max_tokens=given["max_tokens"],
            include=DEFAULT_WITH_QUERY,
        )


def urls() -> list[URLPattern]:
    return [path("recalled/", admin.site.admin_view(recalled), name="recalled")]


def recalled(request: HttpRequest) -> HttpResponse:
    """The form, about the person of our id that a link may name; posted, with the answer."""
    room.check(request, *MAY)
    if request.method != "POST":
        person = _person(request)
        return _page(request, RecallForm(operator=request.user, person=person))
    form = RecallForm(request.POST, operator=request.user)
    if not form.is_valid() or form.person is None:
        return _page(request, form, status=400)
    now, asked = timezone.now(), form.request()
    seen = look(form.person, asked, now=now)
    may_change = request.user.has_perm("memories.change_fact")
    ranking = rank(form.person, asked, seen, may_change=may_change, now=now)
    near = unserved(form.person, asked, seen, now=now)
    return _page(request, form, look=seen, ranking=ranking, unserved=near)


def _person(request: HttpRequest) -> EndUser | None:
    """Whom the address names, if it is somebody within the operator's reach."""
    try:
        named = uuid.UUID(request.GET.get("person", ""))
    except ValueError:
        return None
    people = EndUser.objects.select_related("tenant")
    found: EndUser | None = reach.within(request.user, people).filter(pk=named).first()
    return found


def _page(request: HttpRequest, form: RecallForm, *, status: int = 200, **answer: Any) -> TemplateResponse:
    shown = {
        "title": _("Why recalled?"),
        "form": form,
        "person": form.person,
        "agents": agents_of(form.person) if form.person else [],
        **answer,
    }
    alone = request.headers.get("X-Fragment") == "recalled"
    template = "memories/recalled_result.html" if alone else "memories/recalled.html"
    return room.draw(request, template, status=status, **shown)
