"""`manage.py restore_drill --from FILE`, or `--base`, or `--to TIME`: shows beside the hub at work that a backup can be
restored.

It says how long that takes, how old the newest turn of the backup is, whether the invariants hold, and how many people
the erasure ledger would erase again. The hub's own database and its files are not touched.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db.models import Max
from django.utils import timezone

from memories.management import HubCommand, backups, base_backups, point_in_time
from memories.management.commands.restore import moment
from memories.models import EndUser, Episode, Fact, Turn
from memoryhub.embedded_postgres import EmbeddedPostgresError

COUNTED = (EndUser, Turn, Fact, Episode)


class Command(HubCommand):
    help = (
        "Restore a backup beside the hub's database, look at it, and delete it again. Exit code 1 when something is "
        "wrong with the backup or the erasure ledger. It needs room for another database on its disk; of a dump also "
        "the right to create databases."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--from", type=Path, metavar="FILE", dest="source")
        what.add_argument(
            "--base",
            action="store_true",
            help="The newest base backup with all WAL of MEMORYHUB_ARCHIVE, in a server of its own.",
        )
        what.add_argument(
            "--to",
            type=moment,
            metavar="TIME",
            dest="moment",
            help="As --base, but to this moment alone, e.g. 2026-11-03T09:00:00Z: what restore --to would give back.",
        )
        parser.add_argument("--ledger", type=Path, metavar="FILE", help="Another one than MEMORYHUB_ERASURE_LEDGER.")

    def handle(self, *, source: Path | None, moment: datetime | None, ledger: Path | None, **_options: Any) -> None:
        try:
            self._drill(source, moment, ledger)
        except EmbeddedPostgresError as error:
            raise CommandError(f"{error} The backup cannot be restored.") from error

    def _drill(self, source: Path | None, moment: datetime | None, ledger: Path | None) -> None:
        began = time.monotonic()
        with self._dump(source) if source else self._archive(moment):
            call_command("migrate", interactive=False, verbosity=0)
            self.stdout.write(f"Restored and migrated in {time.monotonic() - began:.1f} s: {_what_it_holds()}")
            wrong = self._complaint_of("check_memory")
            # Only says what it would do: the ledger is the hub's own.
            wrong += self._complaint_of("replay_erasures", "--dry-run", *(["--ledger", str(ledger)] if ledger else []))
        if wrong:
            raise CommandError(" ".join(wrong))
        self.stdout.write("The backup can be restored.")

    @contextmanager
    def _dump(self, source: Path) -> Iterator[None]:
        with backups.scratch_database():
            backups.read(source.absolute())
            yield

    @contextmanager
    def _archive(self, moment: datetime | None) -> Iterator[None]:
        with point_in_time.scratch_cluster(moment) as way:
            reached = f"WAL up to {base_backups.shown(moment)}" if moment else "all WAL"
            self.stdout.write(f"Recovered from the base backup {way.base.path.name} and {reached} of the archive.")
            yield

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
