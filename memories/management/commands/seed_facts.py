"""`manage.py seed_facts`: adds many invented people and facts to a tenant, for measurements."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memories.management import HubCommand, counted, seeding
from memories.management.arguments import tenant_of
from memories.models import EndUser


class Command(HubCommand):
    help = "Add people seeded-0, seeded-1, … with facts of many ages to a tenant, to measure with."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug; it should have no people.")
        parser.add_argument("--people", required=True, type=int, help="How many to add, e.g. 20000.")
        parser.add_argument("--facts-per-person", type=int, default=50, help="1 to 5000.")
        parser.add_argument("--talk", action="store_true", help="Add sessions and what came of them, too.")
        parser.add_argument("--force", action="store_true", help="Although the tenant has people.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, people, facts_each = tenant_of(options["tenant"]), options["people"], options["facts_per_person"]
        if people < 1 or not 1 <= facts_each <= 5_000:
            raise CommandError("--people takes 1 or more, --facts-per-person 1 to 5000.")
        if EndUser.objects.filter(tenant=tenant).exists() and not options["force"]:
            raise CommandError("The tenant has people. Take one without, or say --force.")
        for count in seeding.seed_facts(tenant=tenant, people=people, facts_each=facts_each, now=timezone.now()):
            if options["verbosity"] > 1:
                self.stdout.write(counted(count, "fact"))
        if options["talk"]:
            for count in seeding.seed_sessions(tenant=tenant, now=timezone.now()):
                if options["verbosity"] > 1:
                    self.stdout.write(f"{counted(count, 'person', 'people')} with a session")
        self.stdout.write(f"{counted(people, 'person', 'people')} with {counted(facts_each, 'fact')} each.")
