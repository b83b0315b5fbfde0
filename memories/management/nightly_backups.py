"""The backup that the hub makes each night, and the record of all that are made."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.management import CommandError
from django.db import connection
from django.utils import timezone

from memories.db.sessions import own_session
from memories.jobs import nightly_backup
from memories.management import backups, base_backups
from memories.models import Backup

# Any number, the same for all: of all hosts one makes the backup of a night. It ends with the session that holds it.
BACKUP_LOCK = 6_110_311
PREFIX, SUFFIX = "hub-", ".backup"


def tonight(*, now: datetime) -> str:
    """Make the backup of this night, and delete what is too old. Returns where it is; "" when it is not due, or another
    process makes it. Errors: CommandError."""
    with own_session(), _alone() as is_alone:
        # Another host may have made it just before.
        if not (is_alone and nightly_backup.is_due(now=now)):
            return ""
        if settings.MEMORYHUB_BACKUP_NIGHTLY == Backup.Kind.BASE:
            return str(base(nightly=True).path)
        folder = Path(settings.MEMORYHUB_BACKUP_FOLDER)
        path = folder / f"{PREFIX}{now.astimezone(UTC):{base_backups.STAMP}}{SUFFIX}"
        try:
            # Not its parents: one may be a disk that is not mounted.
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise CommandError(f"{folder} cannot be made: {error.strerror}.") from error
        dump(path, nightly=True)
        prune(folder, now=now, days=settings.MEMORYHUB_BACKUP_DAYS)
        return str(path)


def dump(path: Path, *, nightly: bool = False) -> int:
    """Write a dump to the file, and record it. Returns its size. Errors: CommandError."""
    with _recorded(Backup.Kind.DUMP, nightly) as sizes:
        sizes.append(backups.write(path))
    return sizes[0]


def base(*, nightly: bool = False) -> base_backups.BaseBackup:
    """Take a base backup, and record it. Errors: CommandError."""
    with _recorded(Backup.Kind.BASE, nightly) as sizes:
        made = base_backups.take()
        sizes.append(made.size)
    return made


def prune(folder: Path, *, now: datetime, days: int) -> int:
    """Delete nightly dumps of before so many days, never the newest; how many."""
    found = ((_moment(path), path) for path in folder.glob(f"{PREFIX}*{SUFFIX}"))
    made = sorted((moment, path) for moment, path in found if moment)
    old = [path for moment, path in made[:-1] if moment < now - timedelta(days=days)]
    for path in old:
        path.unlink()
    for draft in folder.glob(f".{PREFIX}*"):
        # Of a process that was killed.
        if time.time() - draft.stat().st_mtime > timedelta(days=1).total_seconds():
            draft.unlink()
    return len(old)


def _moment(path: Path) -> datetime | None:
    """When the file was made, by its name; None of one that somebody else named so."""
    text = path.name.removeprefix(PREFIX).removesuffix(SUFFIX)
    try:
        return datetime.strptime(f"{text}+0000", f"{base_backups.STAMP}%z")
    except ValueError:
        return None


@contextmanager
def _recorded(kind: str, nightly: bool) -> Iterator[list[int]]:
    """Note how the backup in the block ended; it adds its size."""
    sizes: list[int] = []
    row = Backup(kind=kind, nightly=nightly, started_at=timezone.now(), failed=True)
    try:
        yield sizes
        row.failed, row.size = False, sizes[0]
    finally:
        row.finished_at = timezone.now()
        row.save(force_insert=True)


@contextmanager
def _alone() -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [BACKUP_LOCK])
        [is_alone] = cursor.fetchone()
    try:
        yield is_alone
    finally:
        if is_alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [BACKUP_LOCK])
