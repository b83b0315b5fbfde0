"""How a field of a profile is told to a language model."""

import json

from memories.llm.prompts.memory_update import WantedField
from memories.profiles.fields import BOOLEAN, CHOICE, DATE, INTEGER, LIST, NUMBER, TEXT, Field

_WORDS = {
    TEXT: "text",
    DATE: "a day",
    NUMBER: "a number",
    INTEGER: "a whole number",
    BOOLEAN: "true or false",
}


def wanted(field: Field) -> WantedField:
    """As the prompt names it."""
    return WantedField(field.key, _values(field), f"{field.label} (profile {field.profile})", field.description)


def _values(field: Field) -> str:
    kind = field.item_kind if field.kind == LIST else field.kind
    one = f"one of {json.dumps(field.choices, ensure_ascii=False)}" if kind == CHOICE else _WORDS[kind]
    limits = [f"{name} {field.spec[name]}" for name in ("minimum", "maximum") if name in field.spec]
    return ", ".join([f"a list, of each {one}" if field.kind == LIST else one, *limits])
