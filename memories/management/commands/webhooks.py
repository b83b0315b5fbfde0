"""`manage.py webhooks list|add|remove|redeliver`: the webhooks of a tenant, as a script makes and mends them."""

import uuid
from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import CommandError
from django.utils import timezone

from memories.audit import Actor
from memories.curation.tenants import webhooks
from memories.curation.tenants.webhooks import SUBSCRIBED, WebhookSettings
from memories.exceptions import MemoryHubError
from memories.management import HubCommand
from memories.management.arguments import tenant_of
from memories.models import ActorKind, Tenant, WebhookDelivery, WebhookEndpoint


class Command(HubCommand):
    help = "List, add and remove webhooks of a tenant, and send again what failed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="list|add|remove|redeliver")
        shown = acts.add_parser("list", help="One a line: id, state, deliveries that wait and that failed, name, host.")
        added = acts.add_parser("add", help="Add one; prints the secret that signs its events alone, once.")
        added.add_argument("--name", required=True)
        added.add_argument("--url", required=True, help="It begins with https:// and leads to the public internet.")
        added.add_argument("--events", required=True, help="Comma-separated: " + ", ".join(sorted(SUBSCRIBED)))
        added.add_argument("--content", action="store_true", help="Texts and the application's ids, too.")
        removed = acts.add_parser("remove", help="Delete one, with its deliveries.")
        again = acts.add_parser("redeliver", help="Send again all that failed of one; prints how many.")
        again.add_argument("--delivery", type=uuid.UUID, help="This one alone, whether it failed or arrived.")
        for one in (shown, added, removed, again):
            one.add_argument("--tenant", required=True, help="The tenant's slug, e.g. acme-prod.")
        for one in (removed, again):
            one.add_argument("--id", type=uuid.UUID, required=True, help="As list shows it.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        try:
            getattr(self, f"_{options['act']}")(tenant, options)
        except MemoryHubError as error:
            raise CommandError(" ".join([error.detail, *(fault.detail for fault in error.faults)])) from None

    def _list(self, tenant: Tenant, _options: dict[str, Any]) -> None:
        for row in WebhookEndpoint.objects.filter(tenant=tenant):
            made = WebhookDelivery.objects.filter(endpoint=row)
            waiting = made.filter(state=WebhookDelivery.State.WAITING).count()
            failed = made.filter(state=WebhookDelivery.State.FAILED).count()
            state = row.disabled_for or "enabled"
            # Of the address the host: its path may be a secret.
            place = urlsplit(row.url).netloc
            self.stdout.write(f"{row.pk}  {state}  waiting {waiting}  failed {failed}  {row.name}  {place}")

    def _add(self, tenant: Tenant, options: dict[str, Any]) -> None:
        events = [event.strip() for event in options["events"].split(",") if event.strip()]
        settings = WebhookSettings(options["name"], options["url"], events, content=options["content"])
        _, secret = webhooks.add_webhook(tenant_id=tenant.pk, settings=settings, **_acting())
        self.stdout.write(secret)

    def _remove(self, tenant: Tenant, options: dict[str, Any]) -> None:
        webhooks.delete_webhook(webhook_id=_of(tenant, options["id"]), **_acting())

    def _redeliver(self, tenant: Tenant, options: dict[str, Any]) -> None:
        webhook_id, chosen = _of(tenant, options["id"]), options["delivery"]
        count = webhooks.send_again(webhook_id=webhook_id, delivery_id=chosen, **_acting())
        self.stdout.write(str(count))


def _of(tenant: Tenant, webhook_id: uuid.UUID) -> uuid.UUID:
    """Errors: CommandError, if the tenant has no such webhook."""
    if not WebhookEndpoint.objects.filter(tenant=tenant, pk=webhook_id).exists():
        raise CommandError("--id: the tenant has no such webhook.")
    return webhook_id


def _acting() -> dict[str, Any]:
    return {"actor": Actor(kind=ActorKind.COMMAND), "now": timezone.now()}
