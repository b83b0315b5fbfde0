"""The forms of operators and groups."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django import forms
from django.contrib.auth.models import AnonymousUser, Group
from django.contrib.auth.password_validation import password_validators_help_texts, validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminEmailInputWidget,
    UnfoldAdminPasswordWidget,
    UnfoldBooleanSwitchWidget,
)

from memories import curation
from memories.admin.fields import LineField, check_zone
from memories.admin.page import VerbForm
from memories.admin.permissions import PermissionsField, held_by
from memories.admin.reach import tenants_of
from memories.audit import Actor
from memories.models import Operator, Tenant
from memories.models.roles import ROLES


class SwitchField(forms.BooleanField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=UnfoldBooleanSwitchWidget, **kwargs)


class RowsField(forms.ModelMultipleChoiceField[Any]):
    """Some of the rows, each with a box to tick."""

    def __init__(self, queryset: QuerySet[Any], **kwargs: Any) -> None:
        super().__init__(queryset, required=False, widget=UnfoldAdminCheckboxSelectMultipleWidget, **kwargs)


class PasswordField(forms.CharField):
    def __init__(self, **kwargs: Any) -> None:
        widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
        super().__init__(strip=False, widget=widget, **kwargs)


class AccessForm(forms.Form):
    """Who an operator is and what they may; offers what the signed-in operator may give, which the verb checks."""

    username = LineField(label=gettext_lazy("Username"), max_length=150, validators=[UnicodeUsernameValidator()])
    first_name = LineField(label=gettext_lazy("First name"), required=False, max_length=150)
    last_name = LineField(label=gettext_lazy("Last name"), required=False, max_length=150)
    email = forms.EmailField(
        label=gettext_lazy("Email address"), required=False, widget=UnfoldAdminEmailInputWidget, max_length=254
    )
    time_zone = LineField(label=gettext_lazy("Time zone"), initial="UTC", max_length=64, validators=[check_zone])
    is_active = SwitchField(
        label=gettext_lazy("May sign in"),
        initial=True,
        help_text=gettext_lazy("Off: signed out at once. An operator is never deleted, as the trail names them."),
    )
    groups = RowsField(Group.objects.order_by("name"), label=gettext_lazy("Roles"))
    all_tenants = SwitchField(
        label=gettext_lazy("All tenants"),
        initial=True,
        help_text=gettext_lazy("Off: only the memories, keys and figures of the tenants below."),
    )
    tenants = RowsField(Tenant.objects.order_by("slug"), label=gettext_lazy("Tenants"))
    is_superuser = SwitchField(
        label=gettext_lazy("Superuser"), help_text=gettext_lazy("May everything, whatever the roles say.")
    )

    def offer(self, operator: Operator | AnonymousUser) -> None:
        """Show what this operator may give."""
        self.fields["tenants"].queryset = tenants_of(operator)  # type: ignore[attr-defined]
        self.fields["groups"].queryset = groups_within(operator)  # type: ignore[attr-defined]
        mine = curation.powers_of(operator) if isinstance(operator, Operator) else None
        if not (mine and mine.superuser):
            del self.fields["is_superuser"]
        if not (mine and mine.tenants is None):
            del self.fields["all_tenants"]

    def draft(self) -> curation.OperatorDraft:
        """What the valid form says; a switch that was not shown is off."""
        data = dict(self.cleaned_data)
        groups = frozenset(group.pk for group in data["groups"])
        tenants = frozenset(tenant.pk for tenant in data["tenants"])
        plain = ("username", "first_name", "last_name", "email", "time_zone")
        switches = ("is_active", "is_superuser", "all_tenants")
        given = {**{name: data[name] for name in plain}, **{name: bool(data.get(name)) for name in switches}}
        return curation.OperatorDraft(**given, groups=groups, tenants=tenants)


class OperatorForm(VerbForm, AccessForm):
    needs_fresh_password = True
    seen = forms.CharField(widget=forms.HiddenInput)
    record: Operator

    def __init__(self, data: Any = None, *, record: Operator) -> None:
        super().__init__(data, record=record)
        draft = curation.draft_of(record)
        for name, value in vars(draft).items():
            self.fields[name].initial = value
        self.fields["seen"].initial = curation.seen_of(draft)

    def see(self, record: Operator) -> None:
        super().see(record)
        self.data = self.data.copy()  # type: ignore[attr-defined]  # of a request
        self.data["seen"] = curation.seen_of(curation.draft_of(record))  # type: ignore[index]

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {"operator_id": self.record.pk, "draft": self.draft(), "seen": self.cleaned_data["seen"]}
        curation.update_operator(**given, actor=actor, now=now)
        return _("Saved. It holds from the next page on that they open.")


class NewPasswordForm(VerbForm):
    needs_fresh_password = True
    password = PasswordField(label=gettext_lazy("New password"))
    again = PasswordField(label=gettext_lazy("Once more"))
    record: Operator

    def __init__(self, data: Any = None, *, record: Operator) -> None:
        super().__init__(data, record=record)
        self.fields["password"].help_text = " ".join(password_validators_help_texts())

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        check_twice(self, data, self.record)
        return data

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {"operator_id": self.record.pk, "password": self.cleaned_data["password"]}
        curation.set_password(**given, actor=actor, now=now)
        return _("The new password holds now; their other browsers are signed out.")


class RemoveSecondFactorForm(VerbForm):
    needs_fresh_password = True
    record: Operator

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.remove_second_factor(operator_id=self.record.pk, actor=actor, now=now)
        return _("Their second factor is gone: the password is enough until they set up another.")


class NewOperatorForm(AccessForm):
    password = PasswordField(label=gettext_lazy("Password"), required=False)
    again = PasswordField(label=gettext_lazy("Once more"), required=False)
    field_order = ("username", "password", "again")

    def __init__(self, data: Any = None, *, operator: Operator | AnonymousUser) -> None:
        super().__init__(data)
        self.fields["password"].help_text = _(
            "They can change it. Empty: they sign in through your identity provider alone."
        )
        self.offer(operator)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("password") or data.get("again"):
            check_twice(self, data, Operator(username=data.get("username", ""), email=data.get("email", "")))
        return data


class GroupForm(VerbForm):
    needs_fresh_password = True
    name = LineField(label=gettext_lazy("Name"), max_length=150)
    permissions = PermissionsField(label=gettext_lazy("What its members may"))
    seen = forms.CharField(widget=forms.HiddenInput, required=False)
    record: Group

    def __init__(self, data: Any = None, *, record: Group) -> None:
        super().__init__(data, record=record)
        held = held_by(record)
        for name, value in {"name": record.name, "permissions": held, "seen": " ".join(held)}.items():
            self.fields[name].initial = value
        # Migrations find the hub's own roles by their names.
        self.fields["name"].disabled = record.name in ROLES

    def see(self, record: Group) -> None:
        super().see(record)
        self.data = self.data.copy()  # type: ignore[attr-defined]  # of a request
        self.data["seen"] = " ".join(held_by(record))  # type: ignore[index]

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        data, group_id = self.cleaned_data, self.record.pk
        # What the boxes do not show stays as it is.
        wanted = {*data["permissions"], *hidden_of(self.record)}
        seen = data["seen"].split() if group_id else None
        given = {"group_id": group_id, "name": data["name"], "permissions": wanted, "seen": seen}
        self.record = curation.save_group(**given, actor=actor, now=now)
        return _("Saved. It holds for every member from the next page on that they open.")


def check_twice(form: forms.Form, data: dict[str, Any], operator: Operator) -> None:
    """Fault a password that is too weak for this operator, or was typed differently the second time."""
    try:
        validate_password(data.get("password", ""), operator)
    except forms.ValidationError as error:
        form.add_error("password", error)
    if data.get("password") != data.get("again"):
        form.add_error("again", _("This is not what you typed before."))


def groups_within(operator: Operator | AnonymousUser) -> QuerySet[Group]:
    """The groups that the operator may put others into: those that give no more than they have."""
    groups = Group.objects.order_by("name")
    if not isinstance(operator, Operator) or operator.is_superuser:
        return groups if isinstance(operator, Operator) else groups.none()
    mine = curation.powers_of(operator).permissions
    return groups.filter(pk__in=[group.pk for group in groups if set(held_by(group)) <= mine])


def hidden_of(group: Group) -> Collection[str]:
    shown = set(PermissionsField.offered())
    return [label for label in held_by(group) if label not in shown] if group.pk else []
