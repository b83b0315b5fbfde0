"""`manage.py check_memory`: checks the stored data against the invariants. Prints ids and counts, never content."""

from typing import Any

from django.core.management.base import CommandError

from memories import invariants
from memories.management import HubCommand


class Command(HubCommand):
    help = "Check the invariants of the stored data; exit code 1 and the ids of what breaks one."

    def handle(self, *args: Any, **options: Any) -> None:
        found = invariants.check()
        for broken in found:
            more = f" and {broken.count - len(broken.ids)} more" if broken.count > len(broken.ids) else ""
            self.stdout.write(f"{broken.name}: broken by {broken.count}. {broken.says}")
            self.stdout.write(f"    {', '.join(map(str, broken.ids))}{more}")
        if found:
            raise CommandError(f"{len(found)} of {len(invariants.INVARIANTS)} invariants do not hold.")
        self.stdout.write(f"All {len(invariants.INVARIANTS)} invariants hold.")
