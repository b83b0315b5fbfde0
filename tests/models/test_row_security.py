"""The second wall: what a statement forgets to ask, the database does not show."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import ProgrammingError, connection, transaction
from psycopg import sql

from memories.db import reach
from memories.db.reach import Wall
from memories.management import policies
from memories.models import EndUser, Fact, Tenant
from tests import factories
from tests.database import runtime_role, walled

pytestmark = pytest.mark.django_db


@pytest.fixture
def wall(db: None) -> Iterator[None]:
    """Policies are enforced in the test's transaction, and its connection says how far it reaches."""
    policies.give(runtime_role()[0], enforced=True)
    with walled():
        yield


def rows(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def test_every_table_of_tenants_has_policies_or_a_reason() -> None:
    found = rows(
        "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'public' "
        "AND (column_name IN ('tenant_id', 'tenant_uuid') OR table_name LIKE 'memories%%')"
    )
    there = {table for (table,) in found}
    guarded = {one.table for one in policies.guarded()}
    assert there == guarded | set(policies.OPEN), "A new table is guarded by its tenant_id, or OPEN says why it is not."
    assert not guarded & set(policies.OPEN)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE memories_planted (id int, tenant_id uuid)")
    found = rows("SELECT table_name FROM information_schema.columns WHERE column_name = 'tenant_id'")
    assert ("memories_planted",) in found


def test_a_planted_query_without_its_tenant_shows_only_the_tenants_rows(wall: None) -> None:
    """Raw SQL without a condition, on every table of tenants that there is."""
    one, other = uuid.uuid4(), uuid.uuid4()
    tables = [guarded for guarded in policies.guarded()]
    with connection.cursor() as cursor:
        # Any row will do: what it refers to need not be there.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for guarded in tables:
            for tenant in (one, other):
                plant(guarded, tenant)
    for guarded in tables:
        statement = f"SELECT {guarded.column} FROM {guarded.table}"
        with reach.of_tenant(one):
            assert set(rows(statement)) == {(one,)}, guarded
        with reach.nothing():
            assert rows(statement) == [], guarded
        with reach.within(reach.of_several([one, other])):
            assert set(rows(statement)) == {(one,), (other,)}, guarded
        with reach.within(reach.of_several([])):
            assert rows(statement) == [], guarded
        with reach.everything():
            assert {(one,), (other,)} <= set(rows(statement)), guarded


def plant(guarded: policies.Guarded, tenant: uuid.UUID) -> None:
    """A row of the tenant, whatever else is in it."""
    checks = rows("SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = %s::regclass", guarded.table)
    table = sql.Identifier(guarded.table)
    with connection.cursor() as cursor:
        for (check,) in checks:
            cursor.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(table, sql.Identifier(check)))
        columns = rows(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
            "AND NOT attisdropped AND attnotnull AND attidentity = '' AND attname <> %s",
            guarded.table,
            guarded.column,
        )
        names = [guarded.column, *(name for name, _ in columns)]
        values = [str(tenant), *(some(kind) for _, kind in columns)]
        cursor.execute(
            sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                table, sql.SQL(", ").join(map(sql.Identifier, names)), sql.SQL(", ").join(map(sql.Literal, values))
            )
        )


def some(kind: str) -> str:
    """A value of this type; of texts and ids another one each time."""
    if kind == "uuid":
        return str(uuid.uuid4())
    if kind.endswith("[]"):
        return "{}"
    if kind.startswith(("character", "text")):
        long = re.search(r"\((\d+)\)", kind)
        return uuid.uuid4().hex[: int(long[1]) if long else 9]
    return {"boolean": "true", "jsonb": "{}", "bytea": "x"}.get(kind) or (
        "[1]" if kind.startswith("halfvec") else "2026-01-01" if kind.startswith(("date", "timestamp")) else "1"
    )


def test_the_orm_too_and_nothing_is_written_into_another_tenant(wall: None) -> None:
    fact, foreign = (factories.fact(factories.end_user()) for _ in range(2))
    assert Fact.objects.count() == 2
    with reach.of_tenant(fact.tenant_id):
        assert list(Fact.objects.all()) == [fact]
        assert list(Tenant.objects.all()) == [fact.tenant]
        assert Fact.objects.update(importance=1) == 1
        assert not Fact.objects.filter(pk=foreign.pk).exists()
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            EndUser.objects.create(tenant=foreign.tenant, external_id="planted", created_at=fact.created_at)
    with reach.nothing():
        assert not Fact.objects.exists()
