"""Webhooks of a tenant: added, changed, disabled, deleted; secrets that are shown once; tests, and sending again.

Each verb locks the tenant and then the webhook, and notes with the tenant which events are wanted.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from memories import audit, conf
from memories.audit import Actor
from memories.exceptions import Conflict, Fault, InvalidInput, NotFound, PreconditionFailed
from memories.invisible import strip_invisible
from memories.llm.addresses import AddressRefused, check_address
from memories.models import Event, Tenant, WebhookDelivery, WebhookEndpoint
from memories.models.webhooks import BY_HAND, LONGEST_NAME
from memories.text.secrets.redaction import redact_text
from memories.webhooks import delivering, messages

MOST_OF_TENANT = 10
# So long the secret before the last rotation signs, too.
BOTH_SIGN = timedelta(days=1)
SUBSCRIBED = frozenset(Event.values) - frozenset(BY_HAND)

Reason, State = WebhookEndpoint.Reason, WebhookDelivery.State


@dataclass(frozen=True)
class WebhookSettings:
    """What an endpoint is told, and where. `content`: texts and the application's ids, too."""

    name: str
    url: str
    events: Sequence[str]
    content: bool = False


def add_webhook(
    *, tenant_id: uuid.UUID, settings: WebhookSettings, actor: Actor, now: datetime
) -> tuple[WebhookEndpoint, str]:
    """Add an endpoint; the second value is its secret, which is shown nowhere again.

    The name in the address is resolved before the transaction. Errors: InvalidInput with the field; NotFound; Conflict
    (the tenant is off-boarded, has the address already or as many webhooks as it may).
    """
    secret = messages.new_secret()
    row = WebhookEndpoint(tenant_id=tenant_id, secret=conf.encrypt_webhook_secret(secret), created_at=now)
    _take(row, settings)
    with transaction.atomic():
        tenant = _locked_tenant(tenant_id)
        if tenant.offboarded_at:
            raise Conflict(_("The tenant is off-boarded. Restore it before you add a webhook."))
        if WebhookEndpoint.objects.filter(tenant=tenant).count() >= MOST_OF_TENANT:
            raise Conflict(_("A tenant can have %(most)d webhooks. Delete one first.") % {"most": MOST_OF_TENANT})
        _check_alone(row)
        row.save(force_insert=True)
        _end(row, tenant, "create", actor=actor, now=now)
    return row, secret


def change_webhook(
    *, webhook_id: uuid.UUID, settings: WebhookSettings, expected_version: int | None, actor: Actor, now: datetime
) -> WebhookEndpoint:
    """Store what the endpoint is told, and where. What waits goes to the new address.

    Errors: InvalidInput; NotFound; Conflict (the tenant has the address already); PreconditionFailed when somebody
    changed it meanwhile.
    """
    _take(WebhookEndpoint(), settings)
    with _changing(webhook_id, "update", actor, now) as (row, _tenant):
        if expected_version is not None and row.version != expected_version:
            raise PreconditionFailed
        _set(row, settings)
        _check_alone(row)
        row.version += 1
    return row


def rotate_secret(*, webhook_id: uuid.UUID, actor: Actor, now: datetime) -> tuple[WebhookEndpoint, str]:
    """Make a new secret, the second value, shown nowhere again. For a day the former one signs, too.

    Errors: NotFound.
    """
    secret = messages.new_secret()
    with _changing(webhook_id, "rotate", actor, now) as (row, _tenant):
        row.former_secret, row.former_until = row.secret, now + BOTH_SIGN
        row.secret = conf.encrypt_webhook_secret(secret)
        row.version += 1
    return row, secret


def disable_webhook(*, webhook_id: uuid.UUID, actor: Actor, now: datetime) -> WebhookEndpoint:
    """Tell the endpoint nothing until it is enabled; what waits has failed. Errors: NotFound; Conflict (disabled)."""
    with _changing(webhook_id, "disable", actor, now) as (row, _tenant):
        if row.disabled_at:
            raise Conflict(_("This webhook is disabled already."))
        row.disabled_at, row.disabled_for, row.paused_until = now, Reason.OPERATOR, None
        row.version += 1
        delivering.give_up_all(WebhookDelivery.objects.filter(endpoint=row))
    return row


def enable_webhook(*, webhook_id: uuid.UUID, actor: Actor, now: datetime) -> WebhookEndpoint:
    """Tell the endpoint what happens from now on. Errors: NotFound; Conflict (enabled, or the tenant off-boarded)."""
    with _changing(webhook_id, "enable", actor, now) as (row, tenant):
        if not row.disabled_at:
            raise Conflict(_("This webhook is enabled already."))
        if tenant.offboarded_at:
            raise Conflict(_("The tenant is off-boarded. Restore it before you enable its webhooks."))
        row.disabled_at, row.disabled_for = None, ""
        row.failures, row.failing_since, row.paused_until = 0, None, None
        row.version += 1
    return row


def delete_webhook(*, webhook_id: uuid.UUID, actor: Actor, now: datetime) -> None:
    """Delete the endpoint with its deliveries. A request that is on its way arrives. Errors: NotFound."""
    with transaction.atomic():
        row, tenant = _locked(webhook_id, for_deletion=True)
        WebhookDelivery.objects.filter(endpoint=row).delete()
        WebhookEndpoint.objects.filter(pk=row.pk).delete()
        _end(row, tenant, "delete", actor=actor, now=now)


def send_test(*, webhook_id: uuid.UUID, actor: Actor, now: datetime) -> None:
    """Write an event that says nothing; a worker sends it within seconds. Errors: NotFound; Conflict (disabled)."""
    with _changing(webhook_id, "send_test", actor, now) as (row, tenant):
        _check_enabled(row)
        WebhookDelivery.objects.create(
            tenant=tenant, endpoint=row, event=Event.TEST, data={"webhook_id": str(row.pk)}, occurred_at=now
        )


def send_again(*, webhook_id: uuid.UUID, delivery_id: uuid.UUID | None, actor: Actor, now: datetime) -> int:
    """Send a delivery that ended once more, under its webhook-id, or with None all that failed; how many.

    Errors: NotFound; Conflict (the webhook is disabled; the delivery waits).
    """
    with _changing(webhook_id, "send_again", actor, now) as (row, _tenant):
        _check_enabled(row)
        ended = WebhookDelivery.objects.filter(endpoint=row).exclude(state=State.WAITING)
        ended = ended.filter(state=State.FAILED) if delivery_id is None else ended.filter(pk=delivery_id)
        fresh = {"state": State.WAITING, "tried_at": None, "ended_at": None, "attempts": 0, "lease_until": None}
        count = ended.update(**fresh)
        if not count and delivery_id:
            if not WebhookDelivery.objects.filter(endpoint=row, pk=delivery_id).exists():
                raise NotFound
            raise Conflict(_("This delivery is waiting already."))
        row.paused_until = None
    return count


def off_board(tenant: Tenant) -> int:
    """Disable all webhooks of a tenant that is off-boarded, in the caller's transaction; how many."""
    rows = WebhookEndpoint.objects.enabled().filter(tenant=tenant)
    count = rows.update(disabled_at=Now(), disabled_for=Reason.OFF_BOARDED, paused_until=None)
    delivering.give_up_all(WebhookDelivery.objects.filter(tenant=tenant))
    delivering.note_wanted(tenant.pk)
    return count


def take_back(tenant: Tenant) -> int:
    """Enable those that the off-boarding disabled; how many."""
    rows = WebhookEndpoint.objects.filter(tenant=tenant, disabled_for=Reason.OFF_BOARDED)
    count = rows.update(disabled_at=None, disabled_for="", failures=0, failing_since=None)
    delivering.note_wanted(tenant.pk)
    return count


def reencrypt_webhook_secrets() -> tuple[int, int]:
    """Encrypt all secrets under the present key; returns how many had another one, and how many no key decrypts."""
    renewed = unreadable = 0
    for pk in WebhookEndpoint.objects.order_by("pk").values_list("pk", flat=True):
        with transaction.atomic():
            row = WebhookEndpoint.objects.select_for_update(no_key=True).filter(pk=pk).first()
            for name in ("secret", "former_secret") if row else ():
                token = getattr(row, name)
                fresh = conf.renewed_webhook_secret(token)
                if fresh is None:
                    unreadable += 1
                elif fresh != token:
                    WebhookEndpoint.objects.filter(pk=pk).update(**{name: fresh})
                    renewed += 1
    return renewed, unreadable


@contextmanager
def _changing(
    webhook_id: uuid.UUID, verb: str, actor: Actor, now: datetime
) -> Iterator[tuple[WebhookEndpoint, Tenant]]:
    with transaction.atomic():
        row, tenant = _locked(webhook_id)
        yield row, tenant
        row.save(force_update=True)
        _end(row, tenant, verb, actor=actor, now=now)


def _locked(webhook_id: uuid.UUID, *, for_deletion: bool = False) -> tuple[WebhookEndpoint, Tenant]:
    found = WebhookEndpoint.objects.filter(pk=webhook_id).values_list("tenant", flat=True).first()
    if found is None:
        raise NotFound
    tenant = _locked_tenant(found)
    # A deletion waits for transactions that write deliveries, and they for it.
    rows = WebhookEndpoint.objects.select_for_update(no_key=not for_deletion)
    row = rows.filter(pk=webhook_id).first()
    if row is None:
        raise NotFound
    return row, tenant


def _locked_tenant(tenant_id: uuid.UUID) -> Tenant:
    tenant = Tenant.objects.select_for_update(no_key=True).filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound
    return tenant


def _take(row: WebhookEndpoint, settings: WebhookSettings) -> None:
    """Check the settings, and set them. Errors: InvalidInput."""
    _set(row, settings)
    if not row.name:
        raise InvalidInput.at("name", _("Enter a name."))
    if not row.events or not set(row.events) <= SUBSCRIBED:
        raise InvalidInput.at("events", _("Choose at least one event."))
    try:
        check_address(row.url)
    except AddressRefused as refused:
        raise InvalidInput.at("url", str(refused), code=refused.code) from None


def _set(row: WebhookEndpoint, settings: WebhookSettings) -> None:
    row.name = redact_text(strip_invisible(settings.name).strip())[0][:LONGEST_NAME]
    row.url, row.events, row.content = settings.url, sorted(set(settings.events)), settings.content


def _check_alone(row: WebhookEndpoint) -> None:
    if WebhookEndpoint.objects.filter(tenant=row.tenant_id, url=row.url).exclude(pk=row.pk).exists():
        taken = _("The tenant has a webhook with this address.")
        raise Conflict(taken, faults=[Fault("url", "taken", taken)])


def _check_enabled(row: WebhookEndpoint) -> None:
    if row.disabled_at:
        raise Conflict(_("This webhook is disabled. Enable it first."))


def _end(row: WebhookEndpoint, tenant: Tenant, verb: str, *, actor: Actor, now: datetime) -> None:
    delivering.note_wanted(tenant.pk)
    audit.record(actor=actor, verb=verb, target=row, object_id=row.pk, tenant=tenant, now=now)
