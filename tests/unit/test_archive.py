"""The archive of WAL and base backups: whole files, none instead of another, and the way back to a moment."""

import gzip
import json
import os
import struct
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError

from memories.management import base_backups
from memoryhub.embedded_postgres import archive
from memoryhub.embedded_postgres.place import Place

NAME = "000000010000000000000003"
DAY = timedelta(days=1)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    for part in ("wal", "base"):
        (tmp_path / "kept" / part).mkdir(parents=True)
    (tmp_path / "kept/cluster").write_text("7")
    return tmp_path / "kept"


def run(kept: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    script = kept.parent / archive.SCRIPT
    script.write_text(archive.SCRIPT_TEXT)
    return subprocess.run(["/bin/sh", str(script), *words], capture_output=True, text=True, check=False)


def put(kept: Path, content: bytes, cluster: str = "7") -> "subprocess.CompletedProcess[str]":
    (kept.parent / "segment").write_bytes(content)
    return run(kept, "put", str(kept.parent / "segment"), NAME, str(kept), cluster)


def get(kept: Path, name: str = NAME, old: str = "") -> tuple[int, bytes]:
    (kept.parent / "given").unlink(missing_ok=True)
    done = run(kept, "get", name, str(kept.parent / "given"), str(kept), old)
    given = kept.parent / "given"
    return done.returncode, given.read_bytes() if given.exists() else b""


def test_a_segment_is_kept_once_and_never_replaced(kept: Path) -> None:
    # A server that was killed asks for the same file again, beside what it had begun.
    (kept / f"wal/.{NAME}.1").write_bytes(b"half")
    assert put(kept, b"one").returncode == 0
    assert put(kept, b"one").returncode == 0
    refused = put(kept, b"two")
    assert refused.returncode == 1
    assert "is there and differs" in refused.stderr
    assert get(kept) == (0, b"one")
    [path] = kept.glob("wal/0*")
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_kept_leaves_nothing(kept: Path) -> None:
    assert put(kept, b"one", cluster="8").returncode == 1
    gone = kept.parent / "gone"
    (kept / "wal").rename(gone)
    assert put(kept, b"one").returncode != 0
    gone.rename(kept / "wal")
    assert list(kept.glob("wal/*")) == list(kept.glob("wal/.*")) == []
    assert put(kept, b"one").returncode == 0


def test_a_missing_file_is_the_end_and_a_broken_one_is_none(kept: Path) -> None:
    assert get(kept) == (1, b"")
    left = kept.parent / "pg_wal"
    left.mkdir()
    (left / NAME).write_bytes(b"left")
    assert get(kept, old=str(left)) == (0, b"left")
    put(kept, b"one" * 1000)
    path = kept / f"wal/{NAME}.gz"
    path.write_bytes(path.read_bytes()[:-9])
    assert get(kept, old=str(left))[0] == 200


def test_a_folder_belongs_to_one_cluster(kept: Path, tmp_path: Path) -> None:
    data = tmp_path / "base/data"
    (data / "global").mkdir(parents=True)
    (data / "global/pg_control").write_bytes(struct.pack("=Q", 7) + bytes(100))
    place = Place(tmp_path / "base", tmp_path, None)
    assert archive.prepare(place, kept) == ""
    (kept / "cluster").write_text("8")
    assert "of another cluster" in archive.prepare(place, kept)
    fresh = tmp_path / "fresh"
    assert archive.prepare(place, fresh) == ""
    assert (fresh / "cluster").read_text() == "7"
    assert {path.name: path.stat().st_mode & 0o777 for path in fresh.iterdir()} == {
        "cluster": 0o600,
        "wal": 0o700,
        "base": 0o700,
    }
    assert "No such file" in archive.prepare(place, tmp_path / "no/mount")


def segment(kept: Path, position: int, until: datetime, timeline: int = 1) -> None:
    name = f"{timeline:08X}{position >> 8:08X}{position & 255:08X}.gz"
    (kept / "wal" / name).write_bytes(gzip.compress(b"", mtime=int(until.timestamp())))


def base(kept: Path, finished: datetime, position: int, timeline: int = 1) -> str:
    name = finished.strftime(base_backups.STAMP)
    (kept / "base" / name).mkdir()
    (kept / "base" / name / "data").write_text("")
    begins = position * archive.SEGMENT_BYTES
    note = {"finished": finished.isoformat(), "timeline": timeline, "begins": begins, "ends": begins + 99, "size": 1}
    (kept / f"base/{name}.json").write_text(json.dumps(note))
    return name


def history(kept: Path, timeline: int, text: str) -> None:
    (kept / f"wal/{timeline:08X}.history.gz").write_bytes(gzip.compress(text.encode()))


def lived(kept: Path) -> None:
    """Ten days, a base backup and a segment each noon. On day 8 somebody went back to day 5."""
    for day in range(8):
        base(kept, NOON + day * DAY, position=250 + day)
        segment(kept, 250 + day, NOON + day * DAY)
    history(kept, 2, "1\t0/FF000050\tbefore 2026-11-25\n")
    segment(kept, 255, NOON + 8 * DAY, timeline=2)
    base(kept, NOON + 9 * DAY, position=256, timeline=2)
    segment(kept, 256, NOON + 9 * DAY, timeline=2)


@pytest.mark.parametrize(
    ("days", "from_day", "timeline"),
    [(0, 0, 1), (0.5, 0, 1), (6.5, 6, 1), (7, 7, 1), (7.5, 4, 2), (9, 9, 2)],
)
def test_a_moment_is_reached_as_it_was_lived(kept: Path, days: float, from_day: int, timeline: int) -> None:
    lived(kept)
    way = base_backups.way_to(NOON + days * DAY, kept)
    assert (way.base.path.name, way.timeline) == ((NOON + from_day * DAY).strftime(base_backups.STAMP), timeline)


@pytest.mark.parametrize("days", [-0.1, 9.1])
def test_what_is_not_covered_is_refused_with_what_is(kept: Path, days: float) -> None:
    with pytest.raises(CommandError, match="no base backup"):
        base_backups.way_to(NOON, kept)
    lived(kept)
    with pytest.raises(CommandError, match=r"from 2026-11-20T12:00:00\+00:00 to 2026-11-29T12:00:00\+00:00"):
        base_backups.way_to(NOON + days * DAY, kept)


def test_the_end_is_reached_from_the_newest_base_backup_that_leads_there(kept: Path) -> None:
    with pytest.raises(CommandError, match="leads to its end"):
        base_backups.way_to_the_end(kept)
    lived(kept)
    # Nothing was archived since.
    newest = base(kept, NOON + 10 * DAY, position=257, timeline=2)
    assert base_backups.way_to_the_end(kept).base.path.name == newest
    for days in (9, 10):
        (kept / f"base/{(NOON + days * DAY).strftime(base_backups.STAMP)}.json").unlink()
    # That of day 7 was given up.
    way = base_backups.way_to_the_end(kept)
    assert (way.base.path.name, way.timeline) == ((NOON + 4 * DAY).strftime(base_backups.STAMP), 2)


def test_a_quiet_hub_goes_back_to_its_only_base_backup(kept: Path) -> None:
    only = base(kept, NOON, position=250)
    segment(kept, 249, NOON - DAY)
    for way in (base_backups.way_to(NOON, kept), base_backups.way_to_the_end(kept)):
        assert (way.base.path.name, way.timeline) == (only, 1)


def test_wal_that_was_not_archived_counts(kept: Path, tmp_path: Path) -> None:
    lived(kept)
    (tmp_path / "data/pg_wal").mkdir(parents=True)
    (tmp_path / "data/pg_wal/0000000200000001000000FF").write_bytes(b"")
    later = (NOON + 10 * DAY).timestamp()
    os.utime(tmp_path / "data/pg_wal/0000000200000001000000FF", (later, later))
    left = archive.segments_left(tmp_path / "data")
    assert base_backups.way_to(NOON + 9.5 * DAY, kept, left).timeline == 2


def test_old_backups_go_with_their_wal_and_the_newest_stays(
    kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = Place(tmp_path / "postgres", tmp_path, None)
    monkeypatch.setattr(base_backups, "locate", lambda home: place)
    for name in ("data", "data.before-20261118T120000Z", "data.before-20261126T120000Z"):
        (place.base / name).mkdir(parents=True)
    lived(kept)
    (kept / "base/20261127T000000Z").mkdir()
    now = NOON + 9 * DAY
    assert base_backups.prune(kept, now=now, days=0) == 0
    assert len(base_backups.listed(kept)) == 9
    assert not (kept / "base/20261127T000000Z").exists()
    assert base_backups.prune(kept, now=now, days=4) == 5
    assert [one.finished for one in base_backups.listed(kept)] == [NOON + day * DAY for day in (5, 6, 7, 9)]
    assert {one.position for one in archive.segments(kept)} == {255, 256, 257}
    assert sorted(path.name for path in place.base.iterdir()) == ["data", "data.before-20261126T120000Z"]
    assert base_backups.prune(kept, now=now + 99 * DAY, days=4) == 3
    assert [one.finished for one in base_backups.listed(kept)] == [NOON + 9 * DAY]
    assert {(one.timeline, one.position) for one in archive.segments(kept)} == {(1, 256), (1, 257), (2, 256)}
    assert (kept / "wal/00000002.history.gz").is_file()


def test_one_at_a_time(kept: Path) -> None:
    with base_backups.only_one(kept), pytest.raises(CommandError, match="at work"), base_backups.only_one(kept):
        pass
    with base_backups.only_one(kept):
        pass
