"""Intake: a new case, for the person whose page led here or for one whose id is posted, never in an address."""

from datetime import date, datetime
from datetime import time as clock_time
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminSelectWidget

from memories.admin.access.tenant_scope import tenants_of, within
from memories.admin.cases.approvers import approvers
from memories.admin.cases.forms import LONGEST_ID
from memories.admin.cases.wording import TYPES_SAY
from memories.admin.people.finding import find_by_name
from memories.admin.site.fields import DayInput, LineField, PersonField, TenantField
from memories.admin.site.page import RecordPage, actor_of, message_of, render_page, url_of
from memories.exceptions import InvalidInput, MemoryHubError, NotFound
from memories.models import Asker, CaseType, EndUser
from memories.models.ids import parse_uuid
from memories.privacy import cases
from memories.privacy.casework.restriction import cases_of

_UNKNOWN = gettext_lazy(
    "This tenant has no end user with this id or name. Check the tenant and the id (upper and lower case differ), and "
    "whether the application uses another id. End users who were erased, or of whom nothing was ever stored, are not "
    "here. In that case answer that there is no data."
)


class IntakeForm(forms.Form):
    tenant = TenantField()
    user_id = PersonField(
        label=gettext_lazy("End user"),
        max_length=LONGEST_ID,
        strip=False,
        help_text=gettext_lazy("The external id, or the name."),
    )
    type = forms.ChoiceField(
        label=gettext_lazy("Type of request"), choices=CaseType.choices, widget=UnfoldAdminRadioSelectWidget
    )
    asked_by = forms.ChoiceField(
        label=gettext_lazy("Requester"), choices=Asker.choices, widget=UnfoldAdminSelectWidget, initial=Asker.SUBJECT
    )
    received_on = forms.DateField(
        label=gettext_lazy("Received on"),
        widget=DayInput,
        help_text=gettext_lazy("The answer is due one calendar month after this day, whenever you enter the request."),
    )
    channel = LineField(
        label=gettext_lazy("Channel"),
        max_length=40,
        required=False,
        help_text=gettext_lazy("How the request arrived: email, phone, letter, in person."),
    )
    reference = LineField(
        label=gettext_lazy("Reference"),
        max_length=255,
        required=False,
        help_text=gettext_lazy("A ticket number to find the request again. Do not enter a name."),
    )

    def __init__(self, request: HttpRequest, person: EndUser | None) -> None:
        super().__init__(
            request.POST if request.method == "POST" else None,
            initial={"type": request.GET.get("type", ""), "received_on": timezone.localdate()},
        )
        self.person, self.operator = person, request.user
        self.fields["tenant"].queryset = tenants_of(request.user)  # type: ignore[attr-defined]
        if person:
            del self.fields["tenant"], self.fields["user_id"]

    def clean_received_on(self) -> datetime:
        """The beginning of the day in the operator's time zone; for today, the present moment."""
        day: date = self.cleaned_data["received_on"]
        if day > timezone.localdate():
            raise forms.ValidationError(_("This day is in the future."), code="future")
        return min(timezone.make_aware(datetime.combine(day, clock_time.min)), timezone.now())

    def clean(self) -> dict[str, Any]:
        """Put the id in the place of a name. An id that nobody has is left to the verb: the person may be erased."""
        data: dict[str, Any] = super().clean() or {}
        tenant, words = data.get("tenant"), data.get("user_id", "")
        # A name would say who is there.
        may_name = self.operator.has_perm("memories.view_enduser")
        if tenant and words.strip() and may_name and not EndUser.objects.called(tenant, words).exists():
            person, why_not = find_by_name(tenant, words.strip())
            if person:
                data["user_id"] = person.external_id
            elif why_not:
                self.add_error("user_id", why_not)
        return data

    def given(self) -> dict[str, Any]:
        """The arguments of the verb."""
        data = dict(self.cleaned_data)
        data["received_at"] = data.pop("received_on")
        if self.person:
            data |= {"tenant": self.person.tenant, "user_id": self.person.external_id}
        return data

    def refuse(self, error: MemoryHubError) -> None:
        """Beside the field that it is about, where it is about one."""
        if isinstance(error, NotFound) and "user_id" in self.fields:
            self.add_error("user_id", _UNKNOWN)
        elif isinstance(error, InvalidInput) and error.faults:
            for fault in error.faults:
                name = fault.pointer.strip("/").replace("received_at", "received_on")
                self.add_error(name if name in self.fields else None, fault.detail)
        else:
            self.add_error(None, message_of(error))


class IntakeViews(RecordPage):
    """A page of cases with a button New case."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.add_privacycase")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
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
                messages.success(request, _("The case is open. Next: verify the requester's identity."))
                return HttpResponseRedirect(f"{url_of(case)}#next")
        shown = {
            "title": _("New privacy case"),
            "opts": self.opts,
            "form": form,
            "person": person,
            "open_cases": cases_of(person).unanswered(timezone.now()) if person else [],
            "approvers": approvers(str(actor_of(request).id), person.tenant if person else None, now=timezone.now()),
            "types": [(one.label, TYPES_SAY[one.value]) for one in CaseType],
        }
        return render_page(request, "memories/case_add.html", status=status, **shown)


def _person_of(request: HttpRequest) -> EndUser | None:
    """The person that the address names, if any. Errors: Http404, also for a person whom the operator may not see."""
    if "person" not in request.GET:
        return None
    people = within(request.user, EndUser.objects.themselves().select_related("tenant"))
    person: EndUser | None = people.filter(pk=parse_uuid(request.GET["person"])).first()
    if person is None or not request.user.has_perm("memories.view_enduser"):
        raise Http404
    return person
