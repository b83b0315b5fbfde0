"""The permissions of a group as a table of checkboxes: a row per model, a column per action."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.apps import apps
from django.contrib.auth.models import Group
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy

from memories.admin.site.naming import many_of
from memories.curation.access.powers import labels
from memories.models.access.roles import GIVEN

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
    """A checkbox. Without a name, the model has no such permission."""

    name: str
    label: str
    ticked: bool


class PermissionsField(forms.MultipleChoiceField):
    def __init__(self, **kwargs: Any) -> None:
        choices = [(label, label) for label in self.offered()]
        super().__init__(required=False, choices=choices, widget=forms.CheckboxSelectMultiple, **kwargs)

    @staticmethod
    def offered() -> tuple[str, ...]:
        """The permissions that admin pages check."""
        return GIVEN


def held_by(group: Group) -> list[str]:
    """The group's permissions, like memories.view_fact, sorted."""
    return sorted(labels(group.permissions.all())) if group.pk else []


def rows_of(field: forms.BoundField) -> list[tuple[str, list[Box]]]:
    """The table: each model's plural with its checkboxes, in the order of the table of roles."""
    ticked = set(field.value() or [])
    models = dict.fromkeys((app, name.partition("_")[2]) for app, _, name in (one.partition(".") for one in GIVEN))
    rows = []
    for app, model in models:
        plural = many_of(apps.get_model(app, model))
        names = {action: f"{app}.{action}_{model}" for action in ACTIONS}
        boxes = [
            Box(name if name in GIVEN else "", f"{ACTIONS[action]}: {plural}", name in ticked)
            for action, name in names.items()
        ]
        rows.append((capfirst(plural), boxes))
    return rows
