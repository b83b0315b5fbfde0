"""What was said: a search over the turns of a tenant. Each look-up is in the audit trail, without the question."""

from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget

from memories import audit
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.people.finding import find_person
from memories.admin.site.fields import LineField, PersonField, SessionField, TenantField
from memories.admin.site.page import actor_of, render_page, require
from memories.models import Author, EndUser, Role
from memories.retrieval import tenant_turns
from memories.retrieval.prepared_query import prepare
from memories.retrieval.tenant_turns import TurnFilters

MAY = ("memories.view_session",)
SHOWN = 25
LONGEST_QUERY = 1_000
_ROLES = [("", _("All")), *((role, role.label) for role in (Role.USER, Role.ASSISTANT, Role.TOOL))]


class TurnSearchForm(forms.Form):
    """All of it is posted: none of it belongs into an address."""

    tenant = TenantField(preselected=True)
    query = LineField(label=_("Search for"), max_length=LONGEST_QUERY)
    user_id = PersonField(
        label=_("End user"), required=False, max_length=255, help_text=_("The external id, or the name.")
    )
    session = SessionField(label=_("Session"), required=False, max_length=255, help_text=_("The external id."))
    role = forms.ChoiceField(label=_("Role"), required=False, choices=_ROLES, widget=UnfoldAdminSelectWidget)
    author = forms.ChoiceField(
        label=_("Whose words"),
        required=False,
        choices=[("", _("All")), *Author.choices],
        widget=UnfoldAdminSelectWidget,
    )
    since = forms.DateField(label=_("From"), required=False)
    until = forms.DateField(label=_("Up to"), required=False)

    def __init__(self, data: Any = None, *, operator: Any, initial: Any = None) -> None:
        super().__init__(data, auto_id="said_%s", initial=initial)
        self.person: EndUser | None = None
        self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]
        for name in ("since", "until"):
            self.fields[name].widget = LineField().widget
            self.fields[name].widget.input_type = "date"

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("tenant") and data.get("user_id"):
            self.person, why_not = find_person(data["tenant"], data["user_id"])
            if self.person is None:
                self.add_error("user_id", why_not)
        return data

    def filters(self) -> TurnFilters:
        data = self.cleaned_data
        # The last year has a day without a next one.
        until = data["until"] if data["until"] and data["until"].year < date.max.year else None
        return TurnFilters(
            person=self.person,
            session=data["session"],
            role=data["role"],
            author=data["author"],
            since=_midnight(data["since"]) if data["since"] else None,
            until=_midnight(until + timedelta(days=1)) if until else None,
        )


def urls() -> list[URLPattern]:
    return [path("said/", admin.site.admin_view(search_turns), name="said")]


def search_turns(request: HttpRequest) -> HttpResponse:
    """The form; posted, with the turns that were found."""
    require(request, *MAY)
    if request.method != "POST":
        return _page(request, TurnSearchForm(operator=request.user))
    form = TurnSearchForm(request.POST, operator=request.user)
    if request.POST.keys() <= {"csrfmiddlewaretoken", "query"}:
        # From the palette, which asks for no tenant where there are several.
        return _page(request, TurnSearchForm(operator=request.user, initial={"query": request.POST.get("query", "")}))
    if not form.is_valid():
        return _page(request, form, status=400)
    tenant, now = form.cleaned_data["tenant"], timezone.now()
    query = prepare(form.cleaned_data["query"], asked=timezone.localtime(now))
    result = tenant_turns.search(tenant, query, form.filters(), limit=SHOWN)
    about: Any = form.person or tenant
    counts = {"searched": result.searched, "found": len(result.found)}
    audit.record(
        actor=actor_of(request), verb="search", target=about, object_id=about.pk, tenant=tenant, now=now, counts=counts
    )
    return _page(request, form, result=result, model=query.embedding_model, clip=tenant_turns.CLIP)


def _page(request: HttpRequest, form: TurnSearchForm, *, status: int = 200, **answer: Any) -> TemplateResponse:
    shown = {"title": gettext("What was said"), "form": form, **answer}
    return render_page(request, "memories/said.html", status=status, **shown)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, timezone.get_current_timezone())
