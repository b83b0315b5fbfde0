"""The few pieces of JSON Schema that answers are described with, in the form that strict mode asks for."""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}


def object_of(**properties: Schema) -> Schema:
    """Every property required, no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def one_of(*names: str) -> Schema:
    return {"type": "string", "enum": list(names)}


def or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}
