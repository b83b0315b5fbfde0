"""A person's profiles by the tenant's own schemas: what is known with its evidence, and a form made from the schema."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminSelectWidget

from memories.admin.people.profile import ProfileViews
from memories.admin.site import reasons
from memories.admin.site.fields import DayInput, LineField, LinesField, TextField
from memories.admin.site.page import VerbForm, address, require, show_again
from memories.admin.site.reasons import ReasonField
from memories.audit import Actor
from memories.curation.profile.fields import write_profile_fields
from memories.curation.tenants.profile_schemas import find_profile_schema, profile_schema
from memories.exceptions import InvalidInput, MemoryHubError, NotFound
from memories.models import EndUser, ProfileSchema
from memories.profiles import Field, FieldValue, PersonProfile, fields_of, read_for_staff
from memories.profiles.fields import BOOLEAN, CHOICE, DATE, INTEGER, LIST, LONGEST_VALUE, MOST_ITEMS, TEXT

# Of a text that has a line in the form; a longer one has several.
ONE_LINE = 120
_YES_OR_NO = (("", _("Not known")), ("true", _("Yes")), ("false", _("No")))
_PREFIX = "field."


class ProfileFieldsForm(VerbForm):
    """All fields of one profile of a person. Its fields are made when it is known which profile it is."""

    needs_permissions = ("memories.view_fact",)
    profile = forms.CharField(widget=forms.HiddenInput, max_length=24)
    revision = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)
    reason = ReasonField(*reasons.CORRECT)
    record: EndUser

    def __init__(self, data: Any = None, *, record: Any) -> None:
        super().__init__(data, record=record)
        name = data.get("profile", "") if data is not None else ""
        row = find_profile_schema(record.tenant, name)
        if row:
            self.look_at(*read_for_staff(record, [row], now=timezone.now()))

    def look_at(self, shown: PersonProfile) -> None:
        """Make the fields, and begin with the profile as it is."""
        self.shown = shown
        made = {f"{_PREFIX}{field.pointer}": _form_field(field) for field in fields_of(shown.schema)}
        last = {name: self.fields.pop(name) for name in ("reason",) if name in self.fields}
        self.fields.update({**made, **last})
        # Of a value that is not allowed any more its text.
        values: dict[str, Any] = {
            known.field.pointer: known.fact.value for known in shown.invalid if known.field.kind not in (CHOICE, LIST)
        }
        values |= {
            known.field.pointer: known.value if isinstance(known.value, list) else known.field.text(known.value)
            for known in shown.values
        }
        initial = {f"{_PREFIX}{name}": value for name, value in values.items()}
        self.initial = {"profile": shown.schema.name, "revision": shown.revision, **initial}

    def see(self, record: Any) -> None:
        self.record = record
        if self.is_bound and hasattr(self, "shown"):
            self.look_at(*read_for_staff(record, [self.shown.schema], now=timezone.now()))
            show_again(self)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        if not hasattr(self, "shown"):
            raise NotFound
        changed = [name for name in self.changed_data if name.startswith(_PREFIX)]
        values = {name.removeprefix(_PREFIX): self.cleaned_data[name] or None for name in changed}
        number = write_profile_fields(
            end_user=self.record,
            schema=self.shown.schema,
            values=values,
            actor=actor,
            now=now,
            reason=self.cleaned_data["reason"],
            expected_revision=self.cleaned_data["revision"],
        )
        if not number:
            return gettext("Nothing was changed.")
        saved = gettext("The profile “%(name)s” is saved. Jobs and applications can no longer change these fields.")
        return saved % {"name": self.shown.schema.name}

    def refuse(self, error: MemoryHubError) -> None:
        if not isinstance(error, InvalidInput):
            super().refuse(error)
        for fault in error.faults:
            name = _PREFIX + fault.pointer.removeprefix("/").replace("/", ".")
            self.add_error(name if name in self.fields else None, fault.detail)

    def leads_to(self) -> str:
        return address_of_profile(self.record.pk, self.cleaned_data["profile"])


@dataclass(frozen=True)
class ShownField:
    """A field with what is known of it."""

    field: Field
    known: FieldValue | None
    told: str


class OwnProfileViews(ProfileViews):
    """A page of people with a page for each profile that their tenant defined."""

    verbs: ClassVar[dict[str, type[VerbForm]]] = {**ProfileViews.verbs, "write_fields": ProfileFieldsForm}

    def also_shown(self, person: EndUser) -> dict[str, Any]:
        return {"own_profiles": own_profiles(person)}

    @address("<uuid:object_id>/profiles/<str:name>/", "own_profile")
    def own_profile_view(self, request: HttpRequest, object_id: uuid.UUID, name: str) -> HttpResponse:
        person = self.find(request, str(object_id), may_change=False)
        require(request, *ProfileFieldsForm.needs_permissions)
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        return self._show_own(super().show(request, person), name)

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The page of the person; after refused fields, the page of their profile."""
        page = super().show(request, record, tried=tried, status=status)
        if isinstance(tried, ProfileFieldsForm) and hasattr(tried, "shown"):
            return self._show_own(page, tried.shown.schema.name)
        return page

    def _show_own(self, page: TemplateResponse, name: str) -> TemplateResponse:
        """Turn the page of a person into that of one of these profiles."""
        shown = page.context_data or {}
        person: EndUser = shown["original"]
        try:
            row = profile_schema(person.tenant, name)
        except NotFound:
            raise Http404 from None
        (profile,) = read_for_staff(person, [row], now=timezone.now(), with_evidence=True)
        form = shown["forms"].get("write_fields")
        if form is not None and not form.is_bound:
            form.look_at(profile)
        page.template_name = "memories/person_own_profile.html"
        known = {one.field.key: one for one in (*profile.values, *profile.invalid)}
        page.context_data = {
            **shown,
            "schema": row,
            "profile": profile,
            "form": form,
            "rows": [_shown(one, known.get(one.key)) for one in fields_of(row)],
        }
        return page


def own_profiles(person: EndUser) -> list[PersonProfile]:
    """Those of the person's tenant."""
    return read_for_staff(person, ProfileSchema.objects.present().filter(tenant=person.tenant), now=timezone.now())


def address_of_profile(person: uuid.UUID, name: str) -> str:
    return reverse("admin:memories_enduser_own_profile", args=[person, name])


def _shown(field: Field, known: FieldValue | None) -> ShownField:
    if known is None:
        return ShownField(field, None, "")
    if known.refused:
        text = known.fact.value
    elif isinstance(known.value, bool):
        text = gettext("Yes") if known.value else gettext("No")
    else:
        text = field.spoken(known.value)
    return ShownField(field, known, text)


def _form_field(field: Field) -> forms.Field:
    """An input for the field: a select for choices, the browser's own for days, a line for each of a list."""
    told: dict[str, Any] = {"label": field.label}
    if field.description:
        told["help_text"] = field.description
    return _MAKERS.get(field.kind, _text)(field, told)


def _text(field: Field, told: dict[str, Any]) -> forms.Field:
    longest = int(field.spec.get("maxLength", LONGEST_VALUE))
    if longest > ONE_LINE and field.kind == TEXT:
        return TextField(rows=2, max_length=longest, required=False, **told)
    made = LineField(max_length=longest, required=False, **told)
    if field.kind != TEXT:
        made.widget.attrs["inputmode"] = "numeric" if field.kind == INTEGER else "decimal"
    return made


def _choice(field: Field, told: dict[str, Any]) -> forms.Field:
    choices = [("", _("Not known")), *((one, one) for one in field.choices)] if field.choices else _YES_OR_NO
    return forms.ChoiceField(choices=choices, widget=UnfoldAdminSelectWidget, required=False, **told)


def _list(field: Field, told: dict[str, Any]) -> forms.Field:
    if field.item_kind != CHOICE:
        return LinesField(longest=LONGEST_VALUE, most=MOST_ITEMS, **told)
    choices = [(one, one) for one in field.choices]
    return forms.MultipleChoiceField(
        choices=choices, widget=UnfoldAdminCheckboxSelectMultipleWidget, required=False, **told
    )


_MAKERS: Mapping[str, Callable[[Field, dict[str, Any]], forms.Field]] = {
    CHOICE: _choice,
    BOOLEAN: _choice,
    LIST: _list,
    DATE: lambda _field, told: LineField(widget=DayInput, required=False, **told),
}
