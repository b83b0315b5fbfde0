"""The forms of operators and groups."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
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
    UnfoldAdminRadioSelectWidget,
    UnfoldBooleanSwitchWidget,
)

from memories.admin.access.identity import provider_name
from memories.admin.access.permissions import PermissionsField, held_by
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.fields import LineField, check_zone
from memories.admin.site.page import VerbForm
from memories.audit import Actor
from memories.curation.access.invitations import invite, revoke_invitation
from memories.curation.access.operators import (
    OperatorDraft,
    draft_of,
    save_group,
    set_password,
    state_of,
    update_operator,
)
from memories.curation.access.powers import powers_of
from memories.curation.access.provider_links import unlink_provider
from memories.curation.access.second_factors import remove_second_factor
from memories.models import Operator, Tenant
from memories.models.access.roles import ROLES, line_of, name_of

INVITATION, PROVIDER, LATER = "invitation", "provider", "later"


class SwitchField(forms.BooleanField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, widget=UnfoldBooleanSwitchWidget, **kwargs)


class RowsField(forms.ModelMultipleChoiceField[Any]):
    """Checkboxes, one per row."""

    def __init__(self, queryset: QuerySet[Any], **kwargs: Any) -> None:
        super().__init__(queryset, required=False, widget=UnfoldAdminCheckboxSelectMultipleWidget, **kwargs)


class RolesField(RowsField):
    """Checkboxes of roles, each with what it may do."""

    def label_from_instance(self, group: Group) -> str:
        line = line_of(group.name)
        return _("%(role)s: %(line)s") % {"role": name_of(group.name), "line": line} if line else group.name


class PasswordField(forms.CharField):
    def __init__(self, **kwargs: Any) -> None:
        widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
        super().__init__(strip=False, widget=widget, **kwargs)


class AccessForm(forms.Form):
    """The data of an operator. It offers what the signed-in operator may grant; the verb checks that again."""

    username = LineField(label=gettext_lazy("Username"), max_length=150, validators=[UnicodeUsernameValidator()])
    first_name = LineField(label=gettext_lazy("First name"), required=False, max_length=150)
    last_name = LineField(label=gettext_lazy("Last name"), required=False, max_length=150)
    email = forms.EmailField(
        label=gettext_lazy("Email address"), required=False, widget=UnfoldAdminEmailInputWidget, max_length=254
    )
    time_zone = LineField(label=gettext_lazy("Time zone"), initial="UTC", max_length=64, validators=[check_zone])
    is_active = SwitchField(
        label=gettext_lazy("Can sign in"),
        initial=True,
        help_text=gettext_lazy(
            "If off: the operator is signed out immediately. Operators are never deleted, because the "
            "audit trail names them."
        ),
    )
    groups = RolesField(Group.objects.order_by("name"), label=gettext_lazy("Roles"))
    all_tenants = SwitchField(
        label=gettext_lazy("All tenants"),
        initial=True,
        help_text=gettext_lazy("If off: the operator sees only the memories, keys and figures of the tenants below."),
    )
    tenants = RowsField(Tenant.objects.order_by("slug"), label=gettext_lazy("Tenants"))
    is_superuser = SwitchField(
        label=gettext_lazy("Superuser"), help_text=gettext_lazy("A superuser can do everything, whatever their roles.")
    )

    def offer(self, operator: Operator | AnonymousUser) -> None:
        """Limit the choices to what this operator may grant."""
        self.fields["tenants"].queryset = tenants_of(operator)  # type: ignore[attr-defined]
        self.fields["groups"].queryset = groups_within(operator)  # type: ignore[attr-defined]
        powers = powers_of(operator) if isinstance(operator, Operator) else None
        if not (powers and powers.superuser):
            del self.fields["is_superuser"]
        if not (powers and powers.tenants is None):
            del self.fields["all_tenants"]

    def draft(self) -> OperatorDraft:
        """The valid form as a draft. A switch that was not offered is off."""
        data = self.cleaned_data
        groups = frozenset(group.pk for group in data["groups"])
        tenants = frozenset(tenant.pk for tenant in data["tenants"])
        texts: dict[str, Any] = {
            name: data[name] for name in ("username", "first_name", "last_name", "email", "time_zone")
        }
        switches: dict[str, Any] = {name: bool(data.get(name)) for name in ("is_active", "is_superuser", "all_tenants")}
        return OperatorDraft(**texts, **switches, groups=groups, tenants=tenants)


class OperatorForm(VerbForm, AccessForm):
    needs_fresh_password = True
    calls = staticmethod(update_operator)
    done = gettext_lazy("Saved. It takes effect when the operator opens the next page.")
    expected = forms.CharField(widget=forms.HiddenInput)
    record: Operator

    def values_of(self, record: Operator) -> dict[str, Any]:
        draft = draft_of(record)
        return {**vars(draft), "expected": state_of(draft)}

    def arguments(self) -> dict[str, Any]:
        return {"operator_id": self.record.pk, "draft": self.draft(), "expected": self.cleaned_data["expected"]}


class NewPasswordForm(VerbForm):
    needs_fresh_password = True
    calls = staticmethod(set_password)
    done = gettext_lazy("The new password is set. The operator's other browsers are signed out.")
    password = PasswordField(label=gettext_lazy("New password"))
    again = PasswordField(label=gettext_lazy("Repeat password"))
    record: Operator

    def __init__(self, data: Any = None, *, record: Operator) -> None:
        super().__init__(data, record=record)
        self.fields["password"].help_text = " ".join(password_validators_help_texts())

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        check_twice(self, data, self.record)
        return data

    def arguments(self) -> dict[str, Any]:
        return {"operator_id": self.record.pk, "password": self.cleaned_data["password"]}


class RemoveSecondFactorForm(VerbForm):
    needs_fresh_password = True
    calls = staticmethod(remove_second_factor)
    done = gettext_lazy(
        "The second factor is removed. The operator signs in with the password alone until they set up another one."
    )

    def arguments(self) -> dict[str, Any]:
        return {"operator_id": self.record.pk}


class UnlinkProviderForm(VerbForm):
    needs_fresh_password = True
    calls = staticmethod(unlink_provider)
    done = gettext_lazy(
        "The account is unlinked and the operator signed out. The next account that signs in with "
        "the operator's verified address is linked."
    )

    def arguments(self) -> dict[str, Any]:
        return {"operator_id": self.record.pk}


class NewOperatorForm(AccessForm):
    ways_in = forms.ChoiceField(label=gettext_lazy("How they sign in"), widget=UnfoldAdminRadioSelectWidget)
    # Of the link that was made; shown in the response, or sent, and stored nowhere.
    secret = ""
    field_order = ("username", "first_name", "last_name", "email", "time_zone", "ways_in", "groups")

    def __init__(self, data: Any = None, *, operator: Operator | AnonymousUser) -> None:
        super().__init__(data, initial={"ways_in": INVITATION})
        link = _("By an invitation: a one-time link, with which they choose a password.")
        if settings.MEMORYHUB_SENDS_MAIL:
            link = _("By an invitation: a one-time link, sent to their address, with which they choose a password.")
        provider = _("Through your identity provider alone, with the address above.")
        later = _("Not yet: invite them or set a password later, on their page.")
        ways = [(INVITATION, link), (PROVIDER, provider) if provider_name() else (LATER, later)]
        self.fields["ways_in"].choices = ways  # type: ignore[attr-defined]
        del self.fields["is_active"]
        self.offer(operator)

    def draft(self) -> OperatorDraft:
        return replace(super().draft(), is_active=True)


class InviteForm(VerbForm):
    needs_fresh_password = True
    # Shown in the response, or sent, and stored nowhere.
    secret: str
    record: Operator

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        self.record, self.secret = invite(operator_id=self.record.pk, actor=actor, now=now)
        return ""


class RevokeInvitationForm(VerbForm):
    needs_fresh_password = True
    calls = staticmethod(revoke_invitation)
    done = gettext_lazy("The invitation is revoked. Its link no longer works.")

    def arguments(self) -> dict[str, Any]:
        return {"operator_id": self.record.pk}


class AcceptForm(forms.Form):
    """What an invited operator sends: the secret of the link, which a script takes from the address, and a password."""

    secret = LineField(
        label=gettext_lazy("Code of the invitation"),
        max_length=100,
        help_text=gettext_lazy("What follows # in the link that you were given."),
    )
    password = PasswordField(label=gettext_lazy("New password"))
    again = PasswordField(label=gettext_lazy("Repeat password"))

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        self.fields["secret"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}
        self.fields["password"].help_text = " ".join(password_validators_help_texts())

    def clean_secret(self) -> str:
        # A whole link may be pasted.
        return str(self.cleaned_data["secret"]).rpartition("#")[2]


class GroupForm(VerbForm):
    needs_fresh_password = True
    name = LineField(label=gettext_lazy("Name"), max_length=150)
    permissions = PermissionsField(label=gettext_lazy("Permissions of its members"))
    expected = forms.CharField(widget=forms.HiddenInput, required=False)
    record: Group

    def __init__(self, data: Any = None, *, record: Group) -> None:
        super().__init__(data, record=record)
        # Migrations find the hub's own roles by name.
        self.fields["name"].disabled = record.name in ROLES

    def values_of(self, record: Group) -> dict[str, Any]:
        held = held_by(record)
        return {"name": record.name, "permissions": held, "expected": " ".join(held)}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        data, offered = self.cleaned_data, set(PermissionsField.offered())
        # Permissions that the form does not offer stay.
        kept = [label for label in held_by(self.record) if label not in offered]
        self.record = save_group(
            group_id=self.record.pk,
            name=data["name"],
            permissions={*data["permissions"], *kept},
            expected=data["expected"].split() if self.record.pk else None,
            actor=actor,
            now=now,
        )
        return _("Saved. It takes effect when a member opens the next page.")


def check_twice(form: forms.Form, data: dict[str, Any], operator: Operator) -> None:
    """Add errors for a weak password, or one that differs from its repetition."""
    try:
        validate_password(data.get("password", ""), operator)
    except forms.ValidationError as error:
        form.add_error("password", error)
    if data.get("password") != data.get("again"):
        form.add_error("again", _("The two passwords do not match."))


def groups_within(operator: Operator | AnonymousUser) -> QuerySet[Group]:
    """The groups that the operator may add others to: those with no more permissions than the operator has."""
    groups = Group.objects.order_by("name")
    if not isinstance(operator, Operator):
        return groups.none()
    if operator.is_superuser:
        return groups
    permissions = powers_of(operator).permissions
    return groups.filter(pk__in=[group.pk for group in groups if set(held_by(group)) <= permissions])
