"""`manage.py backup --to FILE`: one snapshot of the whole database in one file."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memories.management import backups


class Command(BaseCommand):
    help = "Write a backup of the whole database; the file is complete or absent, and readable by its owner alone."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", required=True, type=Path, metavar="FILE", help="Replaced when it exists.")

    def handle(self, *, to: Path, **_options: Any) -> None:
        size = backups.write(to.absolute())
        self.stdout.write(f"{to}: {size} bytes. The secret key is not in it; keep that too (docs/operating.md).")
