"""Migrations: complete, named by hand, and reversible on a real database of their own."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from pytest_django import DjangoDbBlocker

from memories.models import ProfileRevision
from tests import factories

ALIAS = "scratch"
BEFORE_SETTINGS, SETTINGS = "0019_decay", "0020_settings"


@pytest.fixture
def scratch(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The alias of an empty database beside the one of the tests."""
    default = connections["default"]
    name = f"{default.settings_dict['NAME']}_migrations"
    with django_db_blocker.unblock():
        with default._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")
            cursor.execute(f"CREATE DATABASE {name}")
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


def migrate(alias: str, *target: str) -> None:
    call_command("migrate", *target, database=alias, verbosity=0, interactive=False)


def test_forward_from_nothing_back_to_nothing_and_forward_again(scratch: str) -> None:
    nothing: dict[str, set[str]] = {"tables": set(), "functions": set(), "triggers": set()}
    assert ours(scratch) == nothing
    migrate(scratch)
    made = ours(scratch)
    assert {"memories_turn", "memories_fact", "memories_sessionqueue", "memories_operator"} <= made["tables"]
    assert made["triggers"] == {"audit_append_only", "audit_untruncated", "seals_append_only", "seals_untruncated"}
    migrate(scratch, "memories", "zero")
    assert ours(scratch) == nothing
    migrate(scratch)
    assert ours(scratch) == made


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
        assert re.fullmatch(r"\d{4}_(?!auto|initial|alter_|remove_)[a-z0-9_]+", migration.name)
        assert all(operation.reversible for operation in migration.operations), migration.name


def test_the_numbers_of_migrations_leave_no_gap() -> None:
    graph = MigrationLoader(None).graph
    names = sorted(name for app, name in graph.nodes if app == "memories")
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


@pytest.mark.django_db
def test_each_section_gets_its_first_revision_once() -> None:
    person = factories.end_user()
    run = factories.run(factories.session(person))
    factories.profile_section(person, "work_context", "Bakes bread.", version=3, extraction=run)
    factories.profile_section(person, "top_of_mind", "在开面包店。", actor_kind="operator", binding=True)
    factories.profile_section(person, "recent_months", "Moved.")
    factories.profile_revision(person, "Moved.", section="recent_months")
    forward = import_module("memories.migrations.0012_profile_history").FORWARD
    for _ in range(2):
        with connections["default"].cursor() as cursor:
            cursor.execute(forward)
    made = ProfileRevision.objects.exclude(section="recent_months").order_by("-section")
    assert list(made.values_list("end_user", "version", "verb", "actor_id", "before", "after", "extraction")) == [
        (person.pk, 3, "extract", str(run.pk), "", "Bakes bread.", run.pk),
        (person.pk, 1, "write", "", "", "在开面包店。", None),
    ]
    assert ProfileRevision.objects.count() == 3


def rows_of_tenants(alias: str, columns: str) -> list[tuple[object, ...]]:
    with connections[alias].cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM memories_tenant ORDER BY slug")
        return [tuple(row) for row in cursor.fetchall()]


def test_a_tenants_four_columns_join_its_numbers_and_part_from_them_again(scratch: str) -> None:
    migrate(scratch, "memories", BEFORE_SETTINGS)
    four = "debounce_seconds, max_wait_seconds, lease_seconds, max_attempts"
    given = {
        "a": ("NULL, NULL, NULL, NULL", "{}"),
        "b": ("5, 60, NULL, 20", '{"capacity": 50}'),
        "c": ("300, NULL, 2, NULL", '{"debounce_seconds": 7, "half_life_days": 14.5}'),
        "d": ("NULL, NULL, NULL, 3", '"torn"'),
    }
    with connections[scratch].cursor() as cursor:
        for slug, (columns, numbers) in given.items():
            cursor.execute(
                f"INSERT INTO memories_tenant (id, slug, name, capture, serve, trust_assistant, extraction_guidance,"
                f" signal_phrases, guidance_version, time_zone, numbers, created_at, {four}) VALUES (gen_random_uuid(),"
                f" %s, '', true, true, false, '', '{{}}', 1, 'UTC', %s, now(), {columns})",
                [slug, numbers],
            )
    migrate(scratch, "memories", SETTINGS)
    assert [json.loads(str(numbers)) for (numbers,) in rows_of_tenants(scratch, "numbers::text")] == [
        {},
        {"debounce_seconds": 5, "max_wait_seconds": 60, "max_attempts": 20, "capacity": 50},
        {"debounce_seconds": 300, "lease_seconds": 2, "half_life_days": 14.5},
        {"max_attempts": 3},
    ]
    with connections[scratch].cursor() as cursor:
        # What a hand may have written in between: none of it may stop the way back.
        wrong = '{"debounce_seconds": 301, "max_wait_seconds": "9", "lease_seconds": 2.5, "max_attempts": 99999999999}'
        cursor.execute("UPDATE memories_tenant SET numbers = %s WHERE slug = 'a'", [wrong])
    migrate(scratch, "memories", BEFORE_SETTINGS)
    assert rows_of_tenants(scratch, four) == [
        (None, None, None, None),
        (5, 60, None, 20),
        (300, None, 2, None),
        (None, None, None, 3),
    ]
    left = [json.loads(str(numbers)) for (numbers,) in rows_of_tenants(scratch, "numbers::text")]
    assert left == [{}, {"capacity": 50}, {"half_life_days": 14.5}, {}]
