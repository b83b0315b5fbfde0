"""Where tables lie on a cluster, and the SQL for one: on one server it does the same as Django's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.postgres.expressions import ArraySubquery
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from django.db.models import Exists, OuterRef, Q

from memories import invariants
from memories.db import tenancy
from memories.management import distributing
from memories.management.distributing import FUNCTIONS
from memories.models import EndUser, Fact, Session, SessionQueue
from memories.models.hand_written import condition, parameter
from memories.models.memories import visibility
from memories.privacy.searching import tables
from memoryhub.database.naming import of_tenant
from memoryhub.database.placement import SHARED, Placement, distributed, placements
from tests import factories
from tests.database import statements

pytestmark = pytest.mark.django_db
# Tables of the database with a tenant in each row that are not distributed, and why.
ELSEWHERE = {
    "memories_apikey": "looked up before the tenant is known",
    "memories_languagemodel": "read for all tenants at once",
    "memories_operator_tenants": "belongs to operators",
}


@pytest.fixture
def named() -> Iterator[None]:
    """Statements are written as for a cluster."""
    operations: Any = connection.ops
    before, operations.compiler_module, operations._cache = operations.compiler_module, MODULE, None
    yield
    operations.compiler_module, operations._cache = before, None


MODULE = "memoryhub.database.distributed"


@pytest.fixture
def several(named: None) -> Iterator[None]:
    """As `named`, and the hub takes its tables for distributed."""
    connection.settings_dict["DISTRIBUTED"] = True
    yield
    connection.settings_dict["DISTRIBUTED"] = False


def test_each_table_of_a_tenant_is_distributed() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attrelid::regclass::text FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
            "WHERE relkind = 'r' AND attname = 'tenant_id' AND attnotnull"
        )
        found = {table for (table,) in cursor.fetchall()}
    assert found == distributed() | ELSEWHERE.keys()
    assert not distributed() & ELSEWHERE.keys()
    assert placements()["memories_tenant"] is placements()["memories_embeddingspace"] is Placement.REFERENCE
    assert all(placements()[table] is Placement.REFERENCE for table in SHARED)
    assert placements()["memories_auditevent"] is placements()["django_q_ormq"] is Placement.LOCAL


def test_each_trigger_of_a_distributed_table_runs_on_the_nodes() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.tgname, p.proname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
            "WHERE NOT tgisinternal AND tgrelid::regclass::text = ANY (%s)",
            [list(distributed())],
        )
        found = cursor.fetchall()
    assert found
    assert [(name, function) for name, function in found if function not in FUNCTIONS] == []


def test_a_reference_that_the_database_lacks_is_told_from_others_by_its_columns_and_target() -> None:
    assert list(distributing._of_models(placements())) == []
    of_file = [one for one in distributing._references(["memories_attachment"]) if one.table == "memories_attachment"]
    lacking = [one for one in of_file if one.target == "memories_tenant" or one.columns == ("session_id",)]
    with connection.cursor() as cursor:
        for one in lacking:
            cursor.execute(f"ALTER TABLE {one.table} DROP CONSTRAINT {one.name}")
    # The one to the session is also there with the tenant.
    [added] = distributing._of_models(placements())
    assert (len(lacking), added.columns, added.target) == (2, ("tenant_id",), "memories_tenant")


def test_locks_are_taken_of_one_tenant_after_the_other(named: None) -> None:
    first, second = (factories.session(factories.end_user(factories.tenant(slug=slug))) for slug in ("t1", "t2"))
    asked = SessionQueue.objects.select_for_update(of=("self",)).filter(session__in=[first, second])
    found: list[SessionQueue] = []
    with transaction.atomic():
        sent = statements(lambda: found.extend(asked.select_related("session").order_by("pk")))
        assert len(asked.order_by("pk")[:1]) == 1
        assert list(asked.filter(session__external_id="unknown")) == []
    assert {row.pk for row in found} == {first.pk, second.pk}
    assert [row.session.tenant_id == row.tenant_id for row in found] == [True, True]
    # Which tenants, without locks; then each by name.
    assert ["FOR UPDATE" in sql for sql in sent] == [False, True, True]
    assert all('"memories_sessionqueue"."tenant_id" = ' in sql for sql in sent[1:])


def test_changes_are_made_of_one_tenant_after_the_other(named: None) -> None:
    people = [factories.end_user(factories.tenant(slug=slug)) for slug in ("t1", "t2")]
    factories.end_user(people[0].tenant, external_id="stays")
    wanted = EndUser.objects.filter(pk__in=[person.pk for person in people])
    assert wanted.update(display_name="Changed") == 2
    assert EndUser.objects.filter(display_name="Changed").count() == 2
    # Saved whole: the tenant is not set, not even to itself.
    [*_, sql] = statements(people[0].save)
    assert 'SET "tenant_id"' not in sql
    assert sql.count("tenant_id") == 1
    assert wanted.delete()[0] == 2
    assert list(EndUser.objects.values_list("external_id", flat=True)) == ["stays"]


def test_joins_and_subqueries_stay_within_a_tenant(named: None) -> None:
    said = factories.session(factories.end_user(factories.tenant(slug="t1")))
    factories.fact(said.end_user)
    with_facts = EndUser.objects.filter(Exists(Fact.objects.filter(end_user=OuterRef("pk"))))
    [sql] = statements(
        lambda: list(Session.objects.select_related("end_user", "queue").filter(end_user__in=with_facts))
    )
    assert '"memories_enduser".tenant_id = "memories_session".tenant_id' in sql
    assert '"memories_sessionqueue".tenant_id = "memories_session".tenant_id' in sql
    assert 'U0."tenant_id" = (V0."tenant_id")' in sql
    assert list(Session.objects.filter(end_user__in=with_facts)) == [said]
    with of_tenant(factories.tenant(slug="t2").pk):
        assert list(Session.objects.filter(end_user__in=with_facts)) == []


def test_a_condition_that_is_written_once_names_the_tenant_of_each_call(named: None) -> None:
    """It is written in a request of some tenant, whose id must not stay in it."""
    first = factories.tenant(slug="t1")
    public = visibility.public_beside(parameter("tenant"), parameter("person"))
    talking = EndUser.objects.filter(sessions__ended_at=None).values("external_id")
    shared = Q(allowed_users__overlap=ArraySubquery(talking))
    with tenancy.of_tenant(first.pk):
        [of_the_request] = statements(lambda: list(EndUser.objects.filter(external_id="u")))
        written = condition(Fact, public & shared)
    assert first.pk.hex in of_the_request
    assert first.pk.hex not in written.replace("-", "")
    assert written.count("%(tenant)s") >= 4


def test_invariants_are_checked_of_one_tenant_after_the_other(several: None) -> None:
    first, second = (factories.session(factories.end_user(factories.tenant(slug=slug))) for slug in ("t1", "t2"))
    assert invariants.check() == []
    Session.objects.filter(pk=second.pk).update(turn_count=9)
    Session.objects.filter(pk=first.pk).update(turn_count=9)
    found = {broken.name: set(broken.ids) for broken in invariants.check()}
    assert found["turn_numbers"] == {first.pk, second.pk}


def test_one_servers_commands_are_refused(several: None, tmp_path: Path) -> None:
    for command in (["backup", "--to", str(tmp_path / "b")], ["restore", "--from", __file__, "--replace"]):
        with pytest.raises(CommandError, match="several nodes"):
            call_command(*command)
    with pytest.raises(CommandError, match="several nodes"):
        call_command("rewrite_tables", "--now")
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_a_table_is_searched_as_the_table(several: None) -> None:
    server = connections["default"]
    part = tables.named("public", "memories_turn_102008", server)
    assert (part.label, part.place("content")) == ("memories.Turn", "memories.Turn.content")
    assert part.quoted == '"public"."memories_turn_102008"'
    # What nobody knows keeps its name.
    assert tables.named("public", "planted_7", server).label == "public.planted_7"
