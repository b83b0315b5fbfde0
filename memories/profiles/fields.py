"""A field of a profile: its key among a person's facts, and what its value must be.

A fact keeps the value as text of at most 500 characters: a text as it is, anything else as JSON.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

from memories.models.folding import fold
from memories.models.memories.facts import OF_PROFILE
from memories.text.cleaning import clean

LONGEST_VALUE = 500
MOST_ITEMS = 50
DEFAULT_CATEGORY = "other"
TEXT, CHOICE, DATE, NUMBER, INTEGER, BOOLEAN, LIST = "text", "choice", "date", "number", "integer", "boolean", "list"
_YES = frozenset({"true", "yes", "ja", "oui", "sí", "是", "是的", "1"})
_NO = frozenset({"false", "no", "nein", "non", "否", "不是", "0"})
_BETWEEN = re.compile(r"[\n,;，；、]")
# Also as JSON writes one.
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,21})?(?:[eE][+-]?\d{1,2})?")


class ValueRefused(ValueError):
    """The value is none of the field's; the text says why."""


@dataclass(frozen=True)
class Field:
    """A field of the profile `profile` at `path` (one name, or a group's and its own), with its JSON Schema `spec`.
    `titles`: of the group and of the field. `life`: how often a field was removed from this place before."""

    profile: str
    path: tuple[str, ...]
    spec: Mapping[str, Any]
    titles: tuple[str, ...]
    life: int = 0
    is_required: bool = False

    @cached_property
    def key(self) -> str:
        """Of the facts that are its values; never that of an older field of the same name."""
        again = f"~{self.life}" if self.life else ""
        return fold(f"{OF_PROFILE}{self.profile}.{self.pointer}{again}")

    @property
    def pointer(self) -> str:
        """Its names with periods between them."""
        return ".".join(self.path)

    @property
    def label(self) -> str:
        return ", ".join(self.titles)

    @property
    def description(self) -> str:
        return str(self.spec.get("description", ""))

    @property
    def category(self) -> str:
        return str(self.spec.get("x-category", DEFAULT_CATEGORY))

    @property
    def kind(self) -> str:
        return LIST if self.spec["type"] == "array" else _kind_of(self.spec)

    @property
    def item_kind(self) -> str:
        """Of what a list has."""
        return _kind_of(self.spec["items"])

    @property
    def choices(self) -> Sequence[str]:
        one = self.spec["items"] if self.kind == LIST else self.spec
        return list(one.get("enum", ()))

    def read(self, given: Any) -> Any:
        """The value that somebody gives, as text or as JSON, in the field's own type. Errors: ValueRefused."""
        value = self._list(given) if self.kind == LIST else _scalar(given, self.spec)
        try:
            self._validator.validate(value)
        except ValidationError as error:
            raise ValueRefused(_why(error)) from None
        if len(self.text(value)) > LONGEST_VALUE:
            raise ValueRefused(_("Use at most %(most)d characters.") % {"most": LONGEST_VALUE})
        return value

    def text(self, value: Any) -> str:
        """A value of the field as a fact keeps it."""
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)

    def spoken(self, value: Any) -> str:
        """The same in words; nothing of yes or no, which says nothing by itself."""
        if isinstance(value, bool):
            return ""
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    def told(self, value: Any) -> str:
        """As staff and agents read it."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        return self.spoken(value)

    def value_in(self, content: str, *, instead_of: str, value: str) -> str:
        """What a fact keeps as its value if its content becomes this one, `instead_of` the one in which `value` stood;
        empty if the new words do not tell it."""
        before, _found, behind = instead_of.partition(value) if value and value in instead_of else (None, "", "")
        if before is not None and content.startswith(before) and content.endswith(behind):
            content = content[len(before) : len(content) - len(behind)]
        elif self.kind == TEXT:
            return ""
        try:
            return self.text(self.read(content))
        except ValueRefused:
            return ""

    def _list(self, given: Any) -> list[Any]:
        if isinstance(given, str) and given.lstrip().startswith("["):
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                raise ValueRefused(_("This is no list in JSON.")) from None
        elif isinstance(given, str):
            given = [part for part in _BETWEEN.split(given) if part.strip()]
        if not isinstance(given, list):
            given = [given]
        if len(given) > MOST_ITEMS:
            raise ValueRefused(_("Give at most %(most)d.") % {"most": MOST_ITEMS})
        values = [_scalar(one, self.spec["items"]) for one in given]
        # Said twice it is there once.
        return [value for place, value in enumerate(values) if value not in values[:place]]

    @cached_property
    def _validator(self) -> Draft202012Validator:
        return Draft202012Validator(dict(self.spec))


def _kind_of(spec: Mapping[str, Any]) -> str:
    if spec["type"] != "string":
        return str(spec["type"])
    return CHOICE if "enum" in spec else DATE if spec.get("format") == "date" else TEXT


def _scalar(given: Any, spec: Mapping[str, Any]) -> Any:
    kind = _kind_of(spec)
    if kind == BOOLEAN:
        return _boolean(given)
    if kind in (NUMBER, INTEGER):
        return _number(given, kind)
    if isinstance(given, bool) or not isinstance(given, (str, int, float)):
        raise ValueRefused(_("Give a text."))
    text = clean(str(given))
    if not text:
        raise ValueRefused(_("Give a text."))
    if kind == CHOICE:
        chosen = next((choice for choice in spec["enum"] if fold(choice) == fold(text)), None)
        if chosen is None:
            raise ValueRefused(_("Give one of: %(choices)s.") % {"choices": ", ".join(spec["enum"])})
        return chosen
    return _day(text) if kind == DATE else text


def _boolean(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    word = fold(given) if isinstance(given, str) else ""
    if word not in _YES | _NO:
        raise ValueRefused(_("Give true or false."))
    return word in _YES


def _number(given: Any, kind: str) -> int | float:
    if isinstance(given, str):
        text = clean(given)
        if not _NUMBER.fullmatch(text):
            raise ValueRefused(_("Give a number."))
        given = int(text) if text.lstrip("+-").isdecimal() else float(text)
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not abs(given) < 1e15:
        raise ValueRefused(_("Give a number."))
    if kind == INTEGER or float(given).is_integer():
        if not float(given).is_integer():
            raise ValueRefused(_("Give a whole number."))
        return int(given)
    return given


def _day(text: str) -> str:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ValueRefused(_("Give a day as 2026-05-31.")) from None
    return day.isoformat()


def _why(error: ValidationError) -> str:
    """In our words: those of the library repeat the value."""
    limit = error.validator_value
    why = {
        "minLength": _("Use at least %(limit)s characters."),
        "maxLength": _("Use at most %(limit)s characters."),
        "minimum": _("Give at least %(limit)s."),
        "maximum": _("Give at most %(limit)s."),
        "exclusiveMinimum": _("Give more than %(limit)s."),
        "exclusiveMaximum": _("Give less than %(limit)s."),
        "minItems": _("Give at least %(limit)s."),
        "maxItems": _("Give at most %(limit)s."),
    }
    return why.get(str(error.validator), _("The schema does not allow this value.")) % {"limit": limit}
