"""The forms that a tenant defines of its people, on the person's own page: what is known, and a field corrected there.

A value is a fact, so all that holds for facts on the page holds for it.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.utils.translation import gettext as _

from memories.curation.profile.fields import write_profile_fields
from memories.exceptions import InvalidInput, MemoryHubError, NotFound
from memories.invisible import strip_invisible
from memories.models import EndUser, Fact, ProfileSchema
from memories.models.people.tenants import PersonMay
from memories.person_page import reading, words
from memories.person_page.frame import Visit, failure, require, visited
from memories.profiles import Field, FieldValue, PersonProfile, fields_of, read_for_staff
from memories.profiles.fields import BOOLEAN, LIST


@dataclass(frozen=True)
class ShownField:
    """A field with what is known of it; `told` is the value in words."""

    profile: str
    field: Field
    one: reading.ShownFact | None = None
    told: str = ""
    refused: str = ""


@dataclass(frozen=True)
class ShownProfile:
    """A form with its fields."""

    title: str
    description: str
    fields: list[ShownField]

    @property
    def known(self) -> list[ShownField]:
        return [one for one in self.fields if one.one]

    @property
    def unknown(self) -> list[ShownField]:
        return [one for one in self.fields if not one.one]


def profiles_of(visit: Visit) -> list[ShownProfile]:
    """The tenant's forms, as their agents are told them: also what one agent alone remembers."""
    profiles = read_for_staff(visit.person, _defined(visit.person), now=visit.now)
    known = [one.fact.pk for profile in profiles for one in (*profile.values, *profile.invalid)]
    facts = {fact.pk: fact for fact in reading.facts_of(visit.person, known)} if known else {}
    return [_shown(profile, facts) for profile in profiles]


def fact_ids(profiles: list[ShownProfile]) -> list[Any]:
    """The facts that are shown in these forms."""
    return [shown.one.fact.pk for profile in profiles for shown in profile.known if shown.one]


@visited("GET")
def field(visit: Visit, name: str, pointer: str) -> HttpResponse:
    profile, shown = _field_of(visit, name, pointer)
    return _page(visit, profile, shown)


@visited("POST")
def correct_field(visit: Visit, name: str, pointer: str) -> HttpResponseBase:
    """The person's own words bind, as an operator's do. What the form does not take is shown again with the reason."""
    require(visit, PersonMay.CORRECT)
    profile, shown = _field_of(visit, name, pointer)
    given = [text for one in visit.request.POST.getlist("value") if (text := strip_invisible(one).strip())]
    value: Any = given if len(given) > 1 else "".join(given)
    if not value:
        return _page(visit, profile, shown, failed="empty_value")
    try:
        changed = write_profile_fields(
            end_user=visit.person,
            schema=profile.schema,
            values={shown.field.pointer: value},
            actor=visit.actor,
            now=visit.now,
            expected_revision=visit.request.POST.get("revision", ""),
        )
    except InvalidInput as error:
        return _page(visit, profile, shown, given=given, failed_text=error.faults[0].detail)
    except MemoryHubError as error:
        return _page(visit, profile, shown, given=given, failed=error.code, status=error.status)
    return visit.back("person-page", said="corrected" if changed else "unchanged")


def _defined(person: EndUser) -> Any:
    return ProfileSchema.objects.present().filter(tenant=person.tenant)


def _field_of(visit: Visit, name: str, pointer: str) -> tuple[PersonProfile, ShownField]:
    """Errors: NotFound."""
    for profile in read_for_staff(visit.person, _defined(visit.person).filter(name=name), now=visit.now):
        known = [one.fact.pk for one in (*profile.values, *profile.invalid) if one.field.pointer == pointer]
        facts = {fact.pk: fact for fact in reading.facts_of(visit.person, known, most=reading.ALL_CITED)}
        found = [one for one in _shown(profile, facts).fields if one.field.pointer == pointer]
        if found:
            return profile, found[0]
    raise NotFound


def _shown(profile: PersonProfile, facts: dict[Any, Fact]) -> ShownProfile:
    row = profile.schema
    known = {value.field.key: value for value in (*profile.values, *profile.invalid) if value.fact.pk in facts}
    shown = []
    for field in fields_of(row):
        if value := known.get(field.key):
            if value.refused:
                told = value.fact.value
            elif isinstance(value.value, bool):
                told = _("Yes") if value.value else _("No")
            else:
                told = field.spoken(value.value)
            shown.append(ShownField(row.name, field, reading.shown(facts[value.fact.pk]), told, value.refused))
        else:
            shown.append(ShownField(row.name, field))
    return ShownProfile(row.schema.get("title") or row.name, row.schema.get("description", ""), shown)


def _page(
    visit: Visit,
    profile: PersonProfile,
    shown: ShownField,
    *,
    given: list[str] | None = None,
    failed: str = "",
    failed_text: str = "",
    status: int | None = None,
) -> HttpResponse:
    found = next((one for one in profile.values if one.field.pointer == shown.field.pointer), None)
    values = given if given is not None else _entered(shown, found)
    more: dict[str, Any] = {"failed": failed_text or failure(failed)} if failed or failed_text else {}
    if more:
        more["status"] = status or HTTPStatus.BAD_REQUEST
    choices: list[tuple[str, Any]] = [(choice, choice) for choice in shown.field.choices]
    if shown.field.kind == BOOLEAN:
        choices = [("true", words.YES), ("false", words.NO)]
    return visit.page(
        "field",
        shown=shown,
        one=shown.one,
        title=profile.schema.schema.get("title") or profile.schema.name,
        revision=profile.revision,
        kind=shown.field.kind,
        choices=choices,
        chosen=values,
        entered="\n".join(values),
        **more,
    )


def _entered(shown: ShownField, found: FieldValue | None) -> list[str]:
    """What the form begins with: the value; of one that is not allowed any more its text."""
    if found is None:
        return [shown.told] if shown.told else []
    if shown.field.kind == LIST:
        return [str(one) for one in found.value]
    return [shown.field.text(found.value)]
