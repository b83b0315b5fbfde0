"""The JSON Schema of data.json, made from the same tables as the export; docs/export-schema.json is a copy."""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models

from memories.models import CaseType
from memories.privacy.exports.profiles import SECTIONS, ExportSection
from memories.privacy.exports.rows import COMPUTED

FORMAT = "memory-hub-export"
# Raised by a change that removes a field or changes its meaning; readers ignore what they do not know.
VERSION = 2

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
    # Anything that the application sent.
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
            if section.columns_in(profile)
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
        if section.columns_in(profile)
    }
    properties: Schema = {**dict.fromkeys(_head(), True), "profile": {"const": profile.value}, **lists}
    return {"properties": properties, "required": list(lists), "additionalProperties": False}


def _row(section: ExportSection, profile: CaseType) -> Schema:
    properties = {name: _column(section, name) for name in section.columns_in(profile)}
    for name in section.computed_in(profile):
        computed = COMPUTED[section.store, name]
        properties[name] = {**computed.schema, "description": computed.says}
    for inner in section.inside_in(profile):
        row = _row(inner, profile)
        at_most_once = inner.name in section.with_rows
        properties[inner.name] = {"anyOf": [row, {"type": "null"}]} if at_most_once else {"type": "array", "items": row}
    return _object(properties)


def _column(section: ExportSection, name: str) -> Schema:
    column: Any = section.model._meta.get_field(name)
    of = column.target_field if column.is_relation else column
    schema = dict(next(schema for kind, schema in _TYPES if isinstance(of, kind)))
    if column.null and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    if column.choices:
        schema["enum"] = [*(value for value, _ in column.choices), *([""] if column.blank else []),
                          *([None] if column.null else [])]  # fmt: skip
    # Not a help_text that is translated: the schema is the same for everybody.
    text = column.help_text if isinstance(column.help_text, str) else ""
    return {**schema, "description": text} if text else schema


def _object(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
