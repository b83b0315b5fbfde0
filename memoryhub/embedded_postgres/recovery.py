"""Recover a base backup and WAL of the archive to a moment, beside the data of now, and put the result in their place.

The data of now are untouched until all is done, and kept aside then. Whoever dies in between leaves one of two whole
data folders. Standard library only.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from memoryhub.embedded_postgres import archive, locks, server
from memoryhub.embedded_postgres.errors import EmbeddedPostgresError
from memoryhub.embedded_postgres.place import RESTORED, RESTORING, Place, locate

ASIDE = "data.before-"
STAMP = "%Y%m%dT%H%M%SZ"
# Its socket lies in a folder that nobody else enters, and the passwords in the backup may be another home's.
TRUST = "local all all trust\n"


@contextmanager
def alone(home: Path) -> Iterator[Place]:
    """Nobody else uses the server of this home while the block lasts. It runs only if the block starts it.

    :raises EmbeddedPostgresError: the hub or another command uses it.
    """
    place = locate(home)
    users = locks.open_lock(place.users_lock)
    try:
        if not locks.try_lock(users):
            raise EmbeddedPostgresError("The hub or another of its commands is running: stop it first.")
        # Of a hub that was killed.
        server.stop(place)
        try:
            yield place
        finally:
            server.stop(place)
    finally:
        os.close(users)


@contextmanager
def recovered(place: Place, *, base: Path, kept: Path, until: datetime, timeline: int) -> Iterator[None]:
    """A server with the data of `until` while the block lasts. If that ends well, they take the place of those of now.

    :raises EmbeddedPostgresError: the archive does not lead there.
    """
    fresh = place.with_data(RESTORING)
    shutil.rmtree(place.with_data(RESTORED).data, ignore_errors=True)
    with recovering(fresh, base=base, kept=kept, until=until, timeline=timeline):
        yield
    # From here on its timeline is taken.
    archive.keep_history(fresh, kept)
    _swap(place, fresh)


@contextmanager
def recovering(
    place: Place, *, base: Path, kept: Path, timeline: int, until: datetime | None = None, is_scratch: bool = False
) -> Iterator[None]:
    """A server in the place's data folder, with the data of `until`, while the block lasts. Without a moment it has all
    that the archive leads to. Of scratch nothing need reach the disk.

    :raises EmbeddedPostgresError: the archive does not lead there.
    """
    shutil.rmtree(place.data, ignore_errors=True)
    hba = place.base / "pg_hba.restoring.conf"
    archive.write(hba, TRUST.encode())
    _copy(base, place)
    if place.account:
        place.account.give(hba)
    settings = {
        "archive_mode": "off",
        "hba_file": str(hba),
        "hot_standby": "off",
        "restore_command": archive.restore_command(place, kept),
        "recovery_target_timeline": str(timeline),
        "recovery_target_action": "promote",
        **({"recovery_target_time": until.isoformat()} if until else {}),
        **(server.FAST_SETTINGS if is_scratch else {}),
    }
    try:
        server.recover(place, settings)
        yield
    finally:
        server.stop(place)
        hba.unlink(missing_ok=True)


def asides(place: Place) -> list[tuple[datetime, Path]]:
    """Data folders that restores kept aside, with the moment, oldest first."""
    found = []
    for path in place.base.glob(f"{ASIDE}*"):
        try:
            found.append((datetime.strptime(path.name.removeprefix(ASIDE) + "+0000", f"{STAMP}%z"), path))
        except ValueError:
            continue
    return sorted(found)


def _copy(base: Path, fresh: Place) -> None:
    shutil.copytree(base, fresh.data)
    (fresh.data / "recovery.signal").touch(mode=0o600)
    fresh.data.chmod(0o700)
    if fresh.account:
        for path in (fresh.data, *fresh.data.rglob("*")):
            fresh.account.give(path)


def _swap(place: Place, fresh: Place) -> None:
    """One name for one other; when there is no data folder, `server.start` takes the one that is complete."""
    restored = place.with_data(RESTORED).data
    with locks.exclusive(place.start_lock):
        fresh.data.rename(restored)
        if place.data.is_dir():
            place.data.rename(place.base / (ASIDE + datetime.now(UTC).strftime(STAMP)))
            archive.sync(place.base)
        restored.rename(place.data)
        archive.sync(place.base)
