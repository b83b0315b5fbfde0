"""Row level security: policies that show a statement the rows of its tenant, whatever its conditions say.

They are for three roles. Web and worker's own is shown the tenant that the statement names, nothing where it names
none. Two more roles have the same rights, and web and worker's takes them for a transaction: one for limited operators,
who see some tenants, one for work that spans all. A member that inherits nothing has to say so: what merely forgets its
condition stays behind the first policy. The owner of the tables is not bound (commands, migrations, backups).

On a cluster (docs/distributed.md) each table has one policy instead, for web and worker's role: Citus tells the nodes
settings, but takes no role there. What spans all says so by the setting.

The policies follow migrations, as rights do.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.apps import apps
from django.core.management import CommandError
from django.db import connection, transaction
from psycopg import sql

from memories.db.lock_timeouts import retry_while_locked
from memories.db.tenancy import Policies
from memories.management import grants
from memories.models import Tenant

# The first version in which a member of a role can take it without inheriting it.
SINCE = (16,)
# The longest name of a role.
LONGEST = 63
_NAMED = "nullif(current_setting('memoryhub.tenants', true), '')"
# One value of each statement, not of each row: PostgreSQL asks for it once, and indexes are used as without it.
CONDITIONS = {
    Policies.ONE: f"{{column}} = (SELECT {_NAMED}::uuid)",
    Policies.SEVERAL: f"{{column}} = ANY ((SELECT {_NAMED}::uuid[])::uuid[])",
    Policies.ALL: "true",
}
NAMES = {Policies.ONE: "of_one_tenant", Policies.SEVERAL: "of_several_tenants", Policies.ALL: "of_all_tenants"}
# On a cluster. Citus has no policies with a query in them.
ON_NODES = "of_named_tenants"
_ON_NODES = (
    "current_setting('memoryhub.tenants', true) = '*' OR {column} = ANY "
    "(nullif(nullif(current_setting('memoryhub.tenants', true), ''), '*')::uuid[])"
)
# Tables with a tenant, or of tenants, that have no policies → why.
OPEN = {
    "memories_operator_tenants": "read to find out which tenants an operator sees",
    # A policy would look up the parent of each row, on the way of each request.
    "memories_throttlecounter": "counts of requests by key: no words, and no column for the tenant",
    "memories_idempotencyrecord_end_users": "pairs of ids, without a column for the tenant",
    "memories_batch": "spans tenants: an operator's, who is asked for each of its change sets",
    "memories_savedfilter": "an operator's",
    "memories_operator": "of the hub",
    "memories_operator_groups": "of the hub",
    "memories_operator_user_permissions": "of the hub",
    "memories_failedsignins": "of the hub",
    "memories_embeddingspace": "of the hub",
    "memories_tablerewrite": "of the hub",
    "memories_backup": "of the hub",
    "memories_workerheartbeat": "of the hub",
}
# Tables in which some rows are the hub's, without a tenant, and none of a tenant's business → why.
HUBS_OWN = {
    "memories_managementkey": "a key without a tenant manages all of them",
    "memories_operatormail": "what operators of several tenants are told",
}
LOCK_TIMEOUT, PAUSES = "2s", (0.5, 1, 2, 4, 8)


class Guarded(NamedTuple):
    """A table with policies, the column that names a row's tenant, and whether all are shown rows of the hub, which
    have none."""

    table: str
    column: str
    shows_hubs: bool

    def condition(self, wall: Policies | None) -> str:
        """None: the one policy of a cluster."""
        found = (CONDITIONS[wall] if wall is not None else _ON_NODES).format(column=self.column)
        return f"{self.column} IS NULL OR {found}" if self.with_hubs(wall) else found

    def with_hubs(self, wall: Policies | None) -> bool:
        """Whether the policy has a condition of its own for rows of the hub."""
        return self.shows_hubs and wall is not Policies.ALL


def guarded() -> Iterator[Guarded]:
    """All tables of tenants."""
    for model in apps.get_app_config("memories").get_models(include_auto_created=True):
        table = model._meta.db_table
        if table in OPEN:
            continue
        if model is Tenant:
            yield Guarded(table, "id", shows_hubs=False)
            continue
        fields: list[Any] = [f for f in model._meta.concrete_fields if f.column in ("tenant_id", "tenant_uuid")]
        for field in fields:
            yield Guarded(table, field.column, shows_hubs=field.null and table not in HUBS_OWN)


def roles_of(role: str) -> dict[Policies, str]:
    """The role behind each wall."""
    return {wall: f"{role}{wall}" for wall in Policies}


def _holders(role: str) -> dict[str, tuple[Policies | None, str]]:
    """Name of each policy that a table gets → its wall, and its role."""
    if connection.settings_dict["DISTRIBUTED"]:
        return {ON_NODES: (None, role)}
    return {NAMES[wall]: (wall, holder) for wall, holder in roles_of(role).items()}


class Policy(NamedTuple):
    """The role that a policy is for, and whether it shows rows of the hub beside those of its tenants."""

    role: str
    shows_hubs: bool


class TablePolicies(NamedTuple):
    """What a table has of it."""

    is_enforced: bool
    policies: dict[str, Policy]


def current_policies() -> dict[str, TablePolicies]:
    """Each table of the schema."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [list(_WALLS)])
        rows: list[tuple[str, bool, dict[str, list[Any]]]] = cursor.fetchall()
    return {
        table: TablePolicies(enforced, {name: Policy(*made) for name, made in found.items()})
        for table, enforced, found in rows
    }


_WALLS: dict[str, Policies | None] = {name: wall for wall, name in NAMES.items()} | {ON_NODES: None}
_HELD = """
    SELECT c.relname, c.relrowsecurity, coalesce((
        SELECT json_object_agg(p.polname, json_build_array(
            (SELECT string_agg(r.rolname, ',') FROM pg_roles r WHERE r.oid = ANY(p.polroles)),
            pg_get_expr(p.polqual, p.polrelid) LIKE '%%IS NULL%%'
        ))
        FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = ANY(%s)
    ), '{}')
    FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
"""


def give(role: str, *, enforced: bool) -> None:
    """Make the roles and policies. Where they are enforced, tables show nothing else from now on; else they wait.

    One table after the other, each locked for a moment. Errors: CommandError.
    """
    if connection.get_database_version() < SINCE:
        raise CommandError("MEMORYHUB_ROW_SECURITY needs PostgreSQL 16 or newer: unset it, or use a newer server.")
    if max(map(len, roles_of(role).values())) > LONGEST:
        raise CommandError(f"MEMORYHUB_ROW_SECURITY makes two roles from {role!r}: give the role a shorter name.")
    for wall, other in _holders(role).values():
        if not wall:
            continue
        # A role that nobody logs in to, with the same rights, which `role` can take but does not inherit.
        with transaction.atomic():
            grants.ensure_role(other, None)
            grants.give_rights(other)
            if not _ask("SELECT 1 WHERE pg_has_role(%s, %s, 'SET')", [role, other]):
                statement = "GRANT {other} TO {role} WITH INHERIT FALSE, SET TRUE"
                _run(statement, role=sql.Identifier(role), other=sql.Identifier(other))
    _change_all(role, enforced=enforced)


def lift() -> None:
    """Take the policies away. The roles stay: nobody can log in to them."""
    _change_all(None, enforced=False)


def _change_all(role: str | None, *, enforced: bool) -> None:
    """None: no policies."""
    holders = _holders(role) if role else {}
    there = current_policies()
    for one in guarded():
        wanted = TablePolicies(
            enforced, {name: Policy(holder, one.with_hubs(wall)) for name, (wall, holder) in holders.items()}
        )
        if one.table in there and there[one.table] != wanted:
            act = partial(_change, one, there[one.table], wanted)
            retry_while_locked(act, lock_timeout=LOCK_TIMEOUT, pauses=PAUSES)


def _change(one: Guarded, before: TablePolicies, wanted: TablePolicies) -> None:
    table = sql.Identifier(one.table)
    for name, policy in before.policies.items():
        if wanted.policies.get(name) != policy:
            _run("DROP POLICY {name} ON {table}", table=table, name=sql.Identifier(name))
    for name, policy in wanted.policies.items():
        if before.policies.get(name) != policy:
            _run(
                "CREATE POLICY {name} ON {table} TO {holder} USING ({condition})",
                table=table,
                name=sql.Identifier(name),
                holder=sql.Identifier(policy.role),
                condition=sql.SQL(one.condition(_WALLS[name])),
            )
    if before.is_enforced != wanted.is_enforced:
        _run(f"ALTER TABLE {{table}} {'ENABLE' if wanted.is_enforced else 'DISABLE'} ROW LEVEL SECURITY", table=table)


def ways_round(role: str) -> list[str]:
    """Why policies would not bind this role, in words that follow its name; none is as it should be."""
    others = [name for wall, name in roles_of(role).items() if wall is not Policies.ONE]
    [found] = _ask(
        "SELECT r.rolsuper, r.rolbypassrls, "
        "EXISTS (SELECT FROM pg_class c WHERE c.relrowsecurity AND pg_has_role(r.oid, c.relowner, 'USAGE')), "
        "EXISTS (SELECT FROM pg_roles o WHERE o.rolname = ANY(%s) AND pg_has_role(r.oid, o.oid, 'USAGE')) "
        "FROM pg_roles r WHERE r.rolname = %s",
        [others, role],
    )
    reasons = ("is a superuser", "has BYPASSRLS", "owns tables", f"inherits from {' or '.join(others)}")
    return [reason for reason, holds in zip(reasons, found, strict=True) if holds]


def _run(statement: str, **parts: sql.Composable) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(**parts))


def _ask(statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
