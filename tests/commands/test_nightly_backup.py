"""The backup of each night: begun once, by one host, tried again after a failure, and deleted after its days."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from memories.jobs import nightly_backup
from memories.management import backups, nightly_backups
from memories.models import Backup

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NIGHT = datetime(2026, 11, 20, 2, tzinfo=UTC)


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.MEMORYHUB_BACKUP_NIGHTLY, settings.MEMORYHUB_BACKUP_DAYS = "dump", 7
    settings.MEMORYHUB_BACKUP_FOLDER = str(tmp_path / "backups")
    return tmp_path / "backups"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "started", "failed", "due"),
    [
        ("dump", NIGHT - MINUTE, False, True),
        ("dump", NIGHT, False, False),
        ("base", NIGHT, False, True),
        ("dump", NIGHT, True, False),
        ("dump", NIGHT - HOUR, True, True),
        # Of a clock that was ahead.
        ("dump", NIGHT + DAY, False, True),
    ],
)
def test_it_is_due_once_a_night(kind: str, started: datetime, failed: bool, due: bool, settings: Any) -> None:
    now = NIGHT + 10 * MINUTE
    Backup.objects.create(kind=kind, started_at=started, finished_at=started, failed=failed)
    assert nightly_backup.is_due(now=now) is due
    settings.MEMORYHUB_BACKUP_NIGHTLY = ""
    assert not nightly_backup.is_due(now=now)


@pytest.mark.django_db
def test_the_first_one_is_due_at_once() -> None:
    assert nightly_backup.is_due(now=NIGHT - MINUTE)


@pytest.mark.django_db(transaction=True)
def test_one_process_makes_it_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parameters = {**connection.get_connection_params(), "cursor_factory": None}
    with psycopg.connect(**parameters) as other:
        # Another host is at it.
        other.execute("SELECT pg_advisory_lock(%s)", [nightly_backups.BACKUP_LOCK])
        call_command("backup", "--nightly")
        # A session ends some time after its connection.
        other.execute("SELECT pg_advisory_unlock(%s)", [nightly_backups.BACKUP_LOCK])
    assert not folder.exists()
    call_command("backup", "--nightly")
    [path] = folder.iterdir()
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(path.stat().st_mode)) == (0o700, 0o600)
    call_command("backup", "--nightly")
    said = capsys.readouterr().out.splitlines()
    idle = "Nothing is due, or another process makes it."
    assert said == [idle, f"{path}: made.", idle]
    [row] = Backup.objects.all()
    assert (row.kind, row.nightly, row.failed, row.size) == ("dump", True, False, path.stat().st_size)


@pytest.mark.django_db(transaction=True)
def test_a_failure_is_recorded_and_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "_run", _fails)
    with pytest.raises(CommandError, match="the disk is full"):
        call_command("backup", "--nightly")
    assert list(folder.iterdir()) == []
    assert Backup.objects.get().failed
    assert not nightly_backup.is_due(now=timezone.now())
    assert nightly_backup.is_due(now=timezone.now() + nightly_backup.RETRY_AFTER)


def _fails(*_arguments: str, **_how: Any) -> bytes:
    raise CommandError("the disk is full")


def test_old_dumps_go_and_the_newest_stays(folder: Path) -> None:
    folder.mkdir()
    made = [folder / f"hub-{NIGHT - day * DAY:%Y%m%dT%H%M%SZ}.backup" for day in range(10)]
    for path in (*made, folder / "mine.backup", folder / "hub-mine.backup"):
        path.touch()
    assert nightly_backups.prune(folder, now=NIGHT, days=7) == 2
    others = {"mine.backup", "hub-mine.backup"}
    assert {path.name for path in folder.iterdir()} == {path.name for path in made[:8]} | others
    assert nightly_backups.prune(folder, now=NIGHT + 99 * DAY, days=7) == 7
    assert {path.name for path in folder.iterdir()} == {made[0].name} | others
