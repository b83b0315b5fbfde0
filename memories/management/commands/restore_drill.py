"""`manage.py restore_drill --from FILE`: shows that a backup can be restored, beside the hub at work.

It says how long that takes, how old the newest turn of the backup is, whether the invariants hold, and how many people
the erasure ledger would erase again. The hub's own database and its files are not touched.
"""

import time
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Max
from django.utils import timezone

from memories.management import backups
from memories.models import EndUser, Episode, Fact, Turn

COUNTED = (EndUser, Turn, Fact, Episode)


class Command(BaseCommand):
    help = (
        "Restore a backup into a database of its own beside the hub's, look at it, and delete it again. Exit code 1 "
        "when something is wrong with the backup or the erasure ledger. It needs room for another database on its "
        "disk, and the right to create databases."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from", required=True, type=Path, metavar="FILE", dest="source")
        parser.add_argument("--ledger", type=Path, metavar="FILE", help="Another one than MEMORYHUB_ERASURE_LEDGER.")

    def handle(self, *, source: Path, ledger: Path | None, **_options: Any) -> None:
        began = time.monotonic()
        with backups.scratch_database():
            backups.read(source.absolute())
            call_command("migrate", interactive=False, verbosity=0)
            self.stdout.write(f"Restored and migrated in {time.monotonic() - began:.1f} s: {_what_it_holds()}")
            wrong = self._complaint_of("check_memory")
            # Only says what it would do: the ledger is the hub's own.
            wrong += self._complaint_of("replay_erasures", "--dry-run", *(["--ledger", str(ledger)] if ledger else []))
        if wrong:
            raise CommandError(" ".join(wrong))
        self.stdout.write("The backup can be restored.")

    def _complaint_of(self, command: str, *arguments: str) -> list[str]:
        try:
            call_command(command, *arguments, stdout=self.stdout, stderr=self.stderr)
        except CommandError as error:
            return [str(error)]
        return []


def _what_it_holds() -> str:
    counts = ", ".join(f"{model._meta.verbose_name_plural} {model._default_manager.count():,}" for model in COUNTED)
    newest = Turn.objects.aggregate(newest=Max("created_at"))["newest"]
    return f"{counts}. " + (f"The newest turn is of {timezone.localtime(newest):%Y-%m-%d %H:%M}." if newest else "")
