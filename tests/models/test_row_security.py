"""The second wall: what a statement forgets to ask, the database does not show."""

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import DataError, IntegrityError, ProgrammingError, connection, transaction
from django.db.models import Q
from django.http import HttpRequest
from django.test import RequestFactory
from psycopg import sql
from rest_framework.request import Request
from rest_framework.response import Response

from memories import audit
from memories.admin.trail.authors import names_of
from memories.api.endpoints import Endpoint
from memories.api.tenancy import TenancyMiddleware
from memories.audit import Actor
from memories.curation.people.external_ids import change_external_id
from memories.db import closed_indexes, tenancy
from memories.management import policies
from memories.models import ActorKind, EndUser, Fact, ManagementKey, Scope, Tenant
from memoryhub import roles
from tests import factories
from tests.api.client import HubClient
from tests.database import enforced, runtime_role, undone, unwalled, walled

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


@pytest.fixture
def planted(wall: None) -> tuple[uuid.UUID, uuid.UUID]:
    """Two tenants with a row each in every table of tenants that there is. What rows refer to need not be there."""
    one, other = uuid.uuid4(), uuid.uuid4()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
    for guarded in policies.guarded():
        for tenant in (one, other):
            plant(guarded, tenant)
    return one, other


def test_a_planted_query_without_its_tenant_shows_only_the_tenants_rows(planted: tuple[uuid.UUID, uuid.UUID]) -> None:
    """Raw SQL without a condition, on every table."""
    one, other = planted
    for guarded in policies.guarded():
        statement = f"SELECT {guarded.column} FROM {guarded.table}"
        with tenancy.of_tenant(one):
            assert set(rows(statement)) == {(one,)}, guarded
        with tenancy.nothing():
            assert rows(statement) == [], guarded
        with tenancy.within(tenancy.of_several([one, other])):
            assert set(rows(statement)) == {(one,), (other,)}, guarded
        with tenancy.within(tenancy.of_several([])):
            assert rows(statement) == [], guarded
        with tenancy.everything():
            assert {(one,), (other,)} <= set(rows(statement)), guarded


def of_one(tenant: uuid.UUID) -> tenancy.Tenancy:
    return tenancy.of_one(tenant)


def of_some(tenant: uuid.UUID) -> tenancy.Tenancy:
    return tenancy.of_several([tenant])


@pytest.mark.parametrize("bounded", [of_one, of_some], ids=["a tenant", "an operator of some tenants"])
def test_a_planted_write_without_its_tenant_reaches_only_the_tenants_rows(
    planted: tuple[uuid.UUID, uuid.UUID], bounded: Any
) -> None:
    """UPDATE and DELETE without a condition, a row for another tenant, and one given to another, on every table."""
    one, other = planted
    for guarded in policies.guarded():
        table, column = guarded.table, guarded.column
        with tenancy.within(bounded(one)):
            assert_refused(partial(plant, guarded, other), guarded)
        if table in TRAIL:
            continue
        with tenancy.within(bounded(one)):
            assert rows(f"UPDATE {table} SET {column} = {column} RETURNING {column}") == [(one,)], guarded
            move = f"UPDATE {table} SET {column} = %s"
            assert_refused(partial(change, move, other), guarded)
            if table in policies.HUBS_OWN:
                assert_refused(partial(change, move, None), guarded)
            assert rows(f"DELETE FROM {table} RETURNING {column}") == [(one,)], guarded
            with undone():
                plant(guarded, one)
        with tenancy.nothing():
            assert rows(f"DELETE FROM {table} RETURNING {column}") == [], guarded
        with tenancy.everything():
            assert (other,) in rows(f"SELECT {column} FROM {table}"), guarded
            assert change(f"UPDATE {table} SET {column} = %s WHERE {column} = %s", one, other) == 1, guarded


# Nobody but the owner changes what is in it: tests/models/test_least_role.py.
TRAIL = ("memories_auditevent", "memories_auditseal")


def assert_refused(work: Callable[[], object], guarded: policies.Guarded) -> None:
    refusal = f'row-level security policy for table "{guarded.table}"'
    with pytest.raises(ProgrammingError, match=refusal), transaction.atomic():
        work()


def change(statement: str, *values: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)


def test_rows_of_the_hub_are_shown_to_all_only_where_that_is_harmless(wall: None) -> None:
    nullable = {
        model._meta.db_table
        for model in apps.get_app_config("memories").get_models()
        for field in model._meta.concrete_fields
        if field.column in ("tenant_id", "tenant_uuid") and field.null and model._meta.db_table not in policies.OPEN
    }
    assert {one.table for one in policies.guarded() if one.shows_hubs} == nullable - set(policies.HUBS_OWN)
    # Ids and verbs; how the hub's endpoint answers. Whoever signs in writes the one, whoever extracts the other.
    assert nullable - set(policies.HUBS_OWN) == {"memories_auditevent", "memories_auditseal", "memories_endpointstate"}
    tenant = factories.tenant()
    of_all, of_one = (factories.management_key(of)[0] for of in (None, tenant))
    said = [tenancy.of_one(tenant.pk), tenancy.of_several([tenant.pk]), tenancy.EVERYTHING]
    for within, shown in zip(said, ([of_one], [of_one], [of_all, of_one]), strict=True):
        with tenancy.within(within):
            assert list(ManagementKey.objects.order_by("created_at", "pk")) == shown
    # What such a key changed has its name, also for an operator of that tenant alone.
    actor = Actor(kind=ActorKind.KEY, id=str(of_all.pk))
    event = audit.record(
        actor=actor, verb="update", target=tenant, object_id=tenant.pk, tenant=tenant, now=factories.NOW
    )
    with tenancy.within(tenancy.of_several([tenant.pk])):
        assert names_of([event]) == {str(of_all.pk): str(of_all)}


def test_a_policy_that_an_earlier_version_made_is_replaced(wall: None) -> None:
    role, _ = runtime_role()
    before = policies.current_policies()
    statements = (
        "DROP POLICY of_one_tenant ON memories_managementkey",
        f"CREATE POLICY of_one_tenant ON memories_managementkey TO {role} USING (tenant_id IS NULL)",
    )
    for statement in statements:
        change(statement)
    assert policies.current_policies() != before
    policies.give(role, enforced=True)
    assert policies.current_policies() == before


def plant(guarded: policies.Guarded, tenant: uuid.UUID) -> None:
    """A row of the tenant, whatever else is in it."""
    checks = rows("SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = %s::regclass", guarded.table)
    table = sql.Identifier(guarded.table)
    with connection.cursor() as cursor:
        for (check,) in checks:
            cursor.execute(sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(table, sql.Identifier(check)))
        columns = rows(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
            "AND attnotnull AND attidentity = '' AND attname <> %s",
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
    with tenancy.of_tenant(fact.tenant_id):
        assert list(Fact.objects.all()) == [fact]
        assert list(Tenant.objects.all()) == [fact.tenant]
        assert Fact.objects.update(importance=1) == 1
        assert not Fact.objects.filter(pk=foreign.pk).exists()
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            EndUser.objects.create(tenant=foreign.tenant, external_id="planted", created_at=fact.created_at)
    with tenancy.nothing():
        assert not Fact.objects.exists()


def test_what_is_said_of_a_block_is_undone_with_it(wall: None) -> None:
    fact, foreign = (factories.fact(factories.end_user()) for _ in range(2))
    with tenancy.of_tenant(fact.tenant_id):
        with pytest.raises(DataError), transaction.atomic(), tenancy.everything():
            rows("SELECT 1 / (2 - count(*)) FROM memories_fact")
        # The savepoint took back what the server had been told in it, and before it.
        assert list(Fact.objects.all()) == [fact]
        with transaction.atomic():
            tenancy.set_current(tenancy.of_one(foreign.tenant_id))
            assert list(Fact.objects.all()) == [foreign]
        assert list(Fact.objects.all().iterator()) == [foreign]
    assert Fact.objects.count() == 2, "the test itself is the owner"


class Planted(Endpoint):
    """A view that forgot its tenant."""

    def get(self, request: Request) -> Response:
        return Response({"facts": [row.content for row in Fact.objects.all()], "raw": rows(RAW)})

    get.scope = Scope.READ  # type: ignore[attr-defined]
    get.takes_parameters = False  # type: ignore[attr-defined]


class Open(Planted):
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()  # type: ignore[assignment]

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Nobody asks."""


RAW = "SELECT count(*), pg_backend_pid() FROM memories_fact"


@pytest.fixture
def everywhere(transactional_db: None) -> Iterator[None]:
    with enforced():
        yield


@pytest.fixture(params=[False, True], ids=["one server", "nodes"])
def on_nodes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether the server is told, and has policies, as a cluster's are."""
    connection.settings_dict["DISTRIBUTED"] = request.param
    yield
    connection.settings_dict["DISTRIBUTED"] = False


@pytest.fixture
def web(on_nodes: None, everywhere: None, least_role: None) -> Iterator[None]:
    """The test works as the web server does."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tenancy, "_of_process", None)
        yield


def ask(view: type[Endpoint], plaintext: str = "") -> dict[str, Any]:
    request: HttpRequest = RequestFactory().get("/planted", headers={"Authorization": f"Bearer {plaintext}"})
    request.request_id = "planted"  # type: ignore[attr-defined]
    answer: Any = TenancyMiddleware(view.as_view())(request)
    assert answer.status_code == 200, answer.data
    return dict(answer.data)


def test_requests_on_one_connection_of_the_server_see_their_tenants_alone(web: None) -> None:
    """In autocommit, as most requests are: first one tenant's, then the other's, then nobody's."""
    with tenancy.everything(), transaction.atomic():
        people = [factories.end_user() for _ in range(2)]
        facts = [factories.fact(person, f"Lives in {place}") for person, place in zip(people, "XY", strict=True)]
        keys = [factories.api_key(person.tenant)[1] for person in people]
    pids = set()
    for _round in range(2):
        for fact, key in zip(facts, keys, strict=True):
            seen = ask(Planted, key)
            assert seen["facts"] == [fact.content]
            [(count, pid)] = seen["raw"]
            assert count == 1
            pids.add(pid)
        seen = ask(Open)
        assert seen["facts"] == []
        [(count, pid)] = seen["raw"]
        assert count == 0
        pids.add(pid)
    assert len(pids) == 1
    # Outside of any request nobody has said anything, either; and all is there.
    assert not Fact.objects.exists()
    with tenancy.everything():
        assert Fact.objects.count() == 2
        # Prepared by now, as the other role.
        assert [Fact.objects.count() for _ in range(7)] == [2] * 7
    with tenancy.of_tenant(people[0].tenant_id):
        assert [Fact.objects.count() for _ in range(7)] == [1] * 7
        with pytest.raises(DataError):
            rows("SELECT 1 / 0")
        # The server looks at this key at the end of the statement's transaction.
        with pytest.raises(IntegrityError):
            Fact.objects.update(end_user=uuid.uuid4())
        assert list(Fact.objects.all().iterator()) == [facts[0]]
    assert rows("SELECT current_user::text, current_setting('memoryhub.tenants', true)") == [(runtime_role()[0], "")]


def test_a_host_that_does_not_know_the_owner_is_bounded_by_its_own_role(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in containers: the owner is told to the migration alone. Commands there see all, by the role for that."""
    script = "from memoryhub import settings; print(settings.DATABASES['default']['TENANCY_ROLE'])"
    given = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYHUB_")}
    own = {"DATABASE_URL": "postgresql://web@server/hub", "MEMORYHUB_ROW_SECURITY": "on"}
    for mark in ({}, {roles._MARK: "yes"}):
        environ = given | own | mark | {"MEMORYHUB_HOME": str(settings.HOME)}
        ended = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
        assert ended.stdout.split() == ["web"]
    monkeypatch.setattr(tenancy, "_of_process", None)
    apps.get_app_config("memories").ready()
    assert tenancy.current() is None
    settings.COMMANDS_SERVE = True
    apps.get_app_config("memories").ready()
    assert tenancy.current() == tenancy.EVERYTHING


def test_policies_need_an_owner_beside_the_role(settings: Any) -> None:
    settings.MEMORYHUB_ROW_SECURITY, settings.RUNTIME_ROLE = "on", None
    with pytest.raises(CommandError, match="needs two roles"):
        call_command("migrate", verbosity=0)


def test_the_role_cannot_pass_the_wall_and_the_check_would_see_it(everywhere: None) -> None:
    role, _ = runtime_role()
    assert policies.ways_round(role) == []
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"GRANT {role}_all TO {role} WITH INHERIT TRUE")
        assert policies.ways_round(role) == [f"inherits from {role}_several or {role}_all"]
        transaction.set_rollback(True)


@pytest.fixture
def tagged(wall: None) -> tuple[Fact, Fact]:
    """A fact of a tenant among others without tags or readers, and one of another tenant that looks the same."""
    given: dict[str, Any] = {"tags": ["rare"], "allowed_users": ["ada"]}
    own, foreign = (factories.fact(factories.end_user(), **given) for _ in range(2))
    columns = [str(field.column) for field in Fact._meta.concrete_fields]
    instead = {
        "id": "gen_random_uuid()",
        "content_hash": "sha256(n::text::bytea)",
        "tags": "'{}'",
        "allowed_users": "'{}'",
    }
    values = [instead.get(column, f'"{column}"') for column in columns]
    change(
        f"INSERT INTO memories_fact ({', '.join(columns)}) "
        f"SELECT {', '.join(values)} FROM memories_fact, generate_series(1, 500) n WHERE id = %s",
        own.pk,
    )
    change("ANALYZE memories_fact")
    return own, foreign


def plan_of(tenant: Tenant, condition: Q) -> str:
    """How the server finds the facts of the tenant that meet the condition."""
    statement, values = Fact.objects.filter(condition, tenant=tenant).order_by().values("pk").query.sql_with_params()
    return "\n".join(line for (line,) in rows(f"EXPLAIN {statement}", *values))


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        (Q(tags__contains=["rare"]), "fact_tags_idx"),
        (Q(allowed_users__contains=["ada"]) & ~Q(allowed_users=[]), "fact_readers_idx"),
    ],
    ids=["tags", "readers"],
)
def test_what_policies_close_is_looked_up_by_its_index(tagged: tuple[Fact, Fact], condition: Q, index: str) -> None:
    own, _foreign = tagged
    with tenancy.of_tenant(own.tenant_id):
        assert index not in plan_of(own.tenant, condition), "the policies close it, or the test shows nothing"
        with closed_indexes.of_tenant(own.tenant_id):
            assert index in plan_of(own.tenant, condition)
    with tenancy.alone():
        assert index in plan_of(own.tenant, condition), "without policies nothing closes it"


def test_a_look_up_by_a_closed_index_shows_nothing_of_others(tagged: tuple[Fact, Fact]) -> None:
    own, foreign = tagged
    wanted = Q(tags__contains=["rare"])
    for within in (tenancy.of_one(own.tenant_id), tenancy.of_several([own.tenant_id])):
        with tenancy.within(within):
            found = closed_indexes.opened(wanted, Fact.objects.all(), tenant_id=own.tenant_id)
            assert list(Fact.objects.filter(found)) == [own]
            with pytest.raises(PermissionError):
                closed_indexes.opened(wanted, Fact.objects.all(), tenant_id=foreign.tenant_id)
            # What follows is behind the policies again, also where the look-up forgot its tenant or was made up.
            with closed_indexes.of_tenant(own.tenant_id):
                ids = list(Fact.objects.filter(wanted).values_list("pk", flat=True))
            assert set(ids) == {own.pk, foreign.pk}
            assert list(Fact.objects.filter(pk__in=ids)) == [own]
    with tenancy.nothing(), pytest.raises(PermissionError):
        closed_indexes.opened(wanted, Fact.objects.all(), tenant_id=own.tenant_id)


def test_a_look_up_finds_what_is_rare_and_leaves_the_rest_to_the_condition(
    tagged: tuple[Fact, Fact],
) -> None:
    own, _foreign = tagged
    wanted = Q(tags__contains=["rare"])
    with tenancy.of_tenant(own.tenant_id):
        opened = partial(closed_indexes.opened, wanted, Fact.objects.all(), tenant_id=own.tenant_id)
        assert opened() == wanted & Q(pk__in=[own.pk])
        # Who lost the tag since is not found by the ids alone.
        found = Fact.objects.filter(opened())
        Fact.objects.filter(pk=own.pk).update(tags=[])
        assert list(found) == []
        Fact.objects.filter(pk=own.pk).update(tags=["rare"])
        assert opened(most=0) == wanted
        assert opened(most=None) == wanted & Q(pk__in=[own.pk])
    with unwalled():
        assert opened() == wanted


def test_lists_by_a_tag_and_changed_ids_look_up_before_they_read(wall: None) -> None:
    """On the API and in a change of an id: each names the tenant, and nothing is found of another."""
    person, foreign = factories.end_user(external_id="ada"), factories.end_user(external_id="ada")
    facts = [factories.fact(one, tags=["rare"], allowed_users=["ada"]) for one in (person, foreign)]
    plaintext = factories.api_key(person.tenant)[1]
    listed = HubClient(plaintext).get("/facts", user_id="ada", tag="rare")
    assert [row["id"] for row in listed.json()["results"]] == [str(facts[0].pk)]
    with tenancy.of_tenant(person.tenant_id):
        change_external_id(
            end_user=person, external_id="eva", keeps_old=False, actor=factories.COMMAND, now=factories.NOW
        )
    assert [Fact.objects.get(pk=fact.pk).allowed_users for fact in facts] == [["eva"], ["ada"]]
