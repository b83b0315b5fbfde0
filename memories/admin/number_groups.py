"""A tenant's own numbers as the page shows them: folded groups, open where there is something of the tenant's own."""

from collections.abc import Iterator
from dataclasses import dataclass

from django import forms
from django.forms.boundfield import BoundField
from django.utils.translation import gettext as _

from memories import conf
from memories.admin.number_fields import HALF_LIFE
from memories.conf.kinds import CATEGORIES, Group, Kind


@dataclass(frozen=True)
class NumberGroup:
    """One section of the page; `categories` are the half-lives, in the group that has them."""

    title: str
    says: str
    fields: list[BoundField]
    categories: list[BoundField]

    @property
    def own(self) -> int:
        """How many fields hold something of the tenant's own."""
        return sum(field.value() not in (None, "") for field in self._all())

    @property
    def faults(self) -> int:
        return sum(bool(field.errors) for field in self._all())

    def _all(self) -> Iterator[BoundField]:
        yield from self.fields
        yield from self.categories


def number_groups(form: forms.BaseForm) -> list[NumberGroup]:
    """The groups of the table of numbers with the form's fields."""
    return [_group(form, group) for group in Group]


def _group(form: forms.BaseForm, group: Group) -> NumberGroup:
    numbers = [number for number in conf.NUMBERS.values() if number.group == group]
    fields = [form[number.name] for number in numbers if number.kind != Kind.HALF_LIVES]
    by_category = any(number.kind == Kind.HALF_LIVES for number in numbers)
    categories = [form[f"{HALF_LIFE}{name}"] for name in CATEGORIES] if by_category else []
    return NumberGroup(_(str(group)), _(group.says), fields, categories)
