"""Rights of the role of web and worker. After each migration the owner grants what they need and revokes the rest."""

import logging
from collections.abc import Iterable
from typing import Any

from django.core.management import CommandError
from django.db import DatabaseError, ProgrammingError, connection, transaction
from psycopg import sql

from memories.models import AuditEvent, AuditSeal

# For the web server's statements. Workers set a longer one (memories/db/statement_timeouts.py).
STATEMENT_TIMEOUT = "30s"
# For a transaction without a running statement: an export writes files meanwhile. No transaction waits for a model.
IDLE_TIMEOUT = "5min"
READ = frozenset({"SELECT"})
RECORD = READ | {"INSERT"}
WORK = RECORD | {"UPDATE", "DELETE"}
# For VACUUM and ANALYZE after an erasure. Before PostgreSQL 17 only an owner can do that.
MAINTAIN = "MAINTAIN"
MAINTAIN_SINCE = (17,)
ALL = (*sorted(WORK), "TRUNCATE", "REFERENCES", "TRIGGER")
TRAIL = (AuditEvent._meta.db_table, AuditSeal._meta.db_table)
MIGRATIONS = "django_migrations"
PRUNE = "memories_prune_audit(uuid, bigint)"
# Any number, the same for all: one process at a time changes rights.
GRANT_LOCK = 6_110_310

logger = logging.getLogger(__name__)


@transaction.atomic
def give(role: str, password: str) -> None:
    """Give this role the rights that web and worker need, and no others. Errors: CommandError."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [GRANT_LOCK])
    ensure_role(role, password)
    # The role's timeouts, unless somebody has set others.
    rows = _ask(
        "SELECT split_part(one, '=', 1) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole, "
        "unnest(s.setconfig) one WHERE r.rolname = %s",
        [role],
    )
    held = {name for (name,) in rows}
    for name, time in (("statement_timeout", STATEMENT_TIMEOUT), ("idle_in_transaction_session_timeout", IDLE_TIMEOUT)):
        if name not in held:
            statement = "ALTER ROLE {role} SET {name} = {time}"
            _try(f"{name} = {time}", statement, role, name=sql.Identifier(name), time=sql.Literal(time))
    give_rights(role)


def give_rights(role: str) -> None:
    """The rights on tables and all else, for a role that there is."""
    # The worker needs it to see who can still read erased rows. Without it tables wait for `rewrite_tables`.
    if not _ask("SELECT 1 WHERE pg_has_role(%s, 'pg_read_all_stats', 'USAGE')", [role]):
        _try("membership in pg_read_all_stats", "GRANT pg_read_all_stats TO {role}", role)
    # Only the owner may create objects. Up to PostgreSQL 14 everybody may.
    if _ask("SELECT 1 WHERE has_schema_privilege(%s, 'public', 'CREATE')", [role]):
        _try("no CREATE in schema public", "REVOKE CREATE ON SCHEMA public FROM PUBLIC, {role}", role)
    if not _ask("SELECT 1 WHERE has_schema_privilege(%s, 'public', 'USAGE')", [role]):
        _run("GRANT USAGE ON SCHEMA public TO {role}", role)
    can_maintain = connection.get_database_version() >= MAINTAIN_SINCE
    for table, wanted in _wanted(can_maintain).items():
        _set_rights(role, table, wanted, [*ALL, MAINTAIN] if can_maintain else [*ALL])
    _run("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}", role)
    # The function is absent after a migration back.
    if _ask("SELECT 1 WHERE to_regprocedure(%s) IS NOT NULL", [PRUNE]):
        _run("REVOKE ALL ON FUNCTION {function} FROM PUBLIC", role, function=sql.SQL(PRUNE))
        _run("GRANT EXECUTE ON FUNCTION {function} TO {role}", role, function=sql.SQL(PRUNE))
    # Erasures search tables that somebody makes by hand later. Tables of migrations get their rights above, and have no
    # more than these before.
    _run("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {role}", role)
    _run("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role}", role)


def _wanted(can_maintain: bool) -> dict[str, frozenset[str]]:
    """Table → the rights on it."""
    with connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor))
    ours = there & set(connection.introspection.django_table_names())
    wanted = dict.fromkeys(ours, WORK | {MAINTAIN} if can_maintain else WORK)
    return wanted | dict.fromkeys(there & set(TRAIL), RECORD) | dict.fromkeys(there & {MIGRATIONS}, READ)


def _set_rights(role: str, table: str, wanted: frozenset[str], possible: list[str]) -> None:
    found = _ask(
        "SELECT name FROM unnest(%s::text[]) name WHERE has_table_privilege(%s, quote_ident(%s)::regclass, name)",
        [possible, role, table],
    )
    held = {name for (name,) in found}
    if held - wanted:
        _run("REVOKE {names} ON {table} FROM {role}", role, names=_listed(held - wanted), table=sql.Identifier(table))
    if wanted - held:
        _run("GRANT {names} ON {table} TO {role}", role, names=_listed(wanted - held), table=sql.Identifier(table))


def ensure_role(role: str, password: str | None) -> None:
    """Create the role if it is missing. None: nobody can log in to it. Errors: CommandError."""
    if _ask("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]):
        return
    login = sql.SQL("CREATE ROLE {}" if password is None else "CREATE ROLE {} LOGIN").format(sql.Identifier(role))
    if password:
        login += sql.SQL(" PASSWORD {}").format(sql.Literal(_verifier(role, password)))
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(login)
    except ProgrammingError as error:
        raise CommandError(
            f"The role {role!r} does not exist, and MEMORYHUB_OWNER_URL may not make it: have an administrator run "
            f"CREATE ROLE {'… LOGIN PASSWORD …' if password is not None else role}, then migrate again."
        ) from error


def _verifier(role: str, password: str) -> str:
    """The server's stored form of a password, so that no statement holds the password."""
    connection.ensure_connection()
    made: bytes = connection.connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
    return made.decode()


def _try(what: str, statement: str, role: str, **parts: sql.Composable) -> None:
    """Run a statement that needs more than owning the tables. Where it fails an administrator can run it."""
    try:
        with transaction.atomic():
            _run(statement, role, **parts)
    except DatabaseError as error:
        logger.warning("The role of DATABASE_URL could not be given: %s (%s)", what, type(error.__cause__).__name__)


def _run(statement: str, role: str, **parts: sql.Composable) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(role=sql.Identifier(role), **parts))


def _ask(statement: str, values: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _listed(names: Iterable[str]) -> sql.Composable:
    return sql.SQL(", ".join(sorted(names)))
