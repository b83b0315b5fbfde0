"""Intake: a request as it came, for a person chosen on their page or named by id, which stays out of addresses."""

import uuid
from datetime import date, datetime
from datetime import time as clock_time
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminSelectWidget

from memories.admin.case_forms import LONGEST_ID
from memories.admin.case_wording import TYPES_SAY
from memories.admin.fields import DayInput, LineField
from memories.admin.page import RecordPage, actor_of, said_of, url_of
from memories.admin.reach import tenants_of, within
from memories.exceptions import InvalidInput, MemoryHubError, NotFound
from memories.models import Asker, CaseType, EndUser, Tenant
from memories.privacy import cases


class IntakeForm(forms.Form):
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(),
        label=gettext_lazy("Tenant"),
        widget=UnfoldAdminSelectWidget,
        empty_label=gettext_lazy("Choose a tenant"),
    )
    user_id = LineField(
        label=gettext_lazy("External id of the person"),
        max_length=LONGEST_ID,
        strip=False,
        help_text=gettext_lazy("What the application calls this person: user_id in the API."),
    )
    type = forms.ChoiceField(
        label=gettext_lazy("What is asked for"), choices=CaseType.choices, widget=UnfoldAdminRadioSelectWidget
    )
    asked_by = forms.ChoiceField(
        label=gettext_lazy("Who asks"), choices=Asker.choices, widget=UnfoldAdminSelectWidget, initial=Asker.SUBJECT
    )
    received_on = forms.DateField(
        label=gettext_lazy("Received on"),
        widget=DayInput,
        help_text=gettext_lazy("The answer is due one calendar month later, whatever day it is entered here."),
    )
    channel = LineField(
        label=gettext_lazy("Channel"),
        max_length=40,
        required=False,
        help_text=gettext_lazy("How it came: email, phone, letter, in person."),
    )
    reference = LineField(
        label=gettext_lazy("Reference"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("A ticket's number, so that it is found again; no name."),
    )

    def __init__(self, request: HttpRequest, person: EndUser | None) -> None:
        super().__init__(
            request.POST if request.method == "POST" else None,
            initial={"type": request.GET.get("type", ""), "received_on": timezone.localdate()},
        )
        self.person = person
        self.fields["tenant"].queryset = tenants_of(request.user)  # type: ignore[attr-defined]
        if person:
            del self.fields["tenant"], self.fields["user_id"]

    def clean_received_on(self) -> datetime:
        """Its beginning in the operator's zone: the clock runs from the day; of today the present moment."""
        day: date = self.cleaned_data["received_on"]
        if day > timezone.localdate():
            raise forms.ValidationError(_("This day is still to come."), code="future")
        return min(timezone.make_aware(datetime.combine(day, clock_time.min)), timezone.now())

    def given(self) -> dict[str, Any]:
        """What the verb takes."""
        told = dict(self.cleaned_data)
        told["received_at"] = told.pop("received_on")
        whom = {"tenant": self.person.tenant, "user_id": self.person.external_id} if self.person else {}
        return {**told, **whom}

    def refuse(self, error: MemoryHubError) -> None:
        """Say what to look at; nothing typed is lost."""
        if isinstance(error, NotFound) and "user_id" in self.fields:
            self.add_error("user_id", _UNKNOWN)
        elif isinstance(error, InvalidInput) and error.faults:
            for fault in error.faults:
                self.add_error(_field_of(fault.pointer, self.fields), fault.detail)
        else:
            self.add_error(None, said_of(error))


class IntakeViews(RecordPage):
    """The page of the cases with a button New case."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.add_privacycase")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form; a valid one leads to the page of the new case."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        person = _person_of(request)
        form = IntakeForm(request, person)
        status = 400 if form.is_bound else 200
        if form.is_valid():
            try:
                case = cases.open_case(**form.given(), actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                form.refuse(error)
                status = error.status
            else:
                messages.success(request, _("The case is open. Next: make sure who asks."))
                return HttpResponseRedirect(f"{url_of(case)}#next")
        return self._intake(request, form, person, status)

    def _intake(self, request: HttpRequest, form: IntakeForm, person: EndUser | None, status: int) -> TemplateResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": _("New privacy case"),
            "opts": self.opts,
            "form": form,
            "person": person,
            "open_cases": cases.cases_of(person).open() if person else [],
            "types": [(one.label, TYPES_SAY[one.value]) for one in CaseType],
        }
        return TemplateResponse(request, "memories/case_add.html", context, status=status)


_UNKNOWN = gettext_lazy(
    "This tenant knows nobody by this id. Check the tenant, every character (capital letters count), and whether the "
    "application calls the person by another id. Whoever was erased before is not here any more, and one of whom "
    "nothing was ever stored is not either: then answer that there is nothing."
)


def _person_of(request: HttpRequest) -> EndUser | None:
    """Whom the address names, if anybody, within reach. Errors: Http404."""
    if "person" not in request.GET:
        return None
    try:
        named = uuid.UUID(request.GET["person"])
    except ValueError:
        raise Http404 from None
    people = within(request.user, EndUser.objects.themselves().select_related("tenant"))
    person: EndUser | None = people.filter(pk=named).first()
    if person is None or not request.user.has_perm("memories.view_enduser"):
        raise Http404
    return person


def _field_of(pointer: str, fields: Any) -> str | None:
    name = {"received_at": "received_on"}.get(pointer.strip("/"), pointer.strip("/"))
    return name if name in fields else None
