"""Adding a fact by hand: a form, about the person whose page led here or about one that the form names."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminSelectWidget

from memories.admin.access.tenant_scope import tenants_of
from memories.admin.facts.forms import LONGEST_TEXT, end_of
from memories.admin.people.finding import find_person
from memories.admin.people.views import person_of_link
from memories.admin.site import reasons
from memories.admin.site.fields import AgentField, DayInput, LineField, LinesField, PersonField, TenantField, TextField
from memories.admin.site.mentions import mention
from memories.admin.site.page import RecordPage, actor_of, render_page, url_of
from memories.admin.site.reasons import ReasonField
from memories.admin.site.wording import CUT_OUT
from memories.curation.facts.adding import FactDraft, add_fact
from memories.exceptions import DuplicateFact, MemoryHubError
from memories.models import Category, EndUser, Operator


class AddFactForm(forms.Form):
    tenant = TenantField(preselected=True)
    user_id = PersonField(label=_("End user"), max_length=255, help_text=_("The external id, or the name."))
    content = TextField(
        label=_("Fact"),
        max_length=LONGEST_TEXT,
        rows=3,
        help_text=_("One statement, in the language of the conversations."),
    )
    category = forms.ChoiceField(label=_("Category"), choices=Category.choices, widget=UnfoldAdminSelectWidget)
    importance = forms.FloatField(
        label=_("Importance"),
        min_value=0,
        max_value=1,
        initial=0.5,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": 0.05}),
    )
    key = LineField(
        label=pgettext_lazy("of a fact", "Key"),
        required=False,
        max_length=100,
        help_text=_("The topic, such as home_city. A fact with another value for the same key is superseded."),
    )
    value = LineField(label=_("Value"), required=False, max_length=500)
    tags = LinesField(label=_("Tags"), longest=100, help_text=_("One per line."), rows=2)
    agent_id = AgentField(
        label=_("Agent"),
        required=False,
        max_length=255,
        help_text=_("Leave empty to serve it to all agents of the end user."),
    )
    last_day = forms.DateField(
        label=_("Last day"),
        required=False,
        widget=DayInput,
        help_text=_("In your time zone. Leave empty if it does not expire."),
    )
    reason = ReasonField(*reasons.ADD)
    MORE = ("importance", "key", "value", "tags", "agent_id", "last_day")

    def __init__(self, data: Any = None, *, operator: Operator, person: EndUser | None) -> None:
        super().__init__(data, auto_id="add_%s")
        self.operator, self.person = operator, person
        if person:
            del self.fields["tenant"], self.fields["user_id"]
            self.fields["agent_id"].within(person.tenant, person)  # type: ignore[attr-defined]
        else:
            self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.person is None and "tenant" in data and "user_id" in data:
            # The choice of tenants is limited to those of the operator.
            self.person, why_not = find_person(data["tenant"], data["user_id"])
            if self.person is None:
                self.add_error("user_id", why_not)
        day = data.get("last_day")
        if day and end_of(day) <= timezone.now():
            self.add_error("last_day", gettext("This day has passed. Choose a later day."))
        return data

    def draft(self) -> FactDraft:
        data = self.cleaned_data
        names = ("content", "category", "importance", "key", "value", "tags")
        day = data["last_day"]
        return FactDraft(
            **{name: data[name] for name in names},
            confidence=1.0,
            agent_id=data["agent_id"].lower(),
            expires_at=end_of(day) if day else None,
        )


class FactAddingViews(RecordPage):
    """A page of facts with an Add button."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may correct facts may add some, too."""
        return bool(self.has_change_permission(request))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form; posted, the fact is added and its page is shown. `?person=` holds the hub's id of the person."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        operator: Any = request.user
        person = person_of_link(request)
        if person is None and request.GET.get("person"):
            raise Http404
        form = AddFactForm(request.POST if request.method == "POST" else None, operator=operator, person=person)
        status, duplicate = 400 if form.is_bound else 200, None
        if form.is_valid() and form.person:
            given: dict[str, Any] = {"draft": form.draft(), "reason": form.cleaned_data["reason"]}
            try:
                fact = add_fact(end_user=form.person, **given, actor=actor_of(request), now=timezone.now()).row
            except MemoryHubError as error:
                form.add_error(None, error.detail)
                duplicate = error.fact_id if isinstance(error, DuplicateFact) else None
                status = error.status
            else:
                done = gettext(
                    "%(fact)s is added. It is served from now on, and jobs and applications cannot change it."
                )
                cut = fact.content != given["draft"].content
                messages.success(request, f"{done % {'fact': mention(fact)}}{CUT_OUT if cut else ''}")
                return HttpResponseRedirect(url_of(fact))
        shown = {
            "title": gettext("Add a fact"),
            "opts": self.opts,
            "form": form,
            "more": [form[name] for name in form.MORE],
            "more_open": any(form[name].errors for name in form.MORE),
            "person": person,
            "known": duplicate,
        }
        return render_page(request, "memories/fact_add.html", status=status, **shown)
