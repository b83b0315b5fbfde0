"""The verbs on a privacy case as forms: each carries the version that was read."""

from datetime import date
from typing import Any

from django import forms
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminSelectWidget

from memories.admin.cases.wording import POLICIES_SAY
from memories.admin.site.fields import DayInput, LineField, TextField
from memories.admin.site.page import VerbForm, VersionForm, url_of
from memories.exceptions import MemoryHubError
from memories.models import EXPORTING, CaseType, IdentityCheck, PrivacyCase, RefusalGround, ReturnPolicy
from memories.privacy import cases
from memories.privacy.exporting import language_of

LONGEST_TEXT = 2000
LONGEST_ID = 255


class CaseForm(VersionForm):
    """A verb of `cases` that takes the case, its version and the fields of the form."""

    def arguments(self) -> dict[str, Any]:
        given = dict(self.cleaned_data)
        return {"case_id": self.record.pk, "expected_version": given.pop("version"), **given}

    def refuse(self, error: MemoryHubError) -> None:
        """Beside the field that it is about, where it is about one."""
        at = {fault.pointer.strip("/"): fault.detail for fault in getattr(error, "faults", ())}
        if at and set(at) <= set(self.fields):
            for name, detail in at.items():
                self.add_error(name, detail)
        else:
            super().refuse(error)

    def leads_to(self) -> str:
        """To the next step, where the keyboard focus goes."""
        return f"{url_of(self.record)}#next"


class VerifyForm(CaseForm):
    calls, done = staticmethod(cases.verify_identity), gettext_lazy("The identity check is recorded.")
    how = forms.ChoiceField(
        label=gettext_lazy("How you verified the requester's identity"),
        choices=[(one.value, one.label) for one in IdentityCheck if one != IdentityCheck.SHELL],
        widget=UnfoldAdminRadioSelectWidget,
        help_text=gettext_lazy("Record only the method. Never keep a copy, number or photo of a document."),
    )


class ScopeForm(CaseForm):
    calls, done = staticmethod(cases.scope_case), gettext_lazy("The stored data has been counted.")
    policy = forms.ChoiceField(
        label=gettext_lazy("If this id is used again"),
        choices=[(one.value, POLICIES_SAY[one.value]) for one in ReturnPolicy],
        widget=UnfoldAdminRadioSelectWidget,
    )

    def __init__(self, data: Any = None, *, record: PrivacyCase) -> None:
        super().__init__(data, record=record)
        if record.type != CaseType.ERASURE:
            # Only an erased person can come back.
            self.fields["policy"].widget = forms.HiddenInput()
            self.fields["policy"].required = False

    def values_of(self, record: PrivacyCase) -> dict[str, Any]:
        return {**super().values_of(record), "policy": record.policy}

    def clean_policy(self) -> str:
        chosen: str = self.cleaned_data["policy"]
        return chosen or self.record.policy


class ApproveCaseForm(CaseForm):
    needs_permissions = ("memories.approve_privacycase",)
    needs_fresh_password = True
    calls, done = staticmethod(cases.approve_case), gettext_lazy("The erasure is approved and begins.")
    typed_id = LineField(
        label=gettext_lazy("Type the external id of the person"),
        max_length=LONGEST_ID,
        help_text=gettext_lazy("Type it to confirm."),
        strip=False,
    )


class RunForm(CaseForm):
    calls, done = staticmethod(cases.run_case), gettext_lazy("Work on this case has started.")
    language = forms.ChoiceField(
        label=gettext_lazy("Language of the file"),
        required=False,
        choices=settings.LANGUAGES,
        widget=UnfoldAdminSelectWidget,
    )

    def __init__(self, data: Any = None, *, record: PrivacyCase) -> None:
        super().__init__(data, record=record)
        if record.type not in EXPORTING:
            del self.fields["language"]

    def values_of(self, record: PrivacyCase) -> dict[str, Any]:
        person = record.find_person()
        return {**super().values_of(record), "language": record.language or (language_of(person) if person else "en")}


class HoldForm(CaseForm):
    calls, done = staticmethod(cases.hold_case), gettext_lazy("The case is on hold until an operator releases it.")
    reason = TextField(label=gettext_lazy("Reason for the hold"), max_length=LONGEST_TEXT, rows=2)
    review_on = forms.DateField(
        label=gettext_lazy("Review on"),
        widget=DayInput,
        help_text=gettext_lazy("A hold does not stop the clock. The due date stays the same."),
    )

    def clean_review_on(self) -> date:
        day: date = self.cleaned_data["review_on"]
        if day <= timezone.localdate():
            raise forms.ValidationError(_("Choose a day in the future."), code="past")
        return day


class ReleaseForm(CaseForm):
    calls, done = (
        staticmethod(cases.release_case),
        gettext_lazy("The hold is lifted. The case continues where it stopped."),
    )


class RefuseForm(CaseForm):
    calls, done = staticmethod(cases.refuse_case), gettext_lazy("The request is refused and the case closed.")
    ground = forms.ChoiceField(
        label=gettext_lazy("Ground"), choices=RefusalGround.choices, widget=UnfoldAdminSelectWidget
    )
    reason = TextField(
        label=gettext_lazy("Reason"),
        max_length=LONGEST_TEXT,
        rows=2,
        help_text=gettext_lazy("Your answer to the requester, including their right to complain to an authority."),
    )


class ExtendForm(CaseForm):
    calls, done = staticmethod(cases.extend_case), gettext_lazy("The due date is extended.")
    months = forms.TypedChoiceField(
        label=gettext_lazy("Extend by"),
        choices=[(1, gettext_lazy("One month")), (2, gettext_lazy("Two months"))],
        coerce=int,
        widget=UnfoldAdminSelectWidget,
    )
    reason = TextField(
        label=gettext_lazy("Reason"),
        max_length=LONGEST_TEXT,
        rows=2,
        help_text=gettext_lazy("The law accepts two reasons: the request is complex, or there are many requests."),
    )
    notice_on = forms.DateField(
        label=gettext_lazy("Requester informed on"),
        widget=DayInput,
        help_text=gettext_lazy("Within one month of receiving the request."),
    )


class CompleteForm(CaseForm):
    calls, done = staticmethod(cases.complete_case), gettext_lazy("The case is completed.")
    outcome = TextField(label=gettext_lazy("What was done"), max_length=LONGEST_TEXT, rows=3)
    told = TextField(
        label=gettext_lazy("Recipients informed"),
        max_length=LONGEST_TEXT,
        rows=2,
        required=False,
        help_text=gettext_lazy("The organisations that received the data. Do not name people."),
    )


class InformForm(CaseForm):
    calls, done = staticmethod(cases.tell_recipients), gettext_lazy("The informed recipients are recorded.")
    told = TextField(
        label=gettext_lazy("Recipients informed"),
        max_length=LONGEST_TEXT,
        rows=2,
        help_text=gettext_lazy("The organisations that received the data. Do not name people."),
    )

    def values_of(self, record: PrivacyCase) -> dict[str, Any]:
        return {**super().values_of(record), "told": record.told}


FORMS: dict[str, type[VerbForm]] = {
    "verify": VerifyForm,
    "scope": ScopeForm,
    "approve": ApproveCaseForm,
    "run": RunForm,
    "hold": HoldForm,
    "release": ReleaseForm,
    "refuse": RefuseForm,
    "extend": ExtendForm,
    "complete": CompleteForm,
    "tell": InformForm,
}
