"""The permissions of a group as a table of boxes: what it is about down, seeing, adding, changing … across."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.apps import apps
from django.contrib.auth.models import Group
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy

from memories.admin.naming import many_of
from memories.curation.powers import labels
from memories.models.roles import GIVEN

ACTIONS = {
    "view": gettext_lazy("See"),
    "add": gettext_lazy("Add"),
    "change": gettext_lazy("Change"),
    "delete": gettext_lazy("Delete"),
    "approve": gettext_lazy("Approve"),
    "export": gettext_lazy("Export lists"),
}


@dataclass(frozen=True)
class Box:
    """One box to tick; without a name there is nothing to allow."""

    name: str
    label: str
    ticked: bool


class PermissionsField(forms.MultipleChoiceField):
    def __init__(self, **kwargs: Any) -> None:
        choices = [(label, label) for label in self.offered()]
        super().__init__(required=False, choices=choices, widget=forms.CheckboxSelectMultiple, **kwargs)

    @staticmethod
    def offered() -> tuple[str, ...]:
        """Those that a page of the admin asks for."""
        return GIVEN


def held_by(group: Group) -> list[str]:
    """The group's permissions like memories.view_fact, sorted."""
    return sorted(labels(group.permissions.all())) if group.pk else []


def rows_of(field: forms.BoundField) -> list[tuple[str, list[Box]]]:
    """The table: for each model its plural and a box, or none, for each action."""
    ticked = set(field.value() or [])
    # In the order of the table of roles: what is read first, then what is administered.
    models = dict.fromkeys((app, name.partition("_")[2]) for app, _, name in (one.partition(".") for one in GIVEN))
    return [_row(app, model, ticked) for app, model in models]


def _row(app: str, model: str, ticked: set[str]) -> tuple[str, list[Box]]:
    plural = many_of(apps.get_model(app, model))
    names = {action: f"{app}.{action}_{model}" for action in ACTIONS}
    return capfirst(plural), [
        Box(name if name in GIVEN else "", f"{ACTIONS[action]}: {plural}", name in ticked)
        for action, name in names.items()
    ]
