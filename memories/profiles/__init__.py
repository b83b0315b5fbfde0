"""Profiles by a tenant's own JSON Schema: which fields there are, what a value must be, and the document of a person.

A field's value is a fact whose key names the field, so everything that happens to facts happens to it. Writes no table.
"""

from memories.models.memories.facts import is_field_key
from memories.profiles.fields import Field, ValueRefused
from memories.profiles.reading import (
    FieldValue,
    PersonProfile,
    read_for_staff,
    read_profile,
    read_profiles,
    statement_of,
)
from memories.profiles.schemas import field_of, fields_for, fields_of, schemas_for

__all__ = [
    "Field",
    "FieldValue",
    "PersonProfile",
    "ValueRefused",
    "field_of",
    "fields_for",
    "fields_of",
    "is_field_key",
    "read_for_staff",
    "read_profile",
    "read_profiles",
    "schemas_for",
    "statement_of",
]
