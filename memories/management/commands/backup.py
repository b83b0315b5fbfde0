"""`manage.py backup --to FILE`: one snapshot of the whole database in one file. `backup --base`: a copy of the embedded
server's files, from which `restore --to` leads to every moment since."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memories.management import backups, base_backups


class Command(BaseCommand):
    help = "Write a backup of the whole database; it is complete or absent, and readable by its owner alone."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--to", type=Path, metavar="FILE", help="Replaced when it exists.")
        what.add_argument(
            "--base", action="store_true", help="A base backup of the embedded server, into MEMORYHUB_ARCHIVE."
        )

    def handle(self, *, to: Path | None, base: bool, **_options: Any) -> None:
        if to is not None:
            size = backups.write(to.absolute())
            self.stdout.write(f"{to}: {size} bytes. The secret key is not in it; keep that too (docs/operating.md).")
        elif base:
            made = base_backups.take()
            self.stdout.write(
                f"{made.path}: {made.size} bytes, verified. The secret key is not in it; keep that too "
                "(docs/operating.md)."
            )
