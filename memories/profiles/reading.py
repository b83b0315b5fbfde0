"""The document of a person by one profile: read from the facts of the moment, so that it is never out of date."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memories import conf
from memories.models import EndUser, Fact, FactEvidence, ProfileSchema
from memories.models.memories import visibility
from memories.models.memories.visibility import Viewer
from memories.profiles.fields import Field, ValueRefused
from memories.profiles.schemas import fields_of


@dataclass(frozen=True)
class FieldValue:
    """What a fact says of a field: its value, or None and why the schema does not allow it (`refused`)."""

    field: Field
    fact: Fact
    value: Any = None
    refused: str = ""
    evidence: list[FactEvidence] = dataclasses.field(default_factory=list)


@dataclass(frozen=True)
class PersonProfile:
    """A person's profile: the values of the fields that are known and valid, and those that are not served."""

    schema: ProfileSchema
    values: list[FieldValue] = dataclasses.field(default_factory=list)
    invalid: list[FieldValue] = dataclasses.field(default_factory=list)

    @property
    def document(self) -> dict[str, Any]:
        """As the schema has it; what is not known is not in it."""
        found: dict[str, Any] = {}
        for one in self.values:
            *group, name = one.field.path
            (found.setdefault(group[0], {}) if group else found)[name] = one.value
        return found

    @property
    def missing(self) -> list[str]:
        """The required fields without a value, by their names with periods between them."""
        known = {one.field.path for one in self.values}
        return [one.pointer for one in fields_of(self.schema) if one.is_required and one.path not in known]

    @property
    def revision(self) -> str:
        """A hash of what it says and rests on: the same one while nothing of it changes."""
        told = (*self.values, *self.invalid)
        rows = [(one.field.pointer, str(one.fact.pk), one.fact.version, one.refused) for one in told]
        stated = json.dumps([self.schema.version, self.document, rows], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(stated.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def read_profile(
    person: EndUser, row: ProfileSchema, viewer: Viewer, *, now: datetime, with_evidence: bool = False
) -> PersonProfile:
    """The profile as this viewer may see it. One statement, and one more with the evidence."""
    return read_profiles(person, [row], viewer, now=now, with_evidence=with_evidence)[0]


def read_profiles(
    person: EndUser, rows: Iterable[ProfileSchema], viewer: Viewer, *, now: datetime, with_evidence: bool = False
) -> list[PersonProfile]:
    """The same of several."""
    of_rows = [(row, fields_of(row)) for row in rows]
    keys = [one.key for _, fields in of_rows for one in fields]
    found = _current(person, keys, viewer, now=now) if keys else {}
    if with_evidence:
        evidence = FactEvidence.objects.filter(fact__in=[fact.pk for fact in found.values()]).select_related("session")
        cited: dict[Any, list[FactEvidence]] = {}
        for one in evidence.order_by("session", "turn_number"):
            cited.setdefault(one.fact_id, []).append(one)
    else:
        cited = {}
    return [_profile(row, fields, found, cited) for row, fields in of_rows]


def read_for_staff(
    person: EndUser, rows: Iterable[ProfileSchema], *, now: datetime, with_evidence: bool = False
) -> list[PersonProfile]:
    """These profiles as the agents are told them for whom they are: of one agent's what it alone remembers, too."""
    of_agents: dict[str, list[ProfileSchema]] = {}
    for row in rows:
        of_agents.setdefault(row.agent_id, []).append(row)
    found = [
        one
        for agent_id, some in of_agents.items()
        for one in read_profiles(person, some, Viewer(agent_id), now=now, with_evidence=with_evidence)
    ]
    return sorted(found, key=lambda profile: profile.schema.name)


def _current(person: EndUser, keys: list[str], viewer: Viewer, *, now: datetime) -> dict[str, Fact]:
    """By key the fact that holds: an operator's word before others, then what was said last."""
    least = conf.rules(person.tenant).served_confidence
    served = visibility.served_facts(viewer, person_id=person.pk, least_confidence=least, now=now)
    facts = Fact.objects.of(person.tenant, person).filter(*served.values()).latest_for(viewer.agent_id)
    # What was corrected without a value says nothing that a field could have; it keeps others from its place.
    facts = facts.filter(key__in=keys).order_by("binding", "last_confirmed_at", "created_at", "pk")
    return {fact.key: fact for fact in facts}


def _profile(
    row: ProfileSchema, fields: Iterable[Field], found: Mapping[str, Fact], cited: Mapping[Any, list[FactEvidence]]
) -> PersonProfile:
    values, invalid = [], []
    for one in fields:
        if (fact := found.get(one.key)) is None or not fact.value:
            continue
        evidence = cited.get(fact.pk, [])
        try:
            values.append(FieldValue(one, fact, one.read(fact.value), evidence=evidence))
        except ValueRefused as error:
            invalid.append(FieldValue(one, fact, refused=str(error), evidence=evidence))
    return PersonProfile(row, values, invalid)


def statement_of(field: Field, value: Any) -> str:
    """What a fact says that somebody gives the field this value by hand."""
    return f"{field.label} ({field.profile}): {field.told(value)}"
