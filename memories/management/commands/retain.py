"""`manage.py retain`: counts, and with --confirm deletes, what a tenant's retention periods do not keep."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memories.exceptions import MemoryHubError
from memories.management import HubCommand
from memories.management.arguments import moment, tenant_of
from memories.privacy import retention


class Command(HubCommand):
    help = (
        "Say what of a tenant is older than its numbers of retention allow; with --confirm delete it for good, here "
        "and now. Exit code 1: a pass is under way."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug.")
        parser.add_argument("--now", type=moment, help="As if it were this moment, like 2026-11-03T09:00:00Z.")
        parser.add_argument("--confirm", action="store_true", help="Delete it; nothing brings it back.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, as_of = tenant_of(options["tenant"]), options["now"] or timezone.now()
        if not options["confirm"]:
            self._write_counts(retention.preview(tenant, as_of))
            self.stdout.write("Nothing was deleted: --confirm does it.")
            return
        try:
            done = retention.retain(tenant=tenant, now=timezone.now(), as_of=as_of)
        except MemoryHubError as error:
            raise CommandError(error.detail) from error
        self._write_counts(done.counts)
        self.stdout.write(f"Deleted by pass {done.pk}.")

    def _write_counts(self, counts: dict[str, int]) -> None:
        for name, count in counts.items():
            self.stdout.write(f"{count} {name}")
