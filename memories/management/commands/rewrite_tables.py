"""`manage.py rewrite_tables`: removes erased rows from the disk, at hours at which tables may be locked."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from memories.management import HubCommand, counted, distributing
from memories.privacy import rewriting
from memories.privacy.rewriting import RewriteHours

REASONS = {
    rewriting.BUSY: "somebody works on it, or another rewrite is under way",
    rewriting.SEEN: "a transaction is open that may see what was deleted",
    rewriting.ERASING: "an erasure is under way",
    rewriting.DENIED: "its owner alone may rewrite it; run this with MEMORYHUB_OWNER_URL",
    rewriting.LONG: "there is not enough time left for it",
}
A_DAY = timedelta(days=1)


def hours(text: str) -> RewriteHours:
    try:
        return RewriteHours.of(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} are no hours like 02:00-04:30") from None


class Command(HubCommand):
    help = (
        "Write the tables anew from which people were erased since it was last done (VACUUM FULL), so that nothing of "
        "them is left in their files. Each is locked for everybody meanwhile. Without --now only within the window."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        when = parser.add_mutually_exclusive_group()
        when.add_argument("--window", type=hours, help="Hours in UTC, like 02:00-04:30; default: the settings'.")
        when.add_argument("--now", action="store_true", help="At once, for up to a day.")

    def handle(self, *args: Any, **options: Any) -> None:
        distributing.require_one_server("The coordinator does not see who still reads on the nodes.")
        now = timezone.now()
        result = rewriting.rewrite(until=now + A_DAY if options["now"] else _end_of(options["window"], now))
        for table in result.done:
            self.stdout.write(f"{table}: rewritten")
        for table, reason in result.left.items():
            self.stdout.write(f"{table}: left, for {REASONS[reason]}")
        if result.done and not rewriting.flush():
            self.stdout.write("The account may not end the log of changes: have an administrator run CHECKPOINT.")
        self.stdout.write(
            f"{counted(len(result.done), 'table')} rewritten. The log of changes (WAL) still has what was deleted."
        )
        if result.left:
            raise CommandError(f"{counted(len(result.left), 'table is', 'tables are')} left: run it again.")


def _end_of(window: RewriteHours | None, now: datetime) -> datetime:
    """The end of the window, by default the settings'. Errors: CommandError."""
    if window is None and not settings.MEMORYHUB_REWRITE_WINDOW:
        raise CommandError("Say when: --window HH:MM-HH:MM, MEMORYHUB_REWRITE_WINDOW or --now.")
    end = (window or RewriteHours.of(settings.MEMORYHUB_REWRITE_WINDOW)).end_of(now)
    if end is None:
        raise CommandError("The window is closed.")
    return end
