"""Migrations: complete, named by hand, and reversible on a real database of their own."""

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
    assert made["triggers"] == {"audit_append_only"}
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
