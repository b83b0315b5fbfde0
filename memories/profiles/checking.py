"""Which JSON Schemas a profile may have: a bounded part of the standard, whose every value is cheap to check.

A profile is an object of named fields. A field is a text, a choice, a day, a number, true or false, or a list of these;
an object of such fields is a group. What is accepted is in docs/profiles.md.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from django.utils.translation import gettext as _

from memories.categories import Category
from memories.exceptions import Fault, InvalidInput
from memories.models.folding import fold
from memories.profiles.fields import LONGEST_VALUE, MOST_ITEMS
from memories.text.cleaning import clean, clean_lines
from memories.text.secrets.redaction import redact_text

MOST_FIELDS, MOST_BYTES, MOST_CHOICES = 60, 16_384, 50
LONGEST_TITLE, LONGEST_DESCRIPTION, LONGEST_CHOICE = 80, 300, 100
# As long as that, a profile, a group and a field make a key of a fact.
NAME = re.compile(r"[a-z][a-z0-9_]{0,23}")
FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,29}")
_TOLD = {"type", "title", "description"}
_OF_OBJECTS = {*_TOLD, "properties", "required", "additionalProperties"}
_OF_TEXTS = {"enum", "format", "minLength", "maxLength"}
_OF_NUMBERS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_OF_TYPES: Mapping[str, set[str]] = {
    "string": _OF_TEXTS,
    "number": _OF_NUMBERS,
    "integer": _OF_NUMBERS,
    "boolean": set(),
    "array": {"items", "minItems", "maxItems", "uniqueItems"},
}
# Between each of the one and each of the other must be room for a value.
_BOUNDS = (
    (("minLength",), ("maxLength",)),
    (("minItems",), ("maxItems",)),
    (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")),
)
_DIALECTS = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#")


def checked_name(name: str) -> str:
    """Errors: InvalidInput."""
    if not NAME.fullmatch(name):
        raise InvalidInput.at("/name", _("A name has 1 to 24 small letters, digits and _, and begins with a letter."))
    return name


def checked(given: Any) -> dict[str, Any]:
    """The schema as it is stored: its texts cleaned and without secrets. Errors: InvalidInput with all places."""
    if not isinstance(given, Mapping):
        raise InvalidInput.at("/schema", _("Give a JSON Schema of an object."))
    if len(json.dumps(given, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise InvalidInput.at("/schema", _("Use at most %(most)d bytes.") % {"most": MOST_BYTES})
    check = _Check()
    schema = check.object(given, "/schema", depth=0)
    if len(check.labels) > MOST_FIELDS:
        check.fail("/schema/properties", _("Give at most %(most)d fields.") % {"most": MOST_FIELDS})
    if check.faults:
        raise InvalidInput(faults=check.faults)
    return schema


class _Check:
    """One look at a schema: what is wrong with it, and the labels of the fields so far."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.labels: set[str] = set()

    def fail(self, pointer: str, detail: str) -> None:
        self.faults.append(Fault(pointer, "invalid", detail))

    def object(self, given: Mapping[str, Any], at: str, *, depth: int, group: str = "") -> dict[str, Any]:
        accepted = _OF_OBJECTS | ({"$schema"} if depth == 0 else set())
        self.keywords(given, accepted, at)
        found = self.told(given, at)
        if given.get("type") != "object":
            self.fail(f"{at}/type", _('Give "object".'))
        if "$schema" in given and given["$schema"] not in _DIALECTS:
            self.fail(f"{at}/$schema", _("Give one of: %(choices)s.") % {"choices": ", ".join(_DIALECTS)})
        if given.get("additionalProperties", False) is not False:
            self.fail(f"{at}/additionalProperties", _("Give false: a profile has the fields that it names."))
        properties = given.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            self.fail(f"{at}/properties", _("Name at least one field."))
            properties = {}
        fields = dict(self.properties(properties, f"{at}/properties", depth=depth, group=group))
        return {
            "type": "object",
            **found,
            "properties": fields,
            **self.required(given, fields, at),
            "additionalProperties": False,
        }

    def properties(
        self, given: Mapping[str, Any], at: str, *, depth: int, group: str
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        seen: set[str] = set()
        for name, spec in given.items():
            place = f"{at}/{_escaped(name)}"
            if not FIELD_NAME.fullmatch(name):
                self.fail(place, _("A name has 1 to 30 Latin letters, digits and _, and begins with a letter."))
            elif fold(name) in seen:
                self.fail(place, _("Another field has this name."))
            elif not isinstance(spec, Mapping):
                self.fail(place, _("Give a JSON Schema of an object."))
            elif spec.get("type") == "object" and depth:
                self.fail(place, _("A group has no groups in it: one level is accepted."))
            elif spec.get("type") == "object":
                title = self.told(spec, place).get("title") or name
                yield name, self.object(spec, place, depth=1, group=title)
            else:
                yield name, self.field(name, spec, place, group=group)
            seen.add(fold(name))

    def field(self, name: str, spec: Mapping[str, Any], at: str, *, group: str) -> dict[str, Any]:
        found = self.scalar_or_list(spec, at, of_list=False)
        label = fold(f"{group}, {found.get('title') or name}")
        if label in self.labels:
            self.fail(f"{at}/title", _("Another field has this title."))
        self.labels.add(label)
        if "x-category" in spec:
            if spec["x-category"] not in Category.values:
                self.fail(f"{at}/x-category", _("Give one of: %(choices)s.") % {"choices": ", ".join(Category.values)})
            found["x-category"] = spec["x-category"]
        return found

    def scalar_or_list(self, spec: Mapping[str, Any], at: str, *, of_list: bool) -> dict[str, Any]:
        kind = spec.get("type")
        types = [one for one in _OF_TYPES if one != "array" or not of_list]
        if not isinstance(kind, str) or kind not in types:
            self.fail(f"{at}/type", _("Give one of: %(choices)s.") % {"choices": ", ".join(types)})
            return {"type": "string"}
        own = set() if of_list else {"x-category"}
        self.keywords(spec, _TOLD | _OF_TYPES[kind] | own, at)
        found: dict[str, Any] = {"type": kind, **self.told(spec, at)}
        if kind == "string":
            found |= self.of_text(spec, at)
        elif kind == "array":
            found |= self.of_list(spec, at)
        else:
            found |= {name: self.number(spec, name, at) for name in _OF_NUMBERS if name in spec}
        self.room(found, at)
        return found

    def room(self, found: Mapping[str, Any], at: str) -> None:
        """Whether any value is within the bounds: one that a typing error shut would stay empty in silence."""
        for lows, highs in _BOUNDS:
            for low, high in product(lows, highs):
                if low not in found or high not in found:
                    continue
                touches = found[low] == found[high] and "exclusive" in low + high
                if found[low] > found[high] or touches:
                    self.fail(f"{at}/{high}", _("No value fits between this and %(low)s.") % {"low": low})

    def of_text(self, spec: Mapping[str, Any], at: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if "enum" in spec:
            found["enum"] = self.choices(spec["enum"], f"{at}/enum")
        if "format" in spec:
            if spec["format"] != "date":
                self.fail(f"{at}/format", _("Give one of: %(choices)s.") % {"choices": "date"})
            found["format"] = "date"
        for name, least in (("minLength", 0), ("maxLength", 1)):
            if name in spec:
                found[name] = self.count(spec, name, at, least=least, most=LONGEST_VALUE)
        fixed = {f"enum/{place}": text for place, text in enumerate(found.get("enum", ()))}
        for name, text in (fixed or ({"format": "2026-05-31"} if "format" in found else {})).items():
            if not found.get("minLength", 0) <= len(text) <= found.get("maxLength", LONGEST_VALUE):
                self.fail(f"{at}/{name}", _("minLength and maxLength do not allow this."))
        return found

    def of_list(self, spec: Mapping[str, Any], at: str) -> dict[str, Any]:
        items = spec.get("items")
        if not isinstance(items, Mapping):
            self.fail(f"{at}/items", _("Say what the list has: a schema of a text, a number or true or false."))
            items = {"type": "string"}
        found: dict[str, Any] = {"items": self.scalar_or_list(items, f"{at}/items", of_list=True)}
        for name, least in (("minItems", 0), ("maxItems", 1)):
            if name in spec:
                found[name] = self.count(spec, name, at, least=least, most=MOST_ITEMS)
        if "uniqueItems" in spec:
            if not isinstance(spec["uniqueItems"], bool):
                self.fail(f"{at}/uniqueItems", _("Give true or false."))
            found["uniqueItems"] = True
        return found

    def choices(self, given: Any, at: str) -> list[str]:
        if not isinstance(given, list) or not 0 < len(given) <= MOST_CHOICES:
            self.fail(at, _("Give 1 to %(most)d texts.") % {"most": MOST_CHOICES})
            return [""]
        texts = [self.text(one, LONGEST_CHOICE, f"{at}/{place}") for place, one in enumerate(given)]
        for place, text in enumerate(texts):
            if not text or fold(text) in map(fold, texts[:place]):
                self.fail(f"{at}/{place}", _("Give a text that no other choice has."))
        return texts

    def number(self, spec: Mapping[str, Any], name: str, at: str) -> int | float:
        given = spec[name]
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not abs(given) < 1e15:
            self.fail(f"{at}/{name}", _("Give a number."))
            return 0
        return given

    def count(self, spec: Mapping[str, Any], name: str, at: str, *, least: int, most: int) -> int:
        given = spec[name]
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
            detail = _("Give a whole number from %(least)d to %(most)d.") % {"least": least, "most": most}
            self.fail(f"{at}/{name}", detail)
            return least
        return given

    def required(self, given: Mapping[str, Any], fields: Mapping[str, Any], at: str) -> dict[str, list[str]]:
        if "required" not in given:
            return {}
        names = given["required"]
        if not isinstance(names, list) or not all(isinstance(name, str) and name in fields for name in names):
            self.fail(f"{at}/required", _("Give names of these fields."))
            return {}
        return {"required": list(dict.fromkeys(names))}

    def told(self, given: Mapping[str, Any], at: str) -> dict[str, str]:
        found = {}
        for name, longest in (("title", LONGEST_TITLE), ("description", LONGEST_DESCRIPTION)):
            if name in given and (text := self.text(given[name], longest, f"{at}/{name}", lines=name != "title")):
                found[name] = text
        return found

    def text(self, given: Any, longest: int, at: str, *, lines: bool = False) -> str:
        if not isinstance(given, str):
            self.fail(at, _("Give a text."))
            return ""
        text = redact_text((clean_lines if lines else clean)(given[: 10 * longest]))[0]
        if len(text) > longest:
            self.fail(at, _("Use at most %(most)d characters.") % {"most": longest})
        return text[:longest]

    def keywords(self, given: Mapping[str, Any], accepted: set[str], at: str) -> None:
        detail = _("This keyword is not accepted here. Accepted are: %(keywords)s.")
        for name in given:
            if name not in accepted:
                self.fail(f"{at}/{_escaped(name)}", detail % {"keywords": ", ".join(sorted(accepted))})


def _escaped(name: str) -> str:
    """As a JSON pointer has it."""
    return name[:100].replace("~", "~0").replace("/", "~1")
