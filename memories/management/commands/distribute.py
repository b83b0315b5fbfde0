"""`manage.py distribute`: place the tables of a migrated database on the nodes of a Citus cluster."""

from typing import Any

from memories.management import HubCommand
from memories.management.distributing import distribute


class Command(HubCommand):
    help = "Place the tables on the nodes of a Citus cluster: those of tenants by tenant (docs/distributed.md)."

    def handle(self, *_args: Any, **_options: Any) -> None:
        counts = distribute()
        self.stdout.write(", ".join(f"{count} {kind}" for kind, count in counts.items()))
