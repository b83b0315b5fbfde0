"""`manage.py read_authors`: reads whose words older turns hold. Prints counts and ids, never content."""

from typing import Any

from django.core.management.base import CommandParser

from memories.capture import rereading
from memories.management import HubCommand
from memories.management.arguments import tenant_of

_SHOWN = 20


class Command(HubCommand):
    help = (
        "Read whose words older turns of the user's role hold, which have no author. Without --apply nothing changes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, help="Slug of the tenant.")
        parser.add_argument("--apply", action="store_true", help="Write what was found.")

    def handle(self, *args: Any, **options: Any) -> None:
        found = rereading.reread(tenant_of(options["tenant"]), apply=options["apply"])
        total = sum(found.authors.values())
        counts = ", ".join(f"{count:,} {author}" for author, count in sorted(found.authors.items())) or "none"
        self.stdout.write(f"User turns without an author: {total:,} ({counts}); {found.mixed:,} with parts of others.")
        if found.facts:
            shown = ", ".join(map(str, sorted(found.facts)[:_SHOWN]))
            self.stdout.write(f"Facts that rest on no word of the person's: {len(found.facts):,} ({shown} …).")
            self.stdout.write("They stay as they are: look at them in the admin, where you can forget them.")
        if not options["apply"]:
            self.stdout.write("Nothing was changed. Call it with --apply to write this.")
