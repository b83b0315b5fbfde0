"""Migrations: complete, named by hand, and reversible on a real database of their own."""

import re
from collections.abc import Iterator
from importlib import import_module
from io import StringIO
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import RunPython, RunSQL
from django.db.migrations.recorder import MigrationRecorder
from pgvector.django import VectorExtension
from pytest_django import DjangoDbBlocker

from tests import migrated

ALIAS = "scratch"
# The migrations that the present ones replace: 41 of the first round of numbers, 32 of the second.
REPLACED = 41 + 32
# Made after 0032 gave the unique keys their tenant: each has keys of its own from the beginning.
LATER_TABLES = (
    *("seentext", "sentblock", "privacyexportpiece", "personlink", "import", "importpiece", "importedrow"),
    *("contentpolicy", "policydrop", "policytrial", "policyfinding", "profileschema"),
    *("attachment", "passage", "passagevector"),
    *("trajectory", "trajectorystep", "skill", "skillversion", "skilltext", "skillevidence", "skilltrial", "skillpass"),
)


@pytest.fixture
def scratch(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The alias of a migrated database beside the one of the tests."""
    default = connections["default"]
    name = f"{default.settings_dict['NAME']}_migrations"
    with django_db_blocker.unblock():
        migrated.create(name, template=migrated.MIGRATED)
        connections.databases[ALIAS] = {**default.settings_dict, "NAME": name}
        try:
            yield ALIAS
        finally:
            connections[ALIAS].close()
            del connections.databases[ALIAS], connections[ALIAS]
            with default._nodb_cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")


def ours(alias: str) -> dict[str, set[str]]:
    """What of our own the database holds."""
    owned = {
        "tables": "SELECT tablename FROM pg_tables WHERE tablename LIKE 'memories\\_%%'",
        "functions": "SELECT proname FROM pg_proc WHERE proname LIKE 'memories\\_%%'",
        "triggers": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal",
    }
    found: dict[str, set[str]] = {}
    with connections[alias].cursor() as cursor:
        for kind, query in owned.items():
            cursor.execute(query, [])
            found[kind] = {name for (name,) in cursor.fetchall()}
    return found


def migrate(alias: str) -> None:
    call_command("migrate", database=alias, verbosity=0, interactive=False)


def step(alias: str, number: str) -> None:
    """To one of our migrations, or to none, without the looks at all models by which the command begins and ends."""
    executor = MigrationExecutor(connections[alias])
    target = executor.loader.get_migration_by_prefix("memories", number).name if number else None
    executor.migrate([("memories", target)])


@pytest.mark.django_db
def test_no_model_has_changed_since_the_last_migration() -> None:
    said = StringIO()
    call_command("makemigrations", check_changes=True, dry_run=True, stdout=said)
    assert said.getvalue() == "No changes detected\n"


def test_every_migration_is_named_by_hand_and_reversible() -> None:
    graph = MigrationLoader(None).graph
    own = [graph.nodes[key] for key in graph.nodes if key[0] == "memories"]
    assert own
    for migration in own:
        assert re.fullmatch(r"0001_initial|\d{4}_(?!auto|initial|alter_|remove_)[a-z0-9_]+", migration.name)
        assert all(operation.reversible for operation in migration.operations), migration.name


def test_operations_on_models_that_follow_each_other_are_applied_together() -> None:
    """Each alone would cost a tenth of a second at the first start of a hub, and more with every table."""
    graph = MigrationLoader(None).graph
    alone = [
        f"{name}: {first.describe()}, {second.describe()}"
        for app, name in graph.nodes
        if app == "memories"
        for first, second in pairwise(graph.nodes[app, name].operations)
        if not {type(first), type(second)} & {VectorExtension, RunSQL, RunPython}
    ]
    assert alone == []


def test_the_numbers_of_migrations_leave_no_gap() -> None:
    graph = MigrationLoader(None).graph
    names = sorted(name for app, name in graph.nodes if app == "memories")
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_each_replaced_migration_is_named_once() -> None:
    disk = MigrationLoader(None).disk_migrations or {}
    names = [name for (app, _), one in disk.items() if app == "memories" for _, name in one.replaces]
    assert len(set(names)) == len(names) == REPLACED
    assert not {("memories", name) for name in names} & disk.keys()


def plan(alias: str) -> list[str]:
    """What `migrate` would run of ours."""
    executor = MigrationExecutor(connections[alias])
    would = [migration for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
    return [migration.name for migration in would if migration.app_label == "memories"]


def test_back_to_nothing_and_forward_again_from_the_replaced_migrations_others_are_refused(
    scratch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forward from nothing in one go went the database that this one is a copy of. Each way takes ten seconds, so what
    is told of single migrations is looked at on the way."""
    nothing: dict[str, set[str]] = {"tables": set(), "functions": set(), "triggers": set()}
    made, keys = ours(scratch), unique_keys(scratch)
    assert {"memories_turn", "memories_fact", "memories_sessionqueue", "memories_operator"} <= made["tables"]
    trail = {"audit_append_only", "audit_untruncated", "seals_append_only", "seals_untruncated"}
    kinds = ("facts", "episodes", "turns", "files", "diary", "triples", "groups", "sections", "passages")
    logged = {f"logged_texts_of_{rows}" for rows in kinds}
    unused = {f"unused_entities_of_{rows}" for rows in ("deleted", "changed")}
    assert made["triggers"] == trail | logged | unused
    step(scratch, "0031")
    before = unique_keys(scratch)
    step(scratch, "")
    assert ours(scratch) == nothing
    step(scratch, "0005")
    recorder = MigrationRecorder(connections[scratch])
    replaced = {name: int(name[:4]) for app, name in recorder.applied_migrations() if app == "memories"}
    disk = MigrationLoader(None).disk_migrations or {}
    own = sorted(name for app, name in disk if app == "memories")
    # As the version left it that had the 35.
    recorder.migration_qs.filter(app="memories", name__in=own).delete()
    assert sorted({replaced[name] for name in replaced if name not in own}) == list(range(1, 36))
    assert plan(scratch) == own[5:]
    # As an older one left it.
    recorder.record_unapplied("memories", "0035_retention")
    recorder.record_unapplied("memories", "0034_table_rewrites")
    applied = recorder.applied_migrations().keys()
    with pytest.raises(CommandError, match="too old for this version \\(it lacks 0035_retention"):
        migrate(scratch)
    assert recorder.applied_migrations().keys() == applied
    recorder.record_applied("memories", "0034_table_rewrites")
    recorder.record_applied("memories", "0035_retention")
    step(scratch, "0031")
    assert unique_keys(scratch) == before
    unique_keys_are_made_anew_also_after_the_migration_died(scratch, keys, monkeypatch)
    assert ours(scratch) == made
    # As the version left it that had 25 of the next round of numbers, and as a developer's version that had the 41.
    for kept, left in ((9, 10), (8, 8)):
        since = [name for later in own[left:] for _, name in disk["memories", later].replaces]
        recorder.migration_qs.filter(app="memories", name__in=[*own[kept:], *since]).delete()
        assert plan(scratch) == own[left:]


def unique_keys(alias: str) -> dict[str, str]:
    """Name of each unique index → what it is."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
            # Tables that came later have keys of their own.
            "WHERE indisunique AND indrelid::regclass::text LIKE 'memories\\_%%' "
            "AND NOT indrelid::regclass::text = ANY(%s) AND indexrelid::regclass::text <> 'privacyexport_of_tenant'",
            [[f"memories_{name}" for name in LATER_TABLES]],
        )
        return dict(cursor.fetchall())


def unique_keys_are_made_anew_also_after_the_migration_died(
    scratch: str, made: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 0031 to the last one."""
    before = unique_keys(scratch)
    anew = {name for name in made if made[name] != before.get(name)}
    # Of three the version before names the columns: they stay beside those that replace them.
    assert len(anew) == 12 + 3
    assert {name for name in made if name not in before} == {name for name in anew if name.endswith("_before_0032")}
    migration: Any = import_module("memories.migrations.0032_tenant_in_unique_keys")
    plain, seen = migration._run_briefly, list[Any]()

    def die(*given: Any) -> None:
        seen.append(given)
        if len(seen) == 3:
            raise KeyboardInterrupt
        plain(*given)

    monkeypatch.setattr(migration, "_run_briefly", die)
    with pytest.raises(KeyboardInterrupt):
        step(scratch, "0032")
    assert {name for name in unique_keys(scratch) if name.endswith("_built")} == {"episode_range_once_built"}
    with connections[scratch].cursor() as cursor:
        # As one is left whose building was cut off, and one of other columns.
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'episode_range_once_built'::regclass")
        cursor.execute("CREATE UNIQUE INDEX export_token_once_built ON memories_privacyexport (id)")
    monkeypatch.undo()
    migrate(scratch)
    assert unique_keys(scratch) == made
    # The statement by which the version before writes a vector finds its key, as this version's does.
    for columns in ("fact_id, space_id", "fact_id, space_id, tenant_id"):
        with connections[scratch].cursor() as cursor:
            cursor.execute(f"EXPLAIN INSERT INTO memories_factvector DEFAULT VALUES ON CONFLICT ({columns}) DO NOTHING")
