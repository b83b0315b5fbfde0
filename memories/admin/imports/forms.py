"""The forms of imports: uploading a file, starting it for whom its authors are, pausing, going on, undoing."""

from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldBooleanSwitchWidget

from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.fields import AgentField, LineField, PersonField, TenantField, check_zone
from memories.admin.site.mentions import mention
from memories.admin.site.page import VerbForm
from memories.audit import Actor
from memories.curation.imports.verbs import AUTO, ImportOptions, pause, resume, undo
from memories.exceptions import InvalidInput, MemoryHubError
from memories.models import Import, ImportSource

_LONGEST_ID = 255
SOURCES = [(AUTO, gettext_lazy("Recognize it")), *ImportSource.choices]


class UploadForm(forms.Form):
    """A file, and how to read it."""

    tenant = TenantField()
    file = forms.FileField(
        label=_("File"),
        widget=forms.ClearableFileInput(attrs={"class": "imports-drop"}),
        help_text=_("An export as it comes: its ZIP, or one of its files. You can drop it here."),
    )
    user = PersonField(
        label=_("End user"),
        required=False,
        max_length=_LONGEST_ID,
        help_text=_("Whose it is, where the file names nobody. You can also say it later."),
    )
    source = forms.ChoiceField(label=_("Source"), choices=SOURCES, initial=AUTO, widget=UnfoldAdminSelectWidget)
    agent = AgentField(
        label=_("Agent"),
        required=False,
        max_length=_LONGEST_ID,
        help_text=_("For conversations and memory files. Leave it empty for none."),
    )
    zone = LineField(
        label=_("Time zone"),
        required=False,
        max_length=64,
        validators=[check_zone],
        help_text=_("Of times that name none, such as Europe/Berlin. Empty: UTC."),
    )
    vouched = forms.BooleanField(
        label=_("Believe what operators said there"),
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text=_(
            "Only of an export of a hub that you know: facts stay confirmed and locked, and groups come with it. "
            "Whoever handed it in could have changed it."
        ),
    )

    def __init__(self, request: HttpRequest) -> None:
        posted = request.method == "POST"
        super().__init__(request.POST if posted else None, request.FILES if posted else None)
        self.fields["tenant"].queryset = tenants_of(request.user)  # type: ignore[attr-defined]

    def options(self) -> ImportOptions:
        given = self.cleaned_data
        return ImportOptions(
            source=given["source"],
            user_id=given["user"],
            agent_id=given["agent"].lower(),
            zone=given["zone"],
            vouched=given["vouched"],
            name=given["file"].name or "",
        )


def people_in(record: Import) -> list[dict[str, Any]]:
    """Who is named in the file, as the dry run found; where none was made, and somebody must be named, nobody is."""
    found: list[dict[str, Any]] = record.preview.get("people", [])
    return found or ([{"name": ""}] if record.failure == "user_needed" else [])


class StartForm(VerbForm):
    """Whom each author of the file becomes: a field for each that the dry run found; an empty one leaves them out."""

    record: Import
    done = _("%(import)s has begun. A worker carries it out.")

    def __init__(self, data: Any = None, *, record: Import) -> None:
        self._names = [one["name"] for one in people_in(record)]
        super().__init__(data, record=record)
        for place, name in enumerate(self._names):
            label = _("End user for “%(name)s”") if name else _("End user, where nobody is named")
            self.fields[f"author_{place}"] = LineField(
                label=str(label) % {"name": name}, required=False, max_length=_LONGEST_ID
            )

    def values_of(self, record: Import) -> dict[str, Any]:
        options = record.options
        authors = options.get("authors", {})
        given = [authors.get(name, name) if name else options.get("user_id", "") for name in self._names]
        return {f"author_{place}": value for place, value in enumerate(given)}

    def authors(self) -> list[Any]:
        """The field of each, in the order of the preview."""
        return [self[f"author_{place}"] for place in range(len(self._names))]

    def refuse(self, error: MemoryHubError) -> None:
        if isinstance(error, InvalidInput) and error.faults:
            self.add_error(None, error.faults[0].detail)
        else:
            super().refuse(error)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {name: self.cleaned_data[f"author_{place}"] for place, name in enumerate(self._names)}
        user_id = given.pop("", self.record.options.get("user_id", ""))
        resume(import_id=self.record.pk, tenant=None, actor=actor, now=now, user_id=user_id, authors=given)
        return str(self.done) % {"import": mention(self.record)}


class _PlainForm(VerbForm):
    def arguments(self) -> dict[str, Any]:
        return {"import_id": self.record.pk, "tenant": None}


class PauseForm(_PlainForm):
    calls = staticmethod(pause)
    done = _("%(import)s rests. What is stored stays.")


class ResumeForm(_PlainForm):
    calls = staticmethod(resume)
    done = _("%(import)s continues.")


class UndoForm(_PlainForm):
    calls = staticmethod(undo)
    done = _("%(import)s is being taken back. A worker carries it out.")
