"""`manage.py decay`: one decay pass for a tenant in this process, or a preview. Prints only counts and ids."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memories import conf
from memories.exceptions import MemoryHubError
from memories.forgetting import decay, upkeep
from memories.management import HubCommand, counted
from memories.management.arguments import moment, tenant_of
from memories.models import DecayPass

# Exit code of a pass that the brake holds.
HELD = 3


class Command(HubCommand):
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
            self._write_preview(decay.preview(tenant, now))
            return
        reason_disabled = upkeep.reason_disabled(conf.rules(tenant), tenant) if options["upkeep"] else ""
        if reason_disabled:
            raise CommandError(reason_disabled)
        try:
            done = decay.forget(tenant=tenant, now=now, trigger=DecayPass.Trigger.COMMAND, confirm=options["confirm"])
        except MemoryHubError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(f"Pass {done.pk}: {', '.join(f'{count} {name}' for name, count in done.counts.items())}.")
        if done.state == DecayPass.PassState.HELD:
            raise CommandError("The brake holds it: look with --preview, then say --confirm.", returncode=HELD)
        if options["upkeep"]:
            self._keep_up(done, now)

    def _keep_up(self, done: DecayPass, now: datetime) -> None:
        try:
            is_over = upkeep.run(row=done, now=now)
        except MemoryHubError as error:
            raise CommandError(error.detail) from error
        counts = ", ".join(f"{done.counts.get(name, 0)} {name}" for name in upkeep.COUNTED)
        self.stdout.write(f"Upkeep: {counts}.")
        if not is_over:
            raise CommandError("The model's endpoint rests: a worker goes on with it.")

    def _write_preview(self, preview: decay.PassPreview) -> None:
        for name, count in preview.counts.items():
            self.stdout.write(f"{count} {name}")
        self.stdout.write(f"of {counted(preview.memories, 'memory', 'memories')}.")
        for kind, ids in (("fact", preview.facts), ("episode", preview.episodes)):
            for memory_id in ids:
                self.stdout.write(f"    {kind} {memory_id}")
        if preview.is_held:
            self.stdout.write("The brake would hold it: --confirm takes it all.")
