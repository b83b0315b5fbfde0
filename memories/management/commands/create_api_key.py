"""`manage.py create_api_key`: makes an API key and prints nothing else on standard output."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils import timezone

from memories.audit import Actor
from memories.curation.access.keys import DEFAULT_DAYS, Binding, create_api_key
from memories.curation.tenants.settings import save_tenant
from memories.exceptions import Conflict, Erased, InvalidInput, PersonRestricted
from memories.management import HubCommand
from memories.management.arguments import days, external_id, key_name, scopes
from memories.models import ActorKind, MemoryOf, Scope, Tenant, WritesAs


class Command(HubCommand):
    help = "Make an API key for a tenant (made when missing); prints the key alone, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug, e.g. acme-prod.")
        parser.add_argument("--scopes", required=True, help="Comma-separated: " + ", ".join(Scope.values))
        parser.add_argument("--name", default="", help="What will use it.")
        parser.add_argument(
            "--expires-days",
            type=days,
            default=DEFAULT_DAYS,
            help="After how many days it is refused (%(default)s); 0: never.",
        )
        parser.add_argument("--user", type=external_id, default="", help="The only person whom it is for (user_id).")
        parser.add_argument("--agent", type=external_id, default="", help="The only agent that it is for (agent_id).")
        parser.add_argument(
            "--writes-as",
            choices=WritesAs.values,
            help="Whose words it writes: agent with --agent, else user. By MCP: user only if it is said here.",
        )

        parser.add_argument(
            "--memory-of",
            choices=MemoryOf.values,
            help="Whose memory sessions become that it opens; without it, as the tenant says.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        given, name = scopes(options["scopes"], option="--scopes"), key_name(options["name"])
        binding = _binding(options)
        now, actor = timezone.now(), Actor(kind=ActorKind.COMMAND)
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            tenant = save_tenant(tenant=Tenant(slug=_slug(options["tenant"])), actor=actor, now=now)
        try:
            _, plaintext = create_api_key(
                tenant=tenant,
                name=name,
                scopes=given,
                actor=actor,
                now=now,
                expires_at=now + timedelta(days=valid) if (valid := options["expires_days"]) else None,
                binding=binding,
            )
        except (Conflict, Erased, PersonRestricted) as error:
            raise CommandError(error.detail) from None
        self.stdout.write(plaintext)


def _binding(options: dict[str, Any]) -> Binding:
    binding = Binding(options["user"], options["agent"], options["writes_as"] or "", options["memory_of"] or "")
    try:
        binding.columns()
    except InvalidInput as error:
        [fault] = error.faults
        raise CommandError(f"--{fault.pointer.removesuffix('_id')}: {fault.detail}") from None
    return binding


def _slug(text: str) -> str:
    try:
        Tenant._meta.get_field("slug").clean(text, None)
    except ValidationError:
        raise CommandError(f"--tenant takes a slug of 1 to 63 letters, digits, - and _; got {text!r}.") from None
    return text
