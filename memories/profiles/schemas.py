"""The profiles of a tenant, and their fields by key."""

from collections.abc import Iterable, Mapping
from typing import Any

from memories.models import ProfileSchema, Tenant
from memories.models.memories.facts import is_field_key
from memories.profiles.fields import Field


def schemas_for(tenant: Tenant, agent_id: str = "") -> list[ProfileSchema]:
    """Those that an agent fills and is served: those for every agent, and its own."""
    return list(ProfileSchema.objects.present().filter(tenant=tenant).for_agent(agent_id))


def fields_of(row: ProfileSchema) -> list[Field]:
    """In the order of the schema; those of a group follow each other."""
    return list(_fields(row.name, row.schema, row.lives, (), ()))


def fields_for(rows: Iterable[ProfileSchema]) -> dict[str, Field]:
    """The fields of these profiles by the key of their facts."""
    return {field.key: field for row in rows for field in fields_of(row)}


def field_of(tenant: Tenant, key: str) -> Field | None:
    """The field whose values are facts with this key; None if there is none, or none any more."""
    if not is_field_key(key):
        return None
    name = key.split(".")[1]
    row = ProfileSchema.objects.present().filter(tenant=tenant, name=name).first()
    return fields_for([row]).get(key) if row else None


def _fields(
    name: str, schema: Mapping[str, Any], lives: Mapping[str, int], path: tuple[str, ...], titles: tuple[str, ...]
) -> Iterable[Field]:
    required = schema.get("required", ())
    for field, spec in schema["properties"].items():
        place, named = (*path, field), (*titles, spec.get("title") or field)
        if spec["type"] == "object":
            yield from _fields(name, spec, lives, place, named)
        else:
            yield Field(name, place, spec, named, lives.get(".".join(place), 0), field in required)
