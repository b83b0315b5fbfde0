"""A backup of the version that had 35 migrations: this one restores it, and what is there then is as if made anew."""

import lzma
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from memories import invariants
from memories.management import backups
from memories.models import APIKey, EndUser, ProfileRevision, ProfileSection, Tenant, Turn

# Made by that version: the demo, an off-boarded tenant, two people who are switched off, an operator's section.
OLD = Path(__file__).with_name("version_0035.backup.xz")
# Real commits: other programs read and write the tables.
pytestmark = pytest.mark.django_db(transaction=True)


def restore(path: Path) -> None:
    call_command("restore", "--from", str(path), "--replace")


def schema(folder: Path) -> list[str]:
    """All statements that make the tables, of the database as it is once restored: that changes casts in conditions."""
    path = folder / "again.backup"
    call_command("backup", "--to", str(path))
    restore(path)
    dump = backups._run("pg_dump", "--schema-only", "--no-privileges", backups._conninfo()).decode()
    # These two lines hold a random word.
    return [line for line in dump.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


def test_tables_and_rows_are_as_those_of_this_version(tmp_path: Path) -> None:
    old = tmp_path / "old.backup"
    old.write_bytes(lzma.decompress(OLD.read_bytes()))
    anew = schema(tmp_path)
    assert any("CREATE TABLE public.memories_turn" in line for line in anew)
    restore(old)
    assert schema(tmp_path) == anew
    assert invariants.check() == []
    assert Turn.objects.exists()
    off = EndUser.objects.exclude(capture_off_by="", serve_off_by="")
    assert set(off.values_list("external_id", "capture_off_by", "serve_off_by")) == {
        ("mute", "operator", ""),
        ("quiet", "", "operator"),
    }
    # Two went with the tenant, one before it.
    keys = APIKey.objects.filter(tenant=Tenant.objects.get(slug="gone"))
    assert sorted(keys.values_list("revoked_with_tenant", flat=True)) == [False, True, True]
    sections = ProfileSection.objects.values_list("binding", "trust")
    assert set(sections) == {(True, "operator"), (False, "user")}
    revisions = ProfileRevision.objects.values_list("actor_kind", "trust")
    assert set(revisions) == {("operator", "operator"), ("run", "user")}

    # As of a version before.
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("memories", "0035_retention")
    older = tmp_path / "older.backup"
    call_command("backup", "--to", str(older))
    recorder.record_applied("memories", "0035_retention")
    with pytest.raises(CommandError, match="too old \\(it lacks 0035_retention\\)"):
        restore(older)
    assert Turn.objects.exists()
