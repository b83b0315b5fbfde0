"""A tenant's own numbers as form fields, made from the table of numbers. An empty field means the hub's number."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.boundfield import BoundField
from django.forms.renderers import BaseRenderer
from django.forms.utils import flatatt
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from memories import conf
from memories.categories import CATEGORIES
from memories.conf.kinds import Number, NumberKind, SettingGroup, shown
from memories.models import Category

NEVER = "never"
# Prefix of a category: the field of its half-life.
HALF_LIFE = "half_life_of_"
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")


class NumberInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]  # Unfold has no types
    """Unfold's field, written without its templates: there are 70 of them on the page, a quarter of its time."""

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: BaseRenderer | None = None
    ) -> SafeString:
        given = {"type": self.input_type, "name": name, **self.build_attrs(self.attrs, attrs)}
        shown_value = self.format_value(value)
        given |= {} if shown_value is None else {"value": shown_value}
        return format_html('<div class="max-w-2xl relative w-full"><input{}></div>', flatatt(given))


class NumberField(forms.CharField):
    """A number as text. The value is a number, "never", or "" if it is empty.

    A browser's own number field sends nothing for input that it cannot parse.
    """

    def __init__(self, number: Number, *, hubs: object, label: str, help_text: str = "") -> None:
        self.number = number
        hint = {"placeholder": _typed(hubs), "inputmode": "decimal", "autocomplete": "off"}
        if number.kind == NumberKind.HALF_LIVES:
            # The digit keypad of a phone cannot type "never".
            hint |= {"inputmode": "text", "list": "hub-never"}
        widget = NumberInput(attrs=hint)
        super().__init__(required=False, label=label, help_text=help_text, widget=widget)

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else _typed(value)

    def to_python(self, value: Any) -> Any:
        text = (super().to_python(value) or "").lower()
        if not text:
            return ""
        if text == NEVER:
            number: float | None = None
        elif _NUMBER.fullmatch(text):
            number = float(text) if "." in text else int(text)
        else:
            raise self._error()
        if not self.number.takes(number):
            raise self._error()
        return NEVER if number is None else number

    def run_validators(self, value: Any) -> None:
        """None: those of CharField expect text, and to_python() has checked the number."""

    def _error(self) -> ValidationError:
        number = self.number
        ends = {"lowest": shown(number.lowest), "highest": shown(number.highest)}
        return ValidationError(_(_instruction(number)) % ends, code="number")


def _instruction(number: Number) -> str:
    """What to write: a whole sentence for each case, since translations are not composed of parts."""
    if number.kind == NumberKind.HALF_LIVES:
        return gettext_noop("Enter a number from %(lowest)s to %(highest)s or “never”, or leave empty.")
    if number.kind == NumberKind.WHOLE:
        if number.zero:
            return gettext_noop("Enter a whole number from %(lowest)s to %(highest)s or 0, or leave empty.")
        return gettext_noop("Enter a whole number from %(lowest)s to %(highest)s, or leave empty.")
    return gettext_noop("Enter a number from %(lowest)s to %(highest)s, or leave empty.")


def _typed(value: object) -> str:
    """Without thousands separators."""
    return shown(value).replace(",", "")


class OptionalSwitchField(forms.TypedChoiceField):
    """On, off, or the hub's setting."""

    def __init__(self, number: Number, *, hubs: object, label: str, help_text: str) -> None:
        super().__init__(
            choices=[
                ("", _("Hub default: %(value)s") % {"value": _(shown(hubs))}),
                *((value, _(shown(value).capitalize())) for value in (True, False)),
            ],
            coerce=lambda value: str(value) == "True",
            required=False,
            label=label,
            help_text=help_text,
            widget=UnfoldAdminSelectWidget,
        )


def number_fields(hub: conf.Rules, own: Mapping[str, Any]) -> dict[str, forms.Field]:
    """Name → field of each number and of each category's half-life. Placeholders show what applies if empty."""
    fields: dict[str, forms.Field] = {}
    for number in conf.NUMBERS.values():
        if number.kind != NumberKind.HALF_LIVES:
            field = OptionalSwitchField if number.kind == NumberKind.SWITCH else NumberField
            hubs, label, help_text = getattr(hub, number.name), _(number.label), _(number.says)
            fields[number.name] = field(number, hubs=hubs, label=label, help_text=help_text)
    half_life = own.get("half_life_days", hub.half_life_days)
    for name in CATEGORIES:
        days, label = hub.half_lives.get(name, half_life), str(Category(name).label)
        fields[f"{HALF_LIFE}{name}"] = NumberField(conf.NUMBERS["half_lives"], hubs=days, label=label)
    return fields


def values_of(own: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the fields for a tenant's own numbers; the inverse of numbers_of()."""
    days = own.get("half_lives", {}).items()
    of_categories = {f"{HALF_LIFE}{name}": NEVER if value is None else value for name, value in days}
    return {**{name: value for name, value in own.items() if name != "half_lives"}, **of_categories}


def numbers_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """A tenant's own numbers as stored, from the values of the fields."""
    given = {name: None if value == NEVER else value for name, value in values.items() if value != ""}
    numbers = {name: given[name] for name in conf.NUMBERS if name in given}
    days = {name: given[f"{HALF_LIFE}{name}"] for name in CATEGORIES if f"{HALF_LIFE}{name}" in given}
    return {**numbers, "half_lives": days} if days else numbers


@dataclass(frozen=True)
class NumberGroup:
    """A section of the page. `categories` are the half-lives, in the group that has them."""

    title: str
    says: str
    fields: list[BoundField]
    categories: list[BoundField]

    @property
    def own(self) -> int:
        """How many fields have a value of the tenant's own. The page unfolds groups with such fields."""
        return sum(field.value() not in (None, "") for field in [*self.fields, *self.categories])

    @property
    def faults(self) -> int:
        return sum(bool(field.errors) for field in [*self.fields, *self.categories])


def number_groups(form: forms.BaseForm) -> list[NumberGroup]:
    """The form's number fields in the groups of the table of numbers."""
    groups = []
    for group in SettingGroup:
        numbers = [number for number in conf.NUMBERS.values() if number.group == group]
        fields = [form[number.name] for number in numbers if number.kind != NumberKind.HALF_LIVES]
        has_half_lives = any(number.kind == NumberKind.HALF_LIVES for number in numbers)
        categories = [form[f"{HALF_LIFE}{name}"] for name in CATEGORIES] if has_half_lives else []
        groups.append(NumberGroup(_(str(group)), _(group.says), fields, categories))
    return groups
