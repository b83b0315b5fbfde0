"""The fields of a tenant's own numbers, made from the table of numbers; empty ones stand for the hub's own."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from memories import conf
from memories.conf.kinds import CATEGORIES, Kind, Number, shown
from memories.models import Category

NEVER = "never"
# In front of a category: its half-life.
HALF_LIFE = "half_life_of_"
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")


class NumberField(forms.CharField):
    """A number as text, since a browser's own number field sends nothing when it cannot read what was typed.

    Its value is a number, or "never"; "" when it is left empty.
    """

    def __init__(self, number: Number, *, hubs: object, label: str, help_text: str = "") -> None:
        self.number = number
        hint = {"placeholder": _typed(hubs), "inputmode": "decimal", "autocomplete": "off"}
        if number.kind == Kind.HALF_LIVES:
            # A phone's keypad of digits has no way to write "never".
            hint |= {"inputmode": "text", "list": "hub-never"}
        widget = UnfoldAdminTextInputWidget(attrs=hint)
        super().__init__(required=False, label=label, help_text=help_text, widget=widget)

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else _typed(value)

    def to_python(self, value: Any) -> Any:
        text = (super().to_python(value) or "").lower()
        if not text:
            return ""
        if text == NEVER:
            read: float | None = None
        elif _NUMBER.fullmatch(text):
            read = float(text) if "." in text else int(text)
        else:
            raise self._refused()
        if not self.number.takes(read):
            raise self._refused()
        return NEVER if read is None else read

    def run_validators(self, value: Any) -> None:
        """A number has none of the validators of text; to_python() judged it."""

    def _refused(self) -> ValidationError:
        number = self.number
        ends = {"lowest": shown(number.lowest), "highest": shown(number.highest)}
        return ValidationError(_(_asked_for(number)) % ends, code="number")


class SwitchField(forms.TypedChoiceField):
    """On, off, or as the hub has it."""

    def __init__(self, number: Number, *, hubs: object, label: str, help_text: str) -> None:
        super().__init__(
            choices=[
                ("", _("As the hub: %(value)s") % {"value": _(shown(hubs))}),
                *((value, _(shown(value).capitalize())) for value in (True, False)),
            ],
            coerce=lambda value: str(value) == "True",
            required=False,
            label=label,
            help_text=help_text,
            widget=UnfoldAdminSelectWidget,
        )


def number_fields(hub: conf.Rules, own: Mapping[str, Any]) -> dict[str, forms.Field]:
    """A field for each number, and for each category's half-life, by name; placeholders tell what holds when empty."""
    half_life = own.get("half_life_days", hub.half_life_days)
    fields = {number.name: _field(number, hub) for number in conf.NUMBERS.values() if number.kind != Kind.HALF_LIVES}
    return fields | {f"{HALF_LIFE}{name}": _half_life(name, hub.half_lives.get(name, half_life)) for name in CATEGORIES}


def values_of(own: Mapping[str, Any]) -> dict[str, Any]:
    """What the fields show of a tenant's own numbers."""
    days = own.get("half_lives", {}).items()
    of_categories = {f"{HALF_LIFE}{name}": NEVER if value is None else value for name, value in days}
    return {**{name: value for name, value in own.items() if name != "half_lives"}, **of_categories}


def numbers_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """A tenant's own numbers as they are stored, from what the fields say; the inverse of values_of()."""
    said = {name: None if value == NEVER else value for name, value in values.items() if value != ""}
    numbers = {name: said[name] for name in conf.NUMBERS if name in said}
    days = {name: said[f"{HALF_LIFE}{name}"] for name in CATEGORIES if f"{HALF_LIFE}{name}" in said}
    return {**numbers, "half_lives": days} if days else numbers


def _field(number: Number, hub: conf.Rules) -> forms.Field:
    field = SwitchField if number.kind == Kind.SWITCH else NumberField
    return field(number, hubs=getattr(hub, number.name), label=_(number.label), help_text=_(number.says))


def _half_life(category: str, days: float | None) -> forms.Field:
    return NumberField(conf.NUMBERS["half_lives"], hubs=days, label=str(Category(category).label))


def _asked_for(number: Number) -> str:
    """What to write; a sentence of its own for each, since no language is made of parts."""
    if number.kind == Kind.HALF_LIVES:
        return gettext_noop("Write a number from %(lowest)s to %(highest)s, or never, or leave it empty.")
    if number.kind == Kind.WHOLE:
        if number.zero:
            return gettext_noop("Write a whole number from %(lowest)s to %(highest)s, or 0, or leave it empty.")
        return gettext_noop("Write a whole number from %(lowest)s to %(highest)s, or leave it empty.")
    return gettext_noop("Write a number from %(lowest)s to %(highest)s, or leave it empty.")


def _typed(value: object) -> str:
    """As somebody would type it: without thousands separators."""
    return shown(value).replace(",", "")
