"""The JSON Schema of data.json, made of the same tables as the export itself; docs/export-schema.json is a copy."""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models

from memories.models import CaseType
from memories.privacy.exports.computed import COMPUTED
from memories.privacy.exports.profiles import SECTIONS, Section
from memories.privacy.exports.told import computed_in, inside, names_in

FORMAT = "memory-hub-export"
# Raised by a change that takes something away or gives it another meaning; readers pass over what they do not know.
VERSION = 1

Schema = dict[str, Any]
_MOMENT = {"type": "string", "format": "date-time"}
# The first that fits; a subclass stands before its base.
_TYPES: tuple[tuple[type[models.Field[Any, Any]], Schema], ...] = (
    (models.UUIDField, {"type": "string", "format": "uuid"}),
    (models.DateTimeField, _MOMENT),
    (models.DateField, {"type": "string", "format": "date"}),
    (models.BooleanField, {"type": "boolean"}),
    (models.DecimalField, {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}),
    (models.FloatField, {"type": "number"}),
    (models.IntegerField, {"type": "integer"}),
    (models.CharField, {"type": "string"}),
    (models.TextField, {"type": "string"}),
    (ArrayField, {"type": "array", "items": {"type": "string"}}),
    # Whatever the application sent.
    (models.JSONField, {}),
)


def document() -> Schema:
    """The schema: what every export has, and the lists of each profile."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Memory Hub: what is kept about a person",
        "type": "object",
        "properties": _head(),
        "required": list(_head()),
        "oneOf": [_of_profile(profile) for profile in (CaseType.ACCESS, CaseType.PORTABILITY)],
        "$defs": {
            f"{profile}_{section.name}": _row(section, profile)
            for profile in (CaseType.ACCESS, CaseType.PORTABILITY)
            for section in SECTIONS
            if names_in(section, profile)
        },
    }


def _head() -> Schema:
    texts = {"type": "array", "items": {"type": "string"}}
    chapter = _object({"name": {"type": "string"}, "title": {"type": "string"}, "says": texts})
    recipient = _object({name: {"type": "string"} for name in ("kind", "name", "says")})
    return {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "profile": {"enum": [CaseType.ACCESS.value, CaseType.PORTABILITY.value]},
        "case": {"type": "string", "format": "uuid", "description": "The request that it answers."},
        "made_at": {**_MOMENT, "description": "Everything is as of this moment."},
        "about": _object(
            {
                "language": {"type": "string"},
                "application": {"type": "string"},
                "chapters": {"type": "array", "items": chapter},
                "recipients": {"type": "array", "items": recipient},
            }
        ),
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}, "description": "Rows of each list."},
    }


def _of_profile(profile: CaseType) -> Schema:
    lists = {
        section.name: {"type": "array", "items": {"$ref": f"#/$defs/{profile}_{section.name}"}}
        for section in SECTIONS
        if names_in(section, profile)
    }
    known: Schema = {**dict.fromkeys(_head(), True), "profile": {"const": profile.value}, **lists}
    return {"properties": known, "required": list(lists), "additionalProperties": False}


def _row(section: Section, profile: CaseType) -> Schema:
    told = {name: _column(section, name) for name in names_in(section, profile)}
    told |= {name: _computed(section, name) for name in computed_in(section, profile)}
    for inner in inside(section, profile):
        row = _row(inner, profile)
        at_most_once = inner.name in section.with_rows
        told[inner.name] = {"anyOf": [row, {"type": "null"}]} if at_most_once else {"type": "array", "items": row}
    return _object(told)


def _column(section: Section, name: str) -> Schema:
    column: Any = section.model._meta.get_field(name)
    of = column.target_field if column.is_relation else column
    schema = dict(next(schema for kind, schema in _TYPES if isinstance(of, kind)))
    if column.null and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    if column.choices:
        schema["enum"] = [*(value for value, _ in column.choices), *([""] if column.blank else []),
                          *([None] if column.null else [])]  # fmt: skip
    # Not help_text that is translated: the schema is the same for everybody.
    said = column.help_text if isinstance(column.help_text, str) else ""
    return {**schema, "description": said} if said else schema


def _computed(section: Section, name: str) -> Schema:
    made = COMPUTED[section.store, name]
    return {**made.schema, "description": made.says}


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
