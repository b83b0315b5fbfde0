"""backup and restore: a round trip changes no byte, and what fails changes nothing."""

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import F

from memories import conf, invariants
from memories.curation.access.throttles import count_request
from memories.management import backups, policies
from memories.models import APIKey, AuditEvent, Backup, EndUser, Operator, Tenant, ThrottleCounter, Turn
from tests import factories
from tests.database import runtime_role

COUNTS = ThrottleCounter._meta.db_table
# Of web's and worker's role, on tables, sequences and functions.
RIGHTS = """
    SELECT name, a.privilege_type
    FROM (SELECT relname AS name, relacl AS acl FROM pg_class UNION ALL SELECT proname, proacl FROM pg_proc) held,
        LATERAL aclexplode(acl) a
    WHERE a.grantee = %s::regrole ORDER BY 1, 2
"""
# Real commits: other programs read and write the tables.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def backup(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """Of the demo and a person with words that are hard to carry, behind row level security."""
    settings.HOME = tmp_path
    was_on = settings.MEMORYHUB_ROW_SECURITY == "on"
    settings.MEMORYHUB_ROW_SECURITY = "on"
    policies.give(runtime_role()[0], enforced=True)
    call_command("seed_demo")
    count_request(key_id=APIKey.objects.get().pk, scope="read", rate=conf.Rate(1, 60))
    factories.session(factories.end_user(), [("user", "过敏:花生\\N \t \\. \n'\"$$ 🥜"), ("assistant", "\\")])
    path = tmp_path / "hub.backup"
    call_command("backup", "--to", str(path))
    yield path
    if not was_on:
        policies.lift()


def state() -> dict[str, Any]:
    """Every row of every table as PostgreSQL writes it, and where each sequence stands."""
    with connection.cursor() as cursor:
        # Counts of requests are no part of a backup, nor is which ones were made.
        tables = sorted({*connection.introspection.table_names(cursor)} - {COUNTS, Backup._meta.db_table})
        found: dict[str, Any] = {}
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" t ORDER BY 1')
            found[table] = [row for (row,) in cursor.fetchall()]
        cursor.execute("SELECT sequencename, last_value FROM pg_sequences ORDER BY 1")
        found["sequences"] = [row for row in cursor.fetchall() if not row[0].startswith(COUNTS)]
        # Their names: a condition that was written down and read again has other casts.
        cursor.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1")
        found["indexes"] = cursor.fetchall()
        cursor.execute(RIGHTS, [runtime_role()[0]])
        found["rights"] = cursor.fetchall()
    found["policies"] = policies.current_policies()
    return found


def test_a_round_trip_changes_nothing_and_the_hub_goes_on(backup: Path) -> None:
    before = state()
    assert len(before["memories_turn"]) > 2
    assert before["policies"]["memories_turn"].is_enforced
    assert {("memories_turn", "DELETE"), ("memories_prune_audit", "EXECUTE")} <= set(before["rights"])
    call_command("flush", interactive=False, verbosity=0)
    assert state() != before
    call_command("restore", "--from", str(backup))
    assert state() == before
    assert invariants.check() == []
    person = EndUser.objects.select_related("tenant").exclude(external_id="lin-wei").get()
    # Ids from sequences and the append-only trail work as before.
    factories.session(person, [("user", "And on it goes")])
    assert Turn.objects.filter(content="And on it goes").exists()
    factories.api_key(person.tenant)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditEvent.objects.all().delete()


def test_the_file_is_private_and_replaced_whole(backup: Path) -> None:
    backup.chmod(0o644)
    factories.tenant(slug="later")
    call_command("backup", "--to", str(backup))
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert [path.name for path in backup.parent.iterdir() if "hub.backup" in path.name] == ["hub.backup"]
    call_command("restore", "--from", str(backup), "--replace")
    assert Tenant.objects.filter(slug="later").exists()


@pytest.mark.parametrize("held", ["tenants", "operators"])
def test_a_database_in_use_is_refused(backup: Path, held: str) -> None:
    call_command("flush", interactive=False, verbosity=0)
    factories.tenant(slug="mine") if held == "tenants" else factories.operator()
    before = state()
    with pytest.raises(CommandError, match=f"holds {held}. Give --replace"):
        call_command("restore", "--from", str(backup))
    assert state() == before
    call_command("restore", "--from", str(backup), "--replace")
    assert not Tenant.objects.filter(slug="mine").exists()
    assert Operator.objects.get().username == "demo"


def test_somebody_elses_tables_are_refused(backup: Path) -> None:
    call_command("flush", interactive=False, verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE ledger (id int)")
        with pytest.raises(CommandError, match="not the hub's \\(ledger\\)"):
            call_command("restore", "--from", str(backup))
        cursor.execute("DROP TABLE ledger")


def test_a_damaged_file_changes_nothing(backup: Path) -> None:
    whole, before = backup.read_bytes(), state()
    for share in (0.0, 0.5, 0.97, 0.99999):
        backup.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(CommandError, match="not whole"):
            call_command("restore", "--from", str(backup), "--replace")
    assert state() == before


def test_a_restore_that_fails_half_way_changes_nothing(backup: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state()
    whole = backup.read_bytes()[: -backups.SEAL_BYTES]
    # Sealed as it is, so that pg_restore itself stumbles, in the midst of the rows.
    middle = len(whole) // 2
    broken = whole[:middle] + bytes(2000) + whole[middle + 2000 :]
    backup.write_bytes(broken + backups.SEAL + hashlib.sha256(broken).hexdigest().encode())
    monkeypatch.setattr(backups, "_require_known_migrations", lambda path: None)
    with pytest.raises(CommandError, match="Nothing was restored"):
        call_command("restore", "--from", str(backup), "--replace")
    assert state() == before


def test_a_backup_of_a_newer_hub_is_refused(backup: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('memories', '0999_later', now())")
        call_command("backup", "--to", str(backup))
        cursor.execute("DELETE FROM django_migrations WHERE name = '0999_later'")
    before = state()
    with pytest.raises(CommandError, match="newer hub \\(it has 0999_later\\)"):
        call_command("restore", "--from", str(backup), "--replace")
    assert state() == before


def test_a_drill_says_what_a_restore_would_bring_and_touches_nothing(
    backup: Path, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.MEMORYHUB_ERASURE_LEDGER = str(backup.with_name("erasures.jsonl"))
    call_command("erase_user", tenant=EndUser.objects.get(external_id="lin-wei").tenant.slug, user="lin-wei")
    before = state()
    capsys.readouterr()
    call_command("restore_drill", "--from", str(backup))
    said = capsys.readouterr().out
    assert "end users 2" in said
    assert f"All {len(invariants.INVARIANTS)} invariants hold." in said
    assert "People to erase again: 1." in said
    assert said.endswith("The backup can be restored.\n")
    assert state() == before
    assert not databases_of_drills()


def test_a_drill_finds_what_is_wrong(backup: Path, settings: Any) -> None:
    settings.MEMORYHUB_ERASURE_LEDGER = str(backup.with_name("erasures.jsonl"))
    Turn.objects.update(token_count=F("token_count") + 1)
    call_command("backup", "--to", str(backup))
    before = state()
    with pytest.raises(CommandError, match=r"invariants do not hold.*The ledger .* cannot be read"):
        call_command("restore_drill", "--from", str(backup))
    with pytest.raises(CommandError, match="There is no file"):
        call_command("restore_drill", "--from", str(backup.with_name("none")))
    assert state() == before
    assert not databases_of_drills()


def databases_of_drills() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database")
        return [name for (name,) in cursor.fetchall() if name.endswith("_drill")]


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no file"):
        call_command("restore", "--from", str(tmp_path / "none"), "--replace")
    with pytest.raises(CommandError, match="cannot be written: No such file or directory"):
        call_command("backup", "--to", str(tmp_path / "no" / "folder"))


def test_a_failed_backup_leaves_the_old_one(backup: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = backup.read_bytes()
    monkeypatch.setitem(connection.settings_dict, "PASSWORD", "wrong")
    with pytest.raises(CommandError, match="pg_dump failed") as refused:
        call_command("backup", "--to", str(backup))
    assert "wrong" not in str(refused.value)
    assert backup.read_bytes() == kept
    assert not list(backup.parent.glob(".hub.backup*"))
