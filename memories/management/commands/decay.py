"""`manage.py decay`: one pass of forgetting for a tenant, here and now, or what it would take; counts only."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from memories import conf
from memories.exceptions import MemoryHubError
from memories.management.arguments import moment, tenant_of
from memories.models import DecayPass
from memories.pipeline import decay, upkeep, upkeep_passes

# Exit code of a pass that the brake holds.
HELD = 3


class Command(BaseCommand):
    help = (
        "Move what has faded or expired to the trash, delete what was there for long enough. Exit code 3: it would "
        "take more than the brake allows, and took only what has expired; look with --preview, then say --confirm."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug.")
        parser.add_argument("--now", type=moment, help="As if it were this moment, like 2026-11-03T09:00:00Z.")
        parser.add_argument("--preview", action="store_true", help="Only say what the pass would take.")
        parser.add_argument("--upkeep", action="store_true", help="Then the upkeep of a night, by the language model.")
        parser.add_argument("--confirm", action="store_true", help="Take it, however much it is.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, now = tenant_of(options["tenant"]), options["now"] or timezone.now()
        if options["preview"]:
            self._tell(decay.preview(tenant, now))
            return
        hindrance = upkeep_passes.hindrance(conf.rules(tenant)) if options["upkeep"] else ""
        if hindrance:
            raise CommandError(hindrance)
        try:
            done = decay.forget(tenant=tenant, now=now, trigger=DecayPass.Trigger.COMMAND, confirm=options["confirm"])
        except MemoryHubError as error:
            raise CommandError(error.detail) from error
        self._tell_of(done)
        if options["upkeep"]:
            self._keep_up(done, now)

    def _keep_up(self, done: DecayPass, now: datetime) -> None:
        try:
            is_over = upkeep.keep_up(row=done, now=now)
        except MemoryHubError as error:
            raise CommandError(error.detail) from error
        told = ", ".join(f"{done.counts.get(name, 0)} {name}" for name in upkeep_passes.COUNTED)
        self.stdout.write(f"Upkeep: {told}.")
        if not is_over:
            raise CommandError("The model's endpoint rests: a worker goes on with it.")

    def _tell_of(self, done: DecayPass) -> None:
        self.stdout.write(f"Pass {done.pk}: {', '.join(f'{count} {name}' for name, count in done.counts.items())}.")
        if done.state == DecayPass.State.HELD:
            raise CommandError("The brake holds it: look with --preview, then say --confirm.", returncode=HELD)

    def _tell(self, told: decay.Preview) -> None:
        for name, count in told.counts.items():
            self.stdout.write(f"{count} {name}")
        self.stdout.write(f"of {told.memories} memories.")
        for kind, ids in (("fact", told.facts), ("episode", told.episodes)):
            for memory_id in ids:
                self.stdout.write(f"    {kind} {memory_id}")
        if told.is_held:
            self.stdout.write("The brake would hold it: --confirm takes it all.")
