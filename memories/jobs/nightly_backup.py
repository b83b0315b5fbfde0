"""Begins the nightly backup, where one is asked for, as a process beside the worker's cluster.

It is due once a night has begun in which nobody has made one: also in the morning, after a night in which the machine
was off, and at once in a hub that never had one. After a failure it is tried again half an hour later.
"""

import logging
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from memories.jobs.supervision import Child, ending, own_command
from memories.models import Backup

LOOK_SECONDS = 60.0
RETRY_AFTER = timedelta(minutes=30)

logger = logging.getLogger(__name__)


def is_due(*, now: datetime) -> bool:
    """Whether a nightly backup is asked for, and none was made since the night began or failed just now."""
    kind = settings.MEMORYHUB_BACKUP_NIGHTLY
    if not kind:
        return False
    # When the last night began, by the hour of the settings in UTC.
    night = now.astimezone(UTC).replace(hour=settings.MEMORYHUB_BACKUP_HOUR, minute=0, second=0, microsecond=0)
    if night > now:
        night -= timedelta(days=1)
    attempts = Backup.objects.filter(kind=kind)
    made = attempts.made().filter(started_at__gte=night, started_at__lte=now)
    return not made.exists() and not attempts.filter(failed=True, finished_at__gt=now - RETRY_AFTER).exists()


class NightlyBackup(Child):
    """The process of `manage.py backup --nightly`, which ends by itself."""

    def __init__(self) -> None:
        super().__init__("nightly backup", own_command("backup", "--nightly"))
        self._look_at = 0.0

    def look(self, *, now: float, leash: int) -> None:
        """Begin it when it is due, and say in the log when it failed. `now` is monotonic seconds."""
        if self.process is not None:
            if (exit_code := self.process.poll()) is not None:
                self.kill()
                self.process = None
                if exit_code:
                    logger.error("The nightly backup ended with %s; it is tried again later", ending(exit_code))
        elif settings.MEMORYHUB_BACKUP_NIGHTLY and now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            if self._is_due():
                super().look(now=now, leash=leash)

    def _is_due(self) -> bool:
        try:
            return is_due(now=timezone.now())
        except (DatabaseError, InterfaceError):
            return False
        finally:
            # This thread asks once a minute: it keeps no connection.
            connections.close_all()
