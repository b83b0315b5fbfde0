"""Restore the embedded server to a moment, from base backup and archived WAL.

All of it happens beside the data of now: recovery, migrations, erasures that are done again. Only then do the restored
data take their place. Whoever kills it before leaves the hub as it was, and begins anew.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections
from django.utils import timezone

from memories import private_files
from memories.management import backups, base_backups, withdrawals
from memories.management.base_backups import RecoveryPath
from memories.management.withdrawals import Withdrawals
from memories.privacy import ledger, replaying
from memoryhub import embedded_postgres
from memoryhub.embedded_postgres import EmbeddedPostgresError, archive, recovery, server
from memoryhub.embedded_postgres.place import Place, locate

# The home of a drill, in the hub's.
DRILL = "drill"
# Of a base backup: itself, and WAL that is replayed.
ROOM = 1.5
UNREADABLE = (
    "The data of before could not be read. Keys that were revoked, restrictions, redacted turns and operators who left "
    "since then are as they were at that moment: look at them before you start the hub."
)


def restore(moment: datetime, *, ledger_file: Path | None, replace: bool, stdout: Any, stderr: Any) -> list[str]:
    """Restore the hub to the moment. Returns what somebody has to look at. Errors: CommandError."""
    kept = base_backups.folder()
    if not kept.is_dir():
        raise CommandError(f"There is no archive {kept}.")
    path, left = _ledger(ledger_file, kept)
    with recovery.alone(settings.HOME) as place, base_backups.only_one(kept):
        found = _close(place, moment, path, replace=replace)
        left += [] if found or not place.data.is_dir() else [UNREADABLE]
        way = base_backups.way_to(moment, kept, archive.segments_left(place.data))
        _require_room(place, way.base)
        stdout.write(f"Recovering to {base_backups.shown(moment)} from the base backup {way.base.path.name} …")
        with recovery.recovered(place, base=way.base.path, kept=kept, until=moment, timeline=way.timeline):
            call_command("migrate", interactive=False, verbosity=0)
            replaying.end_leases_and_exports()
            for sentence in withdrawals.apply(found, now=timezone.now()) if found else ():
                stdout.write(sentence)
            for command, *arguments in (("replay_erasures", "--ledger", str(path)), ("check_memory",)):
                try:
                    call_command(command, *arguments, stdout=stdout, stderr=stderr)
                except CommandError as error:
                    left.append(f"{command}: {error}")
            connections.close_all()
    return left


@contextmanager
def scratch_cluster(moment: datetime | None = None) -> Iterator[RecoveryPath]:
    """A server of its own beside the hub's, with all that the archive leads to, or with the data of the moment. Within
    the block the connection leads there; afterwards it is gone. That of a process that was killed stays until the next.

    Errors: CommandError, EmbeddedPostgresError.
    """
    kept, home = base_backups.folder(), Path(settings.HOME) / DRILL
    if not kept.is_dir():
        raise CommandError(f"There is no archive {kept}.")
    with base_backups.only_one(kept):
        try:
            with recovery.alone(home) as place:
                way = base_backups.way_to(moment, kept) if moment else base_backups.way_to_the_end(kept)
                _require_room(place, way.base)
                base, timeline = way.base.path, way.timeline
                with (
                    recovery.recovering(place, base=base, kept=kept, timeline=timeline, until=moment, is_scratch=True),
                    _connected_to(home),
                ):
                    yield way
        finally:
            located = locate(home)
            for folder in {located.base, located.sockets, home}:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _connected_to(home: Path) -> Iterator[None]:
    """The connection leads to the server of this home."""
    own = connection.settings_dict
    found = embedded_postgres.connection(home)
    there = {name.upper(): found[name] for name in ("host", "port", "user", "password")} | {"NAME": found["dbname"]}
    connections.close_all()
    before = {name: own[name] for name in there}
    own.update(there)
    try:
        yield
    finally:
        connections.close_all()
        own.update(before)


def _ledger(given: Path | None, kept: Path) -> tuple[Path, list[str]]:
    """The ledger to replay: that given, or the hub's, or if that is lost the archive's copy. Errors: CommandError."""
    own, copy = Path(settings.MEMORYHUB_ERASURE_LEDGER), base_backups.ledger_copy(kept)
    if given or own.is_file():
        return given or own, []
    if not copy.is_file():
        raise CommandError(f"There is no ledger of erasures, neither {own} nor {copy}. Say which with --ledger.")
    private_files.write(own, copy.read_bytes())
    note = f"The ledger of erasures {own} was lost: it is now the archive's copy, which may lack the last erasures."
    return own, [note] if copy.stat().st_size else []


def _close(place: Place, moment: datetime, path: Path, *, replace: bool) -> Withdrawals | None:
    """Read what must not come back from the data of now, and have all their WAL archived. None: they cannot be read.

    Errors: CommandError when there are some and `replace` was not given, or the ledger lacks an erasure.
    """
    if not place.data.is_dir():
        return None
    try:
        server.start(place, fast=False)
        held = backups.what_is_there()
        if held and not replace:
            raise CommandError(
                f"The database holds {held}. Give --replace to put the restored data in their place; they are kept "
                f"aside in {place.base}."
            )
        found = withdrawals.read(moment, ledger.read(path).entries)
        # Recovery to a moment ends at the first commit after it. If nothing was written since, this is the one.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id()")
    except (DatabaseError, EmbeddedPostgresError):
        return None
    finally:
        connections.close_all()
        # A server that stops in order archives all that it wrote.
        server.stop(place)
    if found.unnoted:
        raise CommandError(
            f"The ledger lacks the erasures of cases {', '.join(map(str, found.unnoted))}: who was erased would come "
            "back. Say with --ledger which one has them."
        )
    return found


def _require_room(place: Place, base: base_backups.BaseBackup) -> None:
    needed, free = int(base.size * ROOM), shutil.disk_usage(place.base).free
    if free < needed:
        raise CommandError(
            f"{place.base} has {free / 2**30:.1f} GiB free, a restore needs {needed / 2**30:.1f}. The data of now stay "
            "beside the restored ones."
        )
