"""Rotating a key: the successor is shown once, in the answer; the old key goes on until a chosen moment."""

from datetime import datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from memories import curation
from memories.admin.page import RecordPage, VerbForm
from memories.audit import Actor
from memories.models import APIKey

# Minutes from now until the old key is refused.
ENDS = (
    ("0", gettext_lazy("At once")),
    ("60", gettext_lazy("In an hour")),
    ("1440", gettext_lazy("In a day")),
    ("10080", gettext_lazy("In a week")),
    ("43200", gettext_lazy("In 30 days")),
)


class RotateForm(VerbForm):
    needs_fresh_password = True
    # What the answer shows, and nothing keeps.
    successor: APIKey
    plaintext: str
    ends = forms.ChoiceField(
        label=gettext_lazy("This key is refused"),
        choices=ENDS,
        initial="1440",
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy("Long enough to change the application over."),
    )

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        ends_at = _ends_at(self.cleaned_data, now)
        self.successor, self.plaintext = curation.rotate_api_key(key=self.record, ends_at=ends_at, actor=actor, now=now)
        return _("The key is rotated.")


class PutOffForm(VerbForm):
    ends = forms.ChoiceField(
        label=gettext_lazy("This key is refused"), choices=ENDS[1:], initial="1440", widget=UnfoldAdminSelectWidget
    )
    # When it would have ended, as the operator read it.
    expected = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, data: Any = None, *, record: APIKey) -> None:
        super().__init__(data, record=record)
        self.fields["expected"].initial = _told(record)

    def see(self, record: APIKey) -> None:
        super().see(record)
        self.data = {**self.data.dict(), "expected": _told(record)}  # type: ignore[attr-defined]

    def clean_expected(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self.cleaned_data["expected"])
        except ValueError:
            return None

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        ends_at, expected = _ends_at(self.cleaned_data, now), self.cleaned_data["expected"]
        curation.put_off_end(key=self.record, ends_at=ends_at, expected=expected, actor=actor, now=now)
        return _("The key goes on for longer.")


class RotatablePage(RecordPage):
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"rotate": RotateForm, "put_off": PutOffForm}

    def answer(self, request: HttpRequest, form: VerbForm, done: str) -> HttpResponse:
        if isinstance(form, RotateForm):
            return self.shown(request, form.successor, form.plaintext)
        return super().answer(request, form, done)

    def shown(self, request: HttpRequest, key: APIKey, plaintext: str) -> TemplateResponse:
        """The plaintext in the answer itself: no redirect could carry it unstored."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("The new API key"),
            "opts": self.opts,
            "key": key,
            "plaintext": plaintext,
        }
        return TemplateResponse(request, "memories/key_shown.html", context, headers={"Cache-Control": "no-store"})


def _ends_at(data: dict[str, Any], now: datetime) -> datetime:
    return now + timedelta(minutes=int(data["ends"]))


def _told(key: APIKey) -> str:
    return key.expires_at.isoformat() if key.expires_at else ""
