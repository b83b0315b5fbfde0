"""Stating a fact by hand: a form, of a person that a page named or that the form finds, and the verb."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminSelectWidget

from memories import curation
from memories.admin.fact_choice import check_may_change
from memories.admin.fact_forms import FOR_COLLEAGUES
from memories.admin.fact_keeping import end_of
from memories.admin.fields import DayInput, LineField, LinesField, TextField
from memories.admin.naming import called
from memories.admin.page import RecordPage, actor_of, url_of
from memories.admin.reach import tenants_of, within
from memories.admin.wording import CUT_OUT
from memories.curation import FactDraft
from memories.exceptions import DuplicateFact, MemoryHubError
from memories.models import Category, EndUser, Fact, Operator


class AddFactForm(forms.Form):
    tenant = forms.ModelChoiceField(
        EndUser.objects.none(), label=gettext_lazy("Tenant"), widget=UnfoldAdminSelectWidget, empty_label=None
    )
    user_id = LineField(
        label=gettext_lazy("End user"), max_length=255, help_text=gettext_lazy("The application's id of the person.")
    )
    content = TextField(
        label=gettext_lazy("What is so"),
        max_length=2000,
        rows=3,
        help_text=gettext_lazy("One statement, in the language of the conversations."),
    )
    category = forms.ChoiceField(
        label=gettext_lazy("Category"), choices=Category.choices, widget=UnfoldAdminSelectWidget
    )
    importance = forms.FloatField(
        label=gettext_lazy("Importance"),
        min_value=0,
        max_value=1,
        initial=0.5,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": 0.05}),
    )
    key = LineField(
        label=pgettext_lazy("of a fact", "Key"),
        required=False,
        max_length=100,
        help_text=gettext_lazy("What it is about, like home_city. What says otherwise of the same key is superseded."),
    )
    value = LineField(label=gettext_lazy("Value"), required=False, max_length=500)
    tags = LinesField(label=gettext_lazy("Tags"), longest=100, help_text=gettext_lazy("One a line."), rows=2)
    agent_id = LineField(
        label=gettext_lazy("Agent"),
        required=False,
        max_length=255,
        help_text=gettext_lazy("Empty: all agents of the person are told it."),
    )
    last_day = forms.DateField(
        label=gettext_lazy("Last day"),
        required=False,
        widget=DayInput,
        help_text=gettext_lazy("In your time zone. Empty: it holds for ever."),
    )
    reason = LineField(label=gettext_lazy("Reason"), max_length=2000, help_text=FOR_COLLEAGUES)
    MORE = ("importance", "key", "value", "tags", "agent_id", "last_day")

    def __init__(self, data: Any = None, *, operator: Operator, person: EndUser | None) -> None:
        super().__init__(data, auto_id="add_%s")
        self.operator, self.person = operator, person
        if person:
            del self.fields["tenant"], self.fields["user_id"]
        else:
            self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or {}
        if self.person is None and "tenant" in said and "user_id" in said:
            people = EndUser.objects.filter(tenant=said["tenant"], external_id=said["user_id"])
            self.person = within(self.operator, people).select_related("tenant").first()
            if self.person is None:
                self.add_error("user_id", _("This tenant has no end user with this id."))
        day = said.get("last_day")
        if day and end_of(day) <= timezone.now():
            self.add_error("last_day", _("This day is over: name a later one."))
        return said

    def draft(self) -> FactDraft:
        """What the valid form states."""
        said = self.cleaned_data
        names = ("content", "category", "importance", "key", "value", "tags")
        day = said["last_day"]
        return FactDraft(
            **{name: said[name] for name in names},
            confidence=1.0,
            agent_id=said["agent_id"].lower(),
            expires_at=end_of(day) if day else None,
        )


def add(page: RecordPage, request: HttpRequest) -> HttpResponse:
    """The form; posted, the fact is stated and its page is shown. `?person=` names the hub's id of the person."""
    check_may_change(page, request)
    operator: Any = request.user
    person = _named(request, operator)
    if request.method != "POST":
        return _answer(page, request, AddFactForm(operator=operator, person=person), person)
    form = AddFactForm(request.POST, operator=operator, person=person)
    if not form.is_valid() or form.person is None:
        return _answer(page, request, form, person, status=400)
    draft, said = form.draft(), form.cleaned_data
    try:
        fact = curation.add_fact(
            end_user=form.person, draft=draft, actor=actor_of(request), now=timezone.now(), reason=said["reason"]
        )
    except MemoryHubError as error:
        form.add_error(None, error.detail)
        known = error.fact_id if isinstance(error, DuplicateFact) else None
        return _answer(page, request, form, person, known=known, status=error.status)
    messages.success(request, f"{_done(fact)}{CUT_OUT if fact.content != draft.content else ''}")
    return HttpResponseRedirect(url_of(fact))


def _named(request: HttpRequest, operator: Operator) -> EndUser | None:
    """The person whose page led here. Errors: Http404, also beyond the operator's reach."""
    given = request.GET.get("person", "")
    if not given:
        return None
    try:
        people = EndUser.objects.filter(pk=uuid.UUID(given)).select_related("tenant")
    except ValueError as error:
        raise Http404 from error
    person: EndUser | None = within(operator, people).first()
    if person is None:
        raise Http404
    return person


def _done(fact: Fact) -> str:
    return _("%(fact)s is stated: it is served from now on, and no job and no key changes it.") % {"fact": called(fact)}


def _answer(
    page: RecordPage,
    request: HttpRequest,
    form: AddFactForm,
    person: EndUser | None,
    *,
    known: uuid.UUID | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        **page.admin_site.each_context(request),
        "title": _("Add a fact"),
        "opts": page.opts,
        "form": form,
        "more": [form[name] for name in form.MORE],
        "more_open": any(form[name].errors for name in form.MORE),
        "person": person,
        "known": known,
    }
    return TemplateResponse(request, "memories/fact_add.html", context, status=status)
