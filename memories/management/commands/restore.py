"""`manage.py restore --from FILE`: restores a backup in one transaction, then migrates."""

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memories.management import backups
from memories.privacy import replaying


class Command(BaseCommand):
    help = "Restore a backup into an empty database; stop web and worker first."
    # There may be no tables.
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from", required=True, type=Path, metavar="FILE", dest="source")
        parser.add_argument("--replace", action="store_true", help="Delete what the database holds.")

    def handle(self, *, source: Path, replace: bool, **_options: Any) -> None:
        held = "" if replace else backups.what_is_there()
        if held:
            raise CommandError(f"The database holds {held}. Give --replace to delete all of it for the backup.")
        backups.read(source.absolute())
        call_command("migrate", interactive=False, verbosity=0)
        replaying.settle()
        self.stdout.write("Restored. Run manage.py replay_erasures and manage.py check_memory, then start the hub.")
