"""The forms of verbs on webhooks. A secret is shown once, in the response itself, and stored nowhere in plain text."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib.auth.models import AnonymousUser
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from memories.admin.access.operator_forms import SwitchField
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.fields import LineField, TenantField
from memories.admin.site.page import VerbForm
from memories.audit import Actor
from memories.curation.tenants import webhooks
from memories.curation.tenants.webhooks import WebhookSettings
from memories.exceptions import MemoryHubError
from memories.llm.addresses import LONGEST_ADDRESS
from memories.models import Event, Operator, WebhookEndpoint
from memories.models.webhooks import BY_HAND, LONGEST_NAME


class _SettingsFields(forms.Form):
    name = LineField(label=_("Name"), max_length=LONGEST_NAME, help_text=_("What receives the events, such as CRM."))
    url = LineField(
        label=_("Address"),
        max_length=LONGEST_ADDRESS,
        help_text=_("Begins with https://. Events are sent there by POST, with a signature."),
    )
    events = forms.MultipleChoiceField(
        label=_("Events"),
        choices=[(event, event) for event in Event.values],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )
    content = SwitchField(
        label=_("With content"),
        help_text=_(
            "If off: events have the hub’s own ids alone. If on: also texts of facts and episodes, and the "
            "application’s ids of end users."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(value, f"{value} – {label}") for value, label in Event.choices if value not in BY_HAND]
        self.fields["events"].choices = choices  # type: ignore[attr-defined]  # of a choice

    def settings(self) -> WebhookSettings:
        given = self.cleaned_data
        return WebhookSettings(given["name"], given["url"], given["events"], content=given["content"])


class WebhookForm(_SettingsFields):
    tenant = TenantField()
    field_order = ("tenant", "name", "url", "events", "content")

    def __init__(self, *args: Any, operator: Operator | AnonymousUser, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]  # of a choice of rows

    def only(self, name: str) -> None:
        """Ask for this field alone; what else was entered is kept."""
        for other, field in self.fields.items():
            field.required = field.required and other == name

    def refuse(self, error: MemoryHubError) -> None:
        if error.faults:
            for fault in error.faults:
                self.add_error(fault.pointer, forms.ValidationError(fault.detail, code=fault.code))
        else:
            self.add_error(None, error.detail)


class ChangeForm(_SettingsFields, VerbForm):
    needs_fresh_password = True
    version = forms.IntegerField(widget=forms.HiddenInput)
    field_order = ("name", "url", "events", "content")

    def values_of(self, record: WebhookEndpoint) -> dict[str, Any]:
        return {name: getattr(record, name) for name in ("name", "url", "events", "content", "version")}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        version = self.cleaned_data["version"]
        webhooks.change_webhook(
            webhook_id=self.record.pk, settings=self.settings(), expected_version=version, actor=actor, now=now
        )
        return gettext("The webhook is changed.")

    def refuse(self, error: MemoryHubError) -> None:
        if error.faults:
            for fault in error.faults:
                self.add_error(fault.pointer, forms.ValidationError(fault.detail, code=fault.code))
        else:
            super().refuse(error)


class _PlainForm(VerbForm):
    def arguments(self) -> dict[str, Any]:
        return {"webhook_id": self.record.pk}


class RotateSecretForm(_PlainForm):
    needs_fresh_password = True
    # Shown in the response and stored nowhere.
    plaintext: str

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        _row, self.plaintext = webhooks.rotate_secret(webhook_id=self.record.pk, actor=actor, now=now)
        return gettext("The secret is rotated.")


class DisableForm(_PlainForm):
    calls = staticmethod(webhooks.disable_webhook)
    done = _("The webhook is disabled. It gets no events, and those that waited for it have failed.")


class EnableForm(_PlainForm):
    calls = staticmethod(webhooks.enable_webhook)
    done = _("The webhook is enabled. It gets events from now on.")


class DeleteEndpointForm(_PlainForm):
    needs_fresh_password = True
    calls = staticmethod(webhooks.delete_webhook)
    done = _("The webhook is deleted, with its deliveries.")

    def leads_to(self) -> str:
        return reverse("admin:memories_webhookendpoint_changelist")


class TestForm(_PlainForm):
    calls = staticmethod(webhooks.send_test)
    done = _("A test is on its way. It appears below.")


class SendAgainForm(_PlainForm):
    """One delivery, or without its id all that failed."""

    delivery = forms.UUIDField(widget=forms.HiddenInput, required=False)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        chosen = self.cleaned_data["delivery"]
        count = webhooks.send_again(webhook_id=self.record.pk, delivery_id=chosen, actor=actor, now=now)
        sent = ngettext("%(count)d delivery is sent again.", "%(count)d deliveries are sent again.", count)
        return sent % {"count": count}
