"""Base backups of the embedded server, and what they and the archived WAL lead back to.

A base backup is a copy of the server's files, `base/MOMENT`, with a note `base/MOMENT.json` that is written once the
copy was verified. A copy without its note counts as nothing. With the WAL since then every moment can be restored.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.management import CommandError
from django.db import connection
from psycopg.conninfo import make_conninfo

from memoryhub import embedded_postgres
from memoryhub.embedded_postgres import archive, recovery
from memoryhub.embedded_postgres.place import locate

STAMP = recovery.STAMP
BEGINS = re.compile(r"^START WAL LOCATION: (\S+) \(file ([0-9A-F]{24})\)$", re.MULTILINE)


@dataclass(frozen=True)
class BaseBackup:
    """`finished`: the first moment that it leads to. `begins` and `ends`: positions in the WAL of its timeline."""

    path: Path
    finished: datetime
    timeline: int
    begins: int
    ends: int
    size: int

    @property
    def note(self) -> Path:
        return self.path.with_suffix(".json")


@dataclass(frozen=True)
class RecoveryPath:
    """How a moment is reached: the base backup, and the timeline on which the hub was then."""

    base: BaseBackup
    timeline: int


def folder() -> Path:
    """The archive. Errors: CommandError when there is none."""
    if os.environ.get("DATABASE_URL", "").strip():
        raise CommandError(
            "The database is a server of your own (DATABASE_URL): archive its WAL and take its base backups there."
        )
    kept = archive.folder()
    if kept is None:
        raise CommandError("There is no archive: set MEMORYHUB_ARCHIVE to a folder, apart from the database.")
    return kept


def take() -> BaseBackup:
    """Copy the running server, verify the copy, and delete what is too old. Errors: CommandError."""
    kept = folder()
    problem = archive.prepare(locate(settings.HOME), kept)
    if problem:
        raise CommandError(problem)
    with only_one(kept):
        made = _copied(kept)
        ledger = Path(settings.MEMORYHUB_ERASURE_LEDGER)
        # Empty when nobody was ever erased: a ledger that is lost is something else.
        archive.write(ledger_copy(kept), ledger.read_bytes() if ledger.is_file() else b"")
        prune(kept, now=datetime.now(UTC), days=settings.MEMORYHUB_BACKUP_DAYS)
    return made


def ledger_copy(kept: Path) -> Path:
    """Where the archive has a copy of the ledger of erasures, for a machine that is lost with its home."""
    return kept / "erasures.jsonl"


def listed(kept: Path) -> list[BaseBackup]:
    """The complete base backups, oldest first."""
    found = [_noted(note) for note in kept.glob("base/*.json")]
    return sorted((one for one in found if one.path.is_dir()), key=lambda one: one.finished)


def prune(kept: Path, *, now: datetime, days: int) -> int:
    """Delete what `days` have passed over (0: nothing), with the WAL that only it needs; how many base backups.

    The newest always stays. Copies without a note are of processes that were killed, and data that restores kept aside
    hold what was erased since, too.
    """
    made = listed(kept)
    old = [one for one in made[:-1] if days and one.finished < now - timedelta(days=days)]
    for one in old:
        one.note.unlink()
        shutil.rmtree(one.path)
    rest = made[len(old) :]
    for path in kept.glob("base/*"):
        if path.is_dir() and path not in {one.path for one in rest}:
            shutil.rmtree(path)
    if rest:
        archive.delete_before(kept, min(one.begins for one in rest) // archive.SEGMENT_BYTES)
    for moment, path in recovery.asides(locate(settings.HOME)):
        if days and moment < now - timedelta(days=days):
            shutil.rmtree(path)
    return len(old)


def covered(kept: Path, left: Sequence[archive.WalSegment] = ()) -> tuple[datetime, datetime] | None:
    """The first and the last moment that can be restored; None: none. `left`: WAL that was not archived any more."""
    made, ends = listed(kept), [segment.until for segment in (*archive.segments(kept), *left)]
    if not (made and ends):
        return None
    return made[0].finished, max(datetime.fromtimestamp(max(ends), UTC), made[0].finished)


def way_to(moment: datetime, kept: Path, left: Sequence[archive.WalSegment] = ()) -> RecoveryPath:
    """How to get to the moment. Errors: CommandError with what is covered."""
    whole = covered(kept, left)
    if whole is None:
        raise CommandError(f"{kept} has no base backup, or no WAL. Take one with manage.py backup --base.")
    if not whole[0] <= moment <= whole[1]:
        raise CommandError(f"--to: the archive leads to moments from {shown(whole[0])} to {shown(whole[1])}.")
    # Each moment was lived on one timeline: that of the segment which was written then.
    lived = min(
        (one for one in (*archive.segments(kept), *left) if one.until >= int(moment.timestamp())),
        key=lambda one: (one.until, one.timeline),
        # Nothing was written since the only base backup.
        default=listed(kept)[0],
    )
    fitting = [one for one in _leading_to(lived.timeline, kept) if one.finished <= moment]
    if not fitting:
        raise CommandError(
            f"No base backup of before {shown(moment)} leads there, because of a restore since. Give a later time."
        )
    return RecoveryPath(fitting[-1], lived.timeline)


def way_to_the_end(kept: Path) -> RecoveryPath:
    """How to get to the last that the archive has, from the newest base backup. Errors: CommandError."""
    # Each restore begins a timeline with a higher number.
    timelines = [one.timeline for one in listed(kept)] + [one.timeline for one in archive.segments(kept)]
    timeline = max(timelines, default=0)
    fitting = _leading_to(timeline, kept)
    if not fitting:
        raise CommandError(f"{kept} has no base backup that leads to its end. Take one with manage.py backup --base.")
    return RecoveryPath(fitting[-1], timeline)


def _leading_to(timeline: int, kept: Path) -> list[BaseBackup]:
    """The base backups of the timeline, and of its ancestors from before it left them."""
    parents = archive.forks(kept, timeline)
    made = listed(kept)
    return [one for one in made if one.timeline == timeline or one.ends <= parents.get(one.timeline, -1)]


def shown(moment: datetime) -> str:
    """A moment as --to takes it."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")


@contextmanager
def only_one(kept: Path) -> Iterator[None]:
    """Nobody else takes, prunes or restores base backups of this archive. Errors: CommandError."""
    descriptor = os.open(kept / "lock", os.O_RDONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise CommandError(f"Another base backup or restore is at work in {kept}.") from None
    try:
        yield
    finally:
        os.close(descriptor)


def _copied(kept: Path) -> BaseBackup:
    path = kept / "base" / datetime.now(UTC).strftime(STAMP)
    if path.exists():
        raise CommandError(f"{path} is there already: wait a second.")
    given = connection.settings_dict
    where = make_conninfo("", host=given["HOST"], port=given["PORT"], user=given["USER"])
    environment = {**embedded_postgres.ENVIRONMENT, "PGPASSWORD": given["PASSWORD"]}
    try:
        _run(
            "pg_basebackup",
            f"--pgdata={path}",
            "--checkpoint=fast",
            "--wal-method=stream",
            "--no-password",
            "--manifest-checksums=SHA256",
            f"--dbname={where}",
            environment=environment,
        )
        _run("pg_verifybackup", "--quiet", str(path), environment=environment)
        # A whole second, so that what is shown as the first moment is one.
        made = _read(path, finished=datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1))
        note = {
            "finished": made.finished.isoformat(),
            "timeline": made.timeline,
            "begins": made.begins,
            "ends": made.ends,
            "size": made.size,
        }
        archive.write(made.note, json.dumps(note).encode())
        # Whoever is told that it is there can go back to that moment.
        time.sleep(max(0.0, (made.finished - datetime.now(UTC)).total_seconds()))
        return made
    finally:
        if not path.with_suffix(".json").exists():
            shutil.rmtree(path, ignore_errors=True)


def _read(path: Path, *, finished: datetime) -> BaseBackup:
    label = BEGINS.search((path / "backup_label").read_text())
    ranges = json.loads((path / "backup_manifest").read_text())["WAL-Ranges"]
    if label is None:
        raise CommandError(f"{path} has no beginning in its backup_label.")
    size = sum(found.stat().st_size for found in path.rglob("*") if found.is_file())
    ends = max(archive.lsn(one["End-LSN"]) for one in ranges)
    return BaseBackup(path, finished, int(label[2][:8], 16), archive.lsn(label[1]), ends, size)


def _noted(note: Path) -> BaseBackup:
    values = json.loads(note.read_text())
    finished = datetime.fromisoformat(values.pop("finished"))
    return BaseBackup(note.with_suffix(""), finished, **values)


def _run(program: str, *arguments: str, environment: dict[str, str]) -> None:
    command = [str(embedded_postgres.client_program(program)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise CommandError(f"{program} failed: {done.stderr.strip()[-500:]}")
