"""`manage.py create_management_key`: makes a management key and prints nothing else on standard output."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memories.audit import Actor
from memories.curation.access.keys import DEFAULT_DAYS, create_management_key
from memories.management import HubCommand
from memories.management.arguments import days, key_name, scopes, tenant_of
from memories.models import ActorKind, Scope
from memories.models.access.api_keys import ordinary_scopes


class Command(HubCommand):
    help = "Make a key for the management API, of all tenants or of one; prints the key alone, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True, help="What will use it, e.g. terraform.")
        parser.add_argument("--tenant", default="", help="The slug of the only tenant that it manages.")
        parser.add_argument(
            "--gives",
            default=",".join(ordinary_scopes()),
            help=f"Scopes that it may give to keys (%(default)s); comma-separated: {', '.join(Scope.values)}",
        )
        parser.add_argument("--operators", action="store_true", help="It may manage operators, too, but no superuser.")
        parser.add_argument(
            "--expires-days",
            type=days,
            default=DEFAULT_DAYS,
            help="After how many days it is refused (%(default)s); 0: never.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        gives, now = scopes(options["gives"], option="--gives"), timezone.now()
        tenant = tenant_of(options["tenant"]) if options["tenant"] else None
        if tenant and options["operators"]:
            raise CommandError("Operators are of all tenants: leave --tenant out.")
        _, plaintext = create_management_key(
            name=key_name(options["name"]),
            tenant=tenant,
            gives=gives,
            operators=options["operators"],
            actor=Actor(kind=ActorKind.COMMAND),
            now=now,
            expires_at=now + timedelta(days=given) if (given := options["expires_days"]) else None,
        )
        self.stdout.write(plaintext)
