"""`manage.py backup --to FILE`: one snapshot of the whole database in one file. `backup --base`: a copy of the embedded
server's files, from which `restore --to` leads to every moment since. `backup --nightly`: what the worker begins."""

from argparse import SUPPRESS
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memories.jobs.supervision import follow_parent
from memories.management import HubCommand, nightly_backups

# A dump or a copy that is cut off leaves nothing.
GRACE_SECONDS = 5.0


class Command(HubCommand):
    help = "Write a backup of the whole database; it is complete or absent, and readable by its owner alone."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--to", type=Path, metavar="FILE", help="Replaced when it exists.")
        what.add_argument(
            "--base", action="store_true", help="A base backup of the embedded server, into MEMORYHUB_ARCHIVE."
        )
        what.add_argument(
            "--nightly",
            action="store_true",
            help="What MEMORYHUB_BACKUP_NIGHTLY says, if it is due.",
        )
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, to: Path | None, base: bool, supervised: bool, **_options: Any) -> None:
        if supervised:
            follow_parent(grace=GRACE_SECONDS)
        if to is not None:
            size = nightly_backups.dump(to.absolute())
            self.stdout.write(f"{to}: {size} bytes. The secret key is not in it; keep that too (docs/operating.md).")
        elif base:
            made = nightly_backups.base()
            self.stdout.write(
                f"{made.path}: {made.size} bytes, verified. The secret key is not in it; keep that too "
                "(docs/operating.md)."
            )
        else:
            path = nightly_backups.tonight(now=timezone.now())
            self.stdout.write(f"{path}: made." if path else "Nothing is due, or another process makes it.")
