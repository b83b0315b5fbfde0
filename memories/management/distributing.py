"""The tables of a migrated database are placed on the nodes of a Citus cluster (docs/distributed.md).

`manage.py migrate` does it for new tables of a later version, and for new references.

Django's models keep `id` as their primary key and single columns as references. In the database each key and unique
index of a distributed table names its tenant, and so does each reference.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.core.management import CommandError
from django.db import connection, models, transaction

from memoryhub.database.placement import COLUMN, Placement, placements

DELETES = {"a": "", "c": " ON DELETE CASCADE", "n": "", "r": " ON DELETE RESTRICT"}
# Keys that stay for the version before the one that made them anew (migration 0032).
OUTDATED = "_before_0032"
# In a trigger's function these are distributed: of each the shard that lies with the trigger's own is meant.
_SHARD = """
    SELECT format('%s_%s', {table}, other.shardid) FROM pg_dist_shard own, pg_dist_shard other
    WHERE own.shardid = substring(TG_TABLE_NAME FROM '[0-9]+$')::bigint AND other.shardminvalue = own.shardminvalue
        AND other.logicalrelid = {table}::regclass
"""
# Triggers fire on the nodes, on the parts of a table. What they delete and change lies beside it: it is of the tenant.
FUNCTIONS = {
    "memories_forget_logged_texts": f"""
DECLARE
    ids uuid[] := array(SELECT id FROM gone);
BEGIN
    IF ids <> '{{}}' THEN
        EXECUTE format($sql$
            UPDATE %I SET query = '', memory = ''
            WHERE rests_on && $1 AND rests_on <> '{{}}' AND (query <> '' OR memory <> '')
        $sql$, ({_SHARD.format(table="'memories_loggedcontext'")})) USING ids;
        EXECUTE format($sql$
            DELETE FROM %I WHERE rests_on && $1 AND rests_on <> '{{}}'
        $sql$, ({_SHARD.format(table="'memories_sentblock'")})) USING ids;
    END IF;
    RETURN NULL;
END
""",  # noqa: S608  (tables of ours)
    "memories_forget_unused_entities": f"""
DECLARE
    entities text := ({_SHARD.format(table="'memories_graphentity'")});
    people text := ({_SHARD.format(table="'memories_enduser'")});
    ids uuid[] := array(
        SELECT unnest(array[subject_id, object_id]) FROM gone WHERE TG_OP = 'DELETE' OR fact_id IS NOT NULL
    );
BEGIN
    WHILE ids <> '{{}}' LOOP
        EXECUTE format($sql$
            WITH unused AS (
                DELETE FROM %1$I e
                WHERE e.id = ANY ($1)
                    AND NOT EXISTS (SELECT FROM %2$I t WHERE t.subject_id = e.id)
                    AND NOT EXISTS (SELECT FROM %2$I t WHERE t.object_id = e.id)
                    AND NOT EXISTS (SELECT FROM %1$I a WHERE a.merged_into_id = e.id)
                    AND EXISTS (SELECT FROM %3$I p WHERE p.id = e.end_user_id AND p.restricted_at IS NULL)
                RETURNING e.merged_into_id
            )
            SELECT coalesce(array_agg(merged_into_id), '{{}}') FROM unused WHERE merged_into_id IS NOT NULL
        $sql$, entities, TG_TABLE_NAME, people) INTO ids USING ids;
    END LOOP;
    RETURN NULL;
END
""",  # noqa: S608  (as above)
    # Citus has no ON DELETE SET NULL beside the tenant.
    "memories_set_null": f"""
BEGIN
    EXECUTE format('UPDATE %I SET %I = NULL WHERE %2$I IN (SELECT id FROM gone)',
        ({_SHARD.format(table="TG_ARGV[0]")}), TG_ARGV[1]);
    RETURN NULL;
END
""",  # noqa: S608  (as above)
}
# Distributed and reference tables; of local ones Citus keeps some in its catalogue, too.
_PLACED = """
    SELECT logicalrelid::regclass::text FROM pg_dist_partition WHERE partmethod = 'h' OR repmodel = 't' ORDER BY 1
"""
DISTRIBUTED = Placement.DISTRIBUTED
# In the SQL of migrations: keys by one column or with the tenant, and the unique ones that the latter refer to.
_KEY = re.compile(
    r"ALTER TABLE (\w+) ADD CONSTRAINT (\w+)\s+(FOREIGN KEY \(([\w, ]+)\)\s+REFERENCES (\w+) \(([\w, ]+)\)([^;]*))"
)
# How a column is stored, and what the planner samples of it.
_STORED = re.compile(r"ALTER TABLE (\w+)\s+ALTER COLUMN \w+ SET (?:STATISTICS|STORAGE)[^;]*;?")
_UNIQUE_ID = re.compile(r"ALTER TABLE (\w+) ADD CONSTRAINT \w+ UNIQUE \(tenant_id, id\);")
_NOTED = "SET citus.enable_ddl_propagation TO off; {}; SET citus.enable_ddl_propagation TO on;"
# Of tables with columns that are not stored, or sampled, as others of their type.
_STORAGE = """
    SELECT a.attrelid::regclass::text, string_agg(
        format('ALTER COLUMN %%1$I SET STATISTICS %%2$s, ALTER COLUMN %%1$I SET STORAGE %%3$s', a.attname,
            coalesce(a.attstattarget, -1),
            CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END
        ), ', ')
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid::regclass::text = ANY (%s) AND a.attnum > 0 AND NOT a.attisdropped
        AND (a.attstattarget >= 0 OR a.attstorage <> t.typstorage)
    GROUP BY 1
"""
_NUMBERED = """
    SELECT c.relname, a.attname, pg_get_serial_sequence(quote_ident(c.relname), a.attname)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY (%s) AND a.attnum > 0 AND NOT a.attisdropped
        AND pg_get_serial_sequence(quote_ident(c.relname), a.attname) IS NOT NULL
"""
SET_NULL = """
CREATE TRIGGER {name} AFTER DELETE ON {target} REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION memories_set_null('{table}', '{column}')
"""


@dataclass(frozen=True)
class _CatalogReference:
    """A foreign key as the catalogue has it."""

    name: str
    table: str
    columns: tuple[str, ...]
    target: str
    target_columns: tuple[str, ...]
    deletes: str
    definition: str

    def added(self, placed: dict[str, Placement]) -> str | None:
        """The statement that makes it anew; None where nothing can hold it."""
        kinds = placed.get(self.table), placed.get(self.target)
        if kinds == (Placement.DISTRIBUTED, Placement.DISTRIBUTED):
            [column] = [name for name in self.columns if name != COLUMN]
            [target] = [name for name in self.target_columns if name != COLUMN]
            action = DELETES[self.deletes]
            defers = "" if action else " DEFERRABLE INITIALLY DEFERRED"
            return (
                f"ALTER TABLE {self.table} ADD CONSTRAINT {self.name} FOREIGN KEY ({COLUMN}, {column}) "
                f"REFERENCES {self.target} ({COLUMN}, {target}){action}{defers}"
            )
        if kinds[1] is Placement.DISTRIBUTED:
            return None
        return f"ALTER TABLE {self.table} ADD CONSTRAINT {self.name} {self.definition}"


def distribute() -> dict[Placement, int]:
    """Place the tables that are not placed yet; how many there are of each kind. Errors: CommandError."""
    if not _has_citus():
        raise CommandError("The database has no extension citus: make the cluster first (docs/distributed.md).")
    with transaction.atomic():
        was_distributed, placed = is_distributed(), _place_new()
        if was_distributed:
            _add(_of_models(placed), placed)
        number_on()
    if was_distributed:
        _store_alike(placed)
    return {kind: sum(other is kind for other in placed.values()) for kind in Placement}


def number_on() -> None:
    """New rows get ids above those that are there. Citus makes a local table anew when it places what refers to it, and
    begins its numbers at 1."""
    tables = connection.introspection.table_names()
    for table, column, sequence in _ask(_NUMBERED, tables):
        [(highest,)] = _ask(f"SELECT max({column}) FROM {table}")  # noqa: S608  (the catalogue's names)
        [(last,)] = _ask(f"SELECT last_value FROM {sequence}")  # noqa: S608  (as above)
        if highest is not None and highest >= last:
            _ask("SELECT setval(%s::regclass, %s)", sequence, highest)


@transaction.atomic
def for_nodes(script: str) -> list[str]:
    """The statements of a migration as a distributed database takes them: keys name the tenant. Errors: CommandError.

    Tables that the migration has made so far are placed first: Citus has no key from a table elsewhere. How columns
    are stored it does not pass on: the coordinator notes it, and `distribute` tells the nodes.
    """
    placed = _place_new()

    def key(found: "re.Match[str]") -> str:
        table, name, definition, columns, target, target_columns, action = found.groups()
        if "SET NULL" in action:
            raise CommandError(f"The key {name} of {table} has no form that runs on the nodes.")
        deletes = "c" if "ON DELETE CASCADE" in action else "a"
        split = (tuple(columns.split(", ")), target, tuple(target_columns.split(", ")))
        return _CatalogReference(name, table, *split, deletes, definition).added(placed) or ""

    # The primary key is that already.
    script = _UNIQUE_ID.sub(lambda found: "" if placed.get(found[1]) is DISTRIBUTED else found[0], script)
    script = _STORED.sub(lambda found: _NOTED.format(found[0].rstrip(";")), script)
    # Citus sends a node all that came in one piece, for each statement of it.
    return [one for one in _KEY.sub(key, script).split(";") if one.strip()]


def _place_new() -> dict[str, Placement]:
    """Place the tables that are not placed yet; where each one lies."""
    existing = set(connection.introspection.table_names())
    # An older state has not all tables of the models.
    placed = {table: kind for table, kind in placements().items() if table in existing}
    already = {table for (table,) in _ask(_PLACED)}
    moved = {table: placed[table] for table in placed.keys() - already if placed[table] is not Placement.LOCAL}
    references = _references(list(moved))
    kept = _once_each(references, placed)
    # One connection per node: in several, one would wait for what another has changed.
    _run("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
    for reference in references:
        _run(f"ALTER TABLE {reference.table} DROP CONSTRAINT {reference.name}")
    _place(moved, already, [reference for reference in kept if reference.deletes == "n"])
    _add(kept, placed)
    return placed


def _place(moved: dict[str, Placement], already: set[str], nulled: list[_CatalogReference]) -> None:
    distributed = sorted(table for table, kind in moved.items() if kind is Placement.DISTRIBUTED)
    for table in distributed:
        _name_tenant_in_keys(table)
    _replace_triggers(distributed, nulled)
    for table in sorted(moved.keys() - distributed):
        _run(f"SELECT create_reference_table('{table}')")
    others = [table for table, kind in placements().items() if table in already and kind is DISTRIBUTED]
    beside = min(others, default="default")
    for table in distributed:
        _run(f"SELECT create_distributed_table('{table}', '{COLUMN}', colocate_with => '{beside}')")
        beside = table
    # Citus leaves the rows on the coordinator's disk, too, where nothing deletes them. No key refers to any.
    for (table,) in _ask("SELECT t FROM unnest(%s::text[]) t WHERE pg_relation_size(t::regclass) > 0", list(moved)):
        _run(f"SELECT truncate_local_data_after_distributing_table('{table}')")


def _add(references: Iterable[_CatalogReference], placed: dict[str, Placement]) -> None:
    for reference in references:
        if statement := reference.added(placed):
            _run(statement)


def _of_models(placed: dict[str, Placement]) -> Iterator[_CatalogReference]:
    """References of models that the database lacks: `migrate` left them out (memoryhub/database/schema.py)."""
    distributed = [table for table, kind in placed.items() if kind is DISTRIBUTED]
    there = {_subject(one, placed) for one in _references(distributed)}
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table
        fields = [field for field in model._meta.concrete_fields if isinstance(field, models.ForeignKey)]
        for field in fields if table in distributed else ():
            if not field.db_constraint:  # type: ignore[attr-defined]  # the stubs lack it
                continue
            target, key = field.remote_field.model._meta.db_table, str(field.target_field.column)
            definition = f"FOREIGN KEY ({field.column}) REFERENCES {target} ({key}) DEFERRABLE INITIALLY DEFERRED"
            name, column = f"{table}_{field.column}_fk", str(field.column)
            reference = _CatalogReference(name, table, (column,), target, (key,), "a", definition)
            if _subject(reference, placed) not in there:
                yield reference


def _store_alike(placed: dict[str, Placement]) -> None:
    """The parts of tables on the nodes are stored as the coordinator has it. Errors: CommandError."""
    tables = [table for table, kind in placed.items() if kind is not Placement.LOCAL]
    for table, changes in _ask(_STORAGE, tables):
        statement = f"ALTER TABLE %s {changes}"
        for failure in _ask("SELECT result FROM run_command_on_placements(%s, %s) WHERE NOT success", table, statement):
            raise CommandError(f"A node did not take how {table} is stored: {failure[0]}")


def require_one_server(what: str) -> None:
    """Refuse what would see the coordinator alone. Errors: CommandError."""
    if connection.settings_dict["DISTRIBUTED"] or is_distributed():
        raise CommandError(f"{what} The tables are distributed over several nodes: see docs/distributed.md.")


def is_distributed() -> bool:
    return _has_citus() and bool(_ask(_PLACED))


def _has_citus() -> bool:
    return bool(_ask("SELECT 1 FROM pg_extension WHERE extname = 'citus'"))


def _once_each(references: list[_CatalogReference], placed: dict[str, Placement]) -> list[_CatalogReference]:
    """Of several references of one column to another distributed table the one that also deletes, or the first."""
    kept: dict[Any, _CatalogReference] = {}
    for reference in references:
        key = _subject(reference, placed)
        if key not in kept or (kept[key].deletes == "a" and reference.deletes != "a"):
            kept[key] = reference
    return list(kept.values())


def _subject(reference: _CatalogReference, placed: dict[str, Placement]) -> tuple[str, frozenset[str], str]:
    """What it says. Between distributed tables it is the same with the tenant and without."""
    is_pair = {placed.get(reference.table), placed.get(reference.target)} == {Placement.DISTRIBUTED}
    columns = frozenset(reference.columns) - ({COLUMN} if is_pair else set())
    return reference.table, columns, reference.target


def _name_tenant_in_keys(table: str) -> None:
    """Primary key and unique indexes get the tenant as their last column: the id alone still finds a row by them."""
    indexes = _ask(
        """
        SELECT i.relname, c.contype, x.indisprimary, pg_get_indexdef(x.indexrelid),
            array(SELECT pg_get_indexdef(x.indexrelid, place, true) FROM generate_series(1, x.indnkeyatts) place)
        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid LEFT JOIN pg_constraint c ON c.conindid = i.oid
            AND c.conrelid = x.indrelid AND c.contype IN ('p', 'u')
        WHERE x.indrelid = %s::regclass AND x.indisunique ORDER BY x.indisprimary DESC
        """,
        table,
    )
    for name, constraint, is_primary, definition, columns in indexes:
        if is_primary:
            if columns != [COLUMN]:
                key = ", ".join([*columns, COLUMN])
                _run(f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} PRIMARY KEY ({key})")
        elif set(columns) == {COLUMN, "id"} or name.endswith(OUTDATED):
            # Of the one the primary key is the same now.
            _run(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        elif COLUMN not in columns:
            _run(f"ALTER TABLE {table} DROP CONSTRAINT {name}" if constraint else f"DROP INDEX {name}")
            listed = ", ".join(columns)
            made = definition.replace(f"({listed})", f"({listed}, {COLUMN})", 1)
            if made == definition:
                raise CommandError(f"The unique index {name} of {table} cannot be made to name its tenant.")
            _run(made)


def _replace_triggers(tables: list[str], nulled: list[_CatalogReference]) -> None:
    found = _ask(
        "SELECT t.tgrelid::regclass::text, t.tgname, p.proname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE NOT t.tgisinternal AND t.tgrelid::regclass::text = ANY (%s)",
        tables,
    )
    for table, name, function in found:
        if function not in FUNCTIONS:
            raise CommandError(f"The trigger {name} of {table} has no form that runs on the nodes.")
    for function, body in FUNCTIONS.items():
        _run(f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $function${body}$function$")
    for each in nulled:
        [column] = [name for name in each.columns if name != COLUMN]
        _run(SET_NULL.format(name=each.name, table=each.table, target=each.target, column=column))


def _references(tables: list[str]) -> list[_CatalogReference]:
    """All foreign keys from or to these tables."""
    rows = _ask(
        """
        SELECT c.conname, c.conrelid::regclass::text,
            array(SELECT attname::text FROM unnest(c.conkey) WITH ORDINALITY k (number, place)
                JOIN pg_attribute ON attrelid = c.conrelid AND attnum = k.number ORDER BY k.place),
            c.confrelid::regclass::text,
            array(SELECT attname::text FROM unnest(c.confkey) WITH ORDINALITY k (number, place)
                JOIN pg_attribute ON attrelid = c.confrelid AND attnum = k.number ORDER BY k.place),
            c.confdeltype::text, pg_get_constraintdef(c.oid)
        FROM pg_constraint c WHERE c.contype = 'f'
            AND (c.conrelid::regclass::text = ANY (%s) OR c.confrelid::regclass::text = ANY (%s))
        ORDER BY c.conname
        """,
        tables,
        tables,
    )
    return [
        _CatalogReference(name, table, tuple(columns), target, tuple(target_columns), deletes, definition)
        for name, table, columns, target, target_columns, deletes, definition in rows
    ]


def _ask(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
