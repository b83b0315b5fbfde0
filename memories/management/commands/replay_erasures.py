"""`manage.py replay_erasures`: after a restore, erases again who was erased since the backup."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from memories.audit import Actor
from memories.management import HubCommand
from memories.models import ActorKind
from memories.privacy import ledger, replaying

DAMAGE = {
    "changed": "is not as the hub wrote it, or was written with another pepper",
    "gap": "does not follow the line before it: some are missing",
    "torn": "was not written to its end; its erasure had not begun",
}


class Command(HubCommand):
    help = (
        "Erase again, by the erasure ledger, whom a restored backup brought back. Run it after every restore, before "
        "the hub is started. Twice does no more than once. Exit code 1 when something is left to be looked at."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--ledger", type=Path, metavar="FILE", help="Another one than MEMORYHUB_ERASURE_LEDGER.")
        parser.add_argument("--dry-run", action="store_true", help="Only say how many it would erase.")

    def handle(self, *args: Any, **options: Any) -> None:
        found = self._read(options["ledger"] or Path(settings.MEMORYHUB_ERASURE_LEDGER))
        if options["dry_run"]:
            people, unclear = replaying.find(found.entries)
            self.stdout.write(f"Erasures in the ledger: {len(found.entries)}. People to erase again: {len(people)}.")
            self._conclude(found, replaying.Replayed(len(found.entries), unclear=unclear))
            return
        done = replaying.replay(entries=found.entries, actor=Actor(kind=ActorKind.COMMAND), now=timezone.now())
        self.stdout.write(f"Erasures in the ledger: {done.entries}.")
        self.stdout.write(f"People erased again: {done.erased}.")
        self.stdout.write(f"Tombstones put back where nobody was: {done.tombstones}.")
        self._conclude(found, done)

    def _read(self, path: Path) -> ledger.Ledger:
        try:
            return ledger.read(path)
        except OSError as error:
            raise CommandError(
                f"The ledger {path} cannot be read: {error.strerror}. Say which with --ledger."
            ) from error

    def _conclude(self, found: ledger.Ledger, done: replaying.Replayed) -> None:
        """Print what somebody has to look at. Errors: CommandError when there is something."""
        left = [f"Line {number} {DAMAGE[code]}." for number, code in found.damage]
        left += [f"End user {row} could not be erased again: see their case, and run it again." for row in done.failed]
        left += [
            f"The erased id {row} leads to somebody else in this backup: part the two people, then run this again."
            for row in done.unclear
        ]
        left += [f"The ledger lacks the erasure of case {case}." for case in replaying.missing_in(found.entries)]
        for sentence in left:
            self.stderr.write(sentence)
        if left:
            raise CommandError(f"To be looked at: {len(left)}.")
