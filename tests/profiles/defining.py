"""A profile for tests, and how tests read it of a person."""

from typing import Any

from memories.curation.tenants.profile_schemas import put_profile_schema
from memories.models import EndUser, ProfileSchema, Tenant
from memories.models.memories.visibility import Viewer
from memories.profiles import PersonProfile, read_profile
from tests.factories import COMMAND, NOW

TRAVEL: dict[str, Any] = {
    "type": "object",
    "title": "Travel",
    "properties": {
        "home_airport": {"type": "string", "title": "Home airport", "maxLength": 40},
        "seat": {"type": "string", "enum": ["aisle", "window"], "description": "On flights"},
        "children": {"type": "integer", "minimum": 0, "maximum": 20},
        "budget": {"type": "number"},
        "vegetarian": {"type": "boolean", "x-category": "constraint"},
        "passport_until": {"type": "string", "format": "date"},
        "languages": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "address": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}},
    },
    "required": ["home_airport"],
}


def define(tenant: Tenant, schema: Any = TRAVEL, name: str = "travel", **over: Any) -> ProfileSchema:
    given = {"actor": COMMAND, "now": NOW, **over}
    return put_profile_schema(tenant=tenant, name=name, schema=schema, **given)[0]


def without(*names: str, **more: Any) -> dict[str, Any]:
    """The schema of TRAVEL without these fields, and with others."""
    kept = {name: spec for name, spec in TRAVEL["properties"].items() if name not in names}
    return {"type": "object", "properties": {**kept, **more}}


def profile(person: EndUser, name: str = "travel", agent_id: str = "") -> PersonProfile:
    row = ProfileSchema.objects.get(tenant=person.tenant, name=name)
    return read_profile(person, row, Viewer(agent_id), now=NOW, with_evidence=True)


def document(person: EndUser, name: str = "travel", agent_id: str = "") -> dict[str, Any]:
    return profile(person, name, agent_id).document
