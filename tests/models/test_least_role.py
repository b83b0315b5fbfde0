"""What web and worker may do to the database: work with rows, nothing that undoes the trail or reaches beyond it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import DatabaseError, ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from psycopg.errors import InsufficientPrivilege

from memories import audit
from memories.management import grants
from memories.models import AuditEvent, AuditSeal, Tenant
from memories.privacy import rewriting
from memories.privacy.trail import sealing
from tests import factories
from tests.database import held as held_open
from tests.database import runtime_role
from tests.factories import COMMAND

RECORD = {"SELECT", "INSERT"}
WORK = {*RECORD, "UPDATE", "DELETE", "MAINTAIN"}
TRAIL = {"memories_auditevent", "memories_auditseal"}
# What the web server's role could do when it was the superuser, the one after the other.
REFUSED = [
    "SET session_replication_role = replica",
    "ALTER TABLE memories_auditevent DISABLE TRIGGER audit_append_only",
    "ALTER TABLE memories_auditevent DISABLE TRIGGER ALL",
    "DROP TRIGGER audit_append_only ON memories_auditevent",
    "DROP FUNCTION memories_audit_refuses() CASCADE",
    "CREATE OR REPLACE FUNCTION memories_audit_refuses() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
    "ALTER FUNCTION memories_prune_audit(uuid, bigint) SECURITY INVOKER",
    "UPDATE memories_auditevent SET verb = 'nothing'",
    "DELETE FROM memories_auditevent",
    "WITH way AS (SELECT set_config('memoryhub.audit_pruning', 'on', true)) DELETE FROM memories_auditevent",
    "TRUNCATE memories_auditevent",
    "UPDATE memories_auditseal SET count = 0",
    "DELETE FROM memories_auditseal",
    "DROP TABLE memories_auditevent CASCADE",
    "TRUNCATE memories_turn CASCADE",
    "ALTER TABLE memories_turn OWNER TO memoryhub_runtime",
    "ALTER DEFAULT PRIVILEGES FOR ROLE memoryhub GRANT ALL ON TABLES TO memoryhub_runtime",
    "DELETE FROM django_migrations",
    "CREATE TABLE mine (id int)",
    "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE SCHEMA mine",
    "CREATE EXTENSION pg_trgm",
    "CREATE DATABASE mine",
    "CREATE ROLE mine",
    "ALTER ROLE memoryhub_runtime SUPERUSER",
    "SET ROLE memoryhub",
    "ALTER SYSTEM SET log_statement = 'all'",
    "COPY (SELECT 1) TO PROGRAM 'cat'",
    "COPY (SELECT 1) TO '/tmp/mine'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT rolpassword FROM pg_authid",
]
# The positive control: what the hub does all day, and what an erasure does to the tables that it emptied.
ALLOWED = [
    "SELECT count(*) FROM memories_turn",
    "UPDATE memories_turn SET content = 'x'",
    "DELETE FROM memories_turn",
    "INSERT INTO memories_auditevent SELECT * FROM memories_auditevent WHERE false",
    "SELECT pg_advisory_xact_lock(1)",
    "SELECT query FROM pg_stat_activity",
    "VACUUM (ANALYZE, SKIP_LOCKED, TRUNCATE FALSE) memories_turn",
    "VACUUM (FULL) memories_turn",
]


@contextmanager
def runtime() -> Iterator[psycopg.Connection[Any]]:
    """A connection of the role's own to the tests' database."""
    user, password = runtime_role()
    given = connection.settings_dict
    where = {"host": given["HOST"], "port": given["PORT"], "dbname": given["NAME"]}
    with psycopg.connect(**where, user=user, password=password, autocommit=True) as connected:
        yield connected


@pytest.mark.django_db(transaction=True)
def test_each_is_refused_and_the_work_of_the_hub_is_not() -> None:
    event = audit.record(actor=COMMAND, verb="add", target=Tenant, object_id=factories.tenant().pk, tenant=None,
                         now=timezone.now())  # fmt: skip
    with runtime() as connected:
        assert [statement for statement in REFUSED if carried_out(connected, statement)] == []
        for statement in ALLOWED:
            connected.execute(statement)
    assert AuditEvent.objects.get().pk == event.pk


def carried_out(connected: psycopg.Connection[Any], statement: str) -> bool:
    try:
        connected.execute(statement)
    except InsufficientPrivilege:
        # For nothing else: none is refused for being misspelt.
        return False
    return True


@pytest.mark.django_db(transaction=True)
def test_the_role_that_they_had_before_could() -> None:
    """What stood open: each by itself, or after the first."""
    for statement in REFUSED:
        if "memories_audit" in statement:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL session_replication_role = replica")
                cursor.execute(statement)
                transaction.set_rollback(True)


def held() -> dict[str, set[str]]:
    """Table → what the role may do to it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, name FROM pg_class c, unnest(%s::text[]) name "
            "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') "
            "AND has_table_privilege(%s, c.oid, name)",
            [[*WORK, "TRUNCATE", "REFERENCES", "TRIGGER"], runtime_role()[0]],
        )
        found: dict[str, set[str]] = {}
        for table, name in cursor.fetchall():
            found.setdefault(table, set()).add(name)
    return found


@pytest.mark.django_db
class TestRights:
    def test_every_table_has_its_rights_and_no_more(self) -> None:
        tables = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
        wanted = {table: RECORD if table in TRAIL else WORK for table in tables} | {"django_migrations": {"SELECT"}}
        assert {"axes_accessattempt", "django_q_ormq", "django_session", "mfa_authenticator"} <= wanted.keys()
        assert held() == wanted

    def test_a_role_that_is_nobody(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls, "
                "(SELECT count(*) FROM pg_class WHERE relowner = r.oid), "
                "ARRAY(SELECT roleid::regrole::text FROM pg_auth_members WHERE member = r.oid AND inherit_option) "
                "FROM pg_roles r WHERE rolname = %s",
                [runtime_role()[0]],
            )
            assert cursor.fetchone() == (False, 0, ["pg_read_all_stats"])

    def test_its_statements_end(self) -> None:
        with runtime() as connected:
            names = ("statement_timeout", "idle_in_transaction_session_timeout")
            assert [connected.execute(f"SHOW {name}").fetchone() for name in names] == [("30s",), ("5min",)]
            connected.execute("SET statement_timeout = '50ms'")
            with pytest.raises(psycopg.errors.QueryCanceled):
                connected.execute("SELECT pg_sleep(20)")

    def test_tables_made_by_hand_later_can_be_searched_and_no_more(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE aside (id int)")
        assert held()["aside"] == {"SELECT"}

    def test_what_is_too_much_is_taken_away_by_the_next_migration(self) -> None:
        role, before = runtime_role()[0], held()
        with connection.cursor() as cursor:
            cursor.execute(f"GRANT ALL ON memories_auditevent, memories_turn TO {role}")
            cursor.execute(f"REVOKE ALL ON memories_fact FROM {role}")
            cursor.execute(f"GRANT CREATE ON SCHEMA public TO {role}")
        assert held() != before
        call_command("migrate", interactive=False, verbosity=0)
        assert held() == before
        with connection.cursor() as cursor:
            cursor.execute("SELECT has_schema_privilege(%s, 'public', 'CREATE')", [role])
            assert cursor.fetchone() == (False,)

    def test_twice_is_once(self) -> None:
        before = held()
        grants.give(*runtime_role())
        assert held() == before

    def test_times_that_somebody_gave_it_stay(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("ALTER ROLE memoryhub_runtime SET statement_timeout = '7s'")
            grants.give(*runtime_role())
            cursor.execute("SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'memoryhub_runtime'::regrole")
            assert "statement_timeout=7s" in cursor.fetchone()[0]

    def test_a_role_that_is_missing_is_made_with_a_password_that_no_statement_shows(self) -> None:
        with CaptureQueriesContext(connection) as captured, connection.cursor() as cursor:
            grants.give("another's role", "it's a secret")
            cursor.execute("SELECT rolcanlogin, rolsuper, rolpassword FROM pg_authid WHERE rolname ~ 'another.s'")
            may, is_super, password = cursor.fetchone()
        assert (may, is_super, password[:14]) == (True, False, "SCRAM-SHA-256$")
        said = " ".join(query["sql"] for query in captured.captured_queries)
        assert "CREATE ROLE" in said
        assert "a secret" not in said

    def test_an_owner_that_may_not_make_it_says_what_to_do(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL ROLE memoryhub_runtime")
        with pytest.raises(CommandError, match="run CREATE ROLE"):
            grants.give("nobody-yet", "")
        with connection.cursor() as cursor:
            cursor.execute("RESET ROLE")


@pytest.mark.django_db(transaction=True)
class TestPruning:
    """The one way by which events go: the owner's function, which asks for the link and for their age."""

    def record(self, tenant: Tenant, days: float) -> AuditEvent:
        now = timezone.now() - timedelta(days=days)
        event = audit.record(actor=COMMAND, verb="edit", target=tenant, object_id=tenant.pk, tenant=tenant, now=now)
        sealing.seal(now=timezone.now(), seconds=60.0, wait_seconds=0.0)
        return event

    def forge(self, event: AuditEvent, *, last_id: int | None = None) -> None:
        link = AuditSeal.objects.filter(tenant_uuid=event.tenant_uuid).latest("number")
        link.pk, link.number, link.kind, link.last_id = None, link.number + 1, "pruning", last_id or event.pk
        link.save(force_insert=True)

    @pytest.mark.usefixtures("least_role")
    def test_old_ones_go_and_young_ones_stay_whatever_the_chain_says(self) -> None:
        tenant = factories.tenant()
        old = self.record(tenant, 91)
        young = self.record(tenant, 89)
        self.forge(old)
        self.forge(young)
        with pytest.raises(DatabaseError, match="younger than 90 days"):
            self.prune(young)
        assert self.prune(old) == 1
        assert AuditEvent.objects.get().pk == young.pk

    @pytest.mark.usefixtures("least_role")
    @pytest.mark.parametrize("ahead", [None, 1_000])
    def test_nothing_goes_that_the_chain_does_not_say(self, ahead: int | None) -> None:
        event = self.record(factories.tenant(), 91)
        if ahead:
            self.forge(event, last_id=event.pk + ahead)
        with pytest.raises(DatabaseError, match="the chain does not say"):
            self.prune(event, upto=event.pk + (ahead or 0))
        assert AuditEvent.objects.exists()

    def test_it_is_the_runtime_roles_alone(self) -> None:
        event = self.record(factories.tenant(), 91)
        self.forge(event)
        with connection.cursor() as cursor:
            cursor.execute("CREATE ROLE stranger")
            try:
                cursor.execute("SET ROLE stranger")
                with pytest.raises(ProgrammingError, match="permission denied"):
                    self.prune(event)
            finally:
                cursor.execute("RESET ROLE")
                cursor.execute("DROP ROLE stranger")

    def prune(self, event: AuditEvent, *, upto: int | None = None) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT memories_prune_audit(%s, %s)", [event.tenant_uuid, upto or event.pk])
            return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
class TestWhatIsHidden:
    """Tables are rewritten only when nobody may see what was erased: a transaction that is hidden counts as one."""

    def gone(self, *, may_know: bool) -> Any:
        with transaction.atomic(), connection.cursor() as cursor:
            if not may_know:
                cursor.execute("REVOKE pg_read_all_stats FROM memoryhub_runtime")
            cursor.execute("SET LOCAL ROLE memoryhub_runtime")
            cursor.execute(rewriting._CLOCK)
            _, gone = cursor.fetchone()
            transaction.set_rollback(True)
        return gone

    def test_another_roles_transaction(self) -> None:
        def look() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM memories_turn")
                cursor.execute("SELECT pg_current_xact_id()")

        with held_open(look):
            assert self.gone(may_know=True).year > 2000
            assert self.gone(may_know=False).year == 1970
