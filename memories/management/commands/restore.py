"""`manage.py restore --from FILE`: restores a backup in one transaction, then migrates. `restore --to TIME` restores
the embedded server to a moment, from base backup and archived WAL, and erases again whom that brought back."""

from argparse import ArgumentTypeError
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories.management import HubCommand, backups, base_backups, point_in_time
from memories.privacy import replaying
from memories.retrieval import turn_files
from memoryhub.embedded_postgres import EmbeddedPostgresError


class Command(HubCommand):
    help = "Restore a backup into an empty database, or the embedded server to a moment; stop web and worker first."
    # There may be no tables.
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--from", type=Path, metavar="FILE", dest="source")
        what.add_argument(
            "--to",
            type=moment,
            metavar="TIME",
            dest="moment",
            help="A moment with its zone, e.g. 2026-11-03T09:00:00Z.",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="Delete what the database holds; with --to, the data of before are kept aside.",
        )
        parser.add_argument(
            "--ledger", type=Path, metavar="FILE", help="With --to: another one than MEMORYHUB_ERASURE_LEDGER."
        )

    def handle(
        self, *, source: Path | None, moment: datetime | None, replace: bool, ledger: Path | None, **_options: Any
    ) -> None:
        if source is None and moment is not None:
            self._to(moment, replace, ledger)
        elif source is not None:
            self._from(source, replace)

    def _from(self, source: Path, replace: bool) -> None:
        held = "" if replace else backups.what_is_there()
        if held:
            raise CommandError(f"The database holds {held}. Give --replace to delete all of it for the backup.")
        backups.read(source.absolute())
        turn_files.clear()
        call_command("migrate", interactive=False, verbosity=0)
        replaying.end_leases_and_exports()
        self.stdout.write("Restored. Run manage.py replay_erasures and manage.py check_memory, then start the hub.")

    def _to(self, moment: datetime, replace: bool, ledger: Path | None) -> None:
        try:
            left = point_in_time.restore(
                moment, ledger_file=ledger, replace=replace, stdout=self.stdout, stderr=self.stderr
            )
        except EmbeddedPostgresError as error:
            raise CommandError(f"{error} Nothing was restored.") from error
        turn_files.clear()
        self.stdout.write(f"Restored to {base_backups.shown(moment)}. The data of before are kept aside.")
        for sentence in left:
            self.stderr.write(sentence)
        if left:
            raise CommandError(f"To be looked at: {len(left)}.")
        self.stdout.write("Take a base backup (manage.py backup --base), then start the hub.")


def moment(text: str) -> datetime:
    """A date and time with its zone: an hour that is off would restore something else."""
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or timezone.is_naive(found):
        raise ArgumentTypeError(f"{text!r} is no date and time with a zone like 2026-11-03T09:00:00Z")
    return found
