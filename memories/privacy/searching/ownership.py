"""Who owns a row, by the foreign keys of the database's catalogue: also of tables that nobody registered."""

import uuid
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from django.apps import apps
from django.db import connection, models

from memories.models import EndUser
from memories.privacy.searching.tables import Row, SearchedTable
from memoryhub.database.placement import COLUMN, Placement, placements

PEOPLE = EndUser._meta.db_table
_IDS = "%(people)s::uuid[]"
# Of keys of two columns the one beside the tenant; on a cluster all between distributed tables are such.
_KEYS = """
SELECT c.relname, a.attname, f.relname, b.attname, format_type(b.atttypid, b.atttypmod),
    bool_and(cardinality(k.conkey) = 2), bool_or(a.attnotnull)
FROM pg_constraint k CROSS JOIN unnest(k.conkey, k.confkey) AS pair (own, other)
JOIN pg_class c ON c.oid = k.conrelid JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = pair.own
JOIN pg_class f ON f.oid = k.confrelid JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = pair.other
WHERE k.contype = 'f' AND (cardinality(k.conkey) = 1 OR (cardinality(k.conkey) = 2 AND a.attname <> 'tenant_id'))
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4
"""


class ForeignKey(NamedTuple):
    """`table.column` refers to `target.key`, a column of this SQL type; `paired`: only beside the tenant; `always`:
    never NULL."""

    table: str
    column: str
    target: str
    key: str
    type: str
    paired: bool = False
    always: bool = False


Path = tuple[ForeignKey, ...]


class Ownership:
    """The paths from tables to people, and the owners of rows, cached."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_KEYS)
            self.keys = [ForeignKey(*row) for row in cursor.fetchall()]
        if connection.settings_dict["DISTRIBUTED"]:
            self.keys += _not_enforced()
        self._owners: dict[tuple[Path, bytes], set[uuid.UUID]] = {}

    @cached_property
    def paths(self) -> dict[str, list[Path]]:
        """Table → for each of its columns that leads to a person the shortest path; a breadth-first search."""
        found: dict[str, list[Path]] = {}
        edge: list[Path] = [(key,) for key in self.keys if key.target == PEOPLE]
        while edge:
            for path in edge:
                found.setdefault(path[0].table, []).append(path)
            visited = {(path[0].table, path[0].column) for paths in found.values() for path in paths}
            longer = [(key, *path) for path in edge for key in self.keys if key.target == path[0].table]
            first = {(path[0].table, path[0].column): path for path in reversed(longer)}
            edge = [path for start, path in first.items() if start not in visited and path[0].table != PEOPLE]
        return found

    def owners(self, table: SearchedTable, row: Row) -> set[uuid.UUID]:
        """The people whom the row is about: by its own keys, or by those of a table that joins it to people."""
        if table.schema != "public" or table.query:
            return set()
        if table.name == PEOPLE:
            return {uuid.UUID(row["id"].decode())}
        paths = [path for path in self.paths.get(table.name, ()) if path[0].column in row]
        # A column that refers to a person decides; without one, all rows that this one refers to do.
        direct = {uuid.UUID(row[path[0].column].decode()) for path in paths if len(path) == 1}
        owners = direct or set().union(*(self._owners_at_end(path, row[path[0].column]) for path in paths))
        return owners or set().union(*self._owners_by_joins(table, row))

    def _owners_by_joins(self, table: SearchedTable, row: Row) -> Iterator[set[uuid.UUID]]:
        for key in self.keys:
            if key.target == table.name and key.key in row:
                for path in self.paths.get(key.table, ()):
                    if path[0].column != key.column:
                        start = key._replace(target=key.table, key=key.column)
                        yield self._owners_at_end((start, *path), row[key.key])

    def _owners_at_end(self, path: Path, value: bytes) -> set[uuid.UUID]:
        """The people at the end of the path that begins with this value."""
        if (path, value) not in self._owners:
            last = f"t{len(path) - 2}.{_quoted(path[-1].column)}"
            tables = f"{_quoted(path[0].target)} t0"
            for number, key in enumerate(path[1:-1], start=1):
                before, here = f"t{number - 1}.{_quoted(key.column)}", f"t{number}.{_quoted(key.key)}"
                tables += f" JOIN {_quoted(key.target)} t{number} ON {here} = {before}"
                if key.paired:
                    tables += f" AND t{number}.{COLUMN} = t{number - 1}.{COLUMN}"
            # As the key's own type, so that its index serves: many rows may have to be asked for.
            value_of_key = f"t0.{_quoted(path[0].key)} = %s::{path[0].type}"
            statement = f"SELECT {last} FROM {tables} WHERE {value_of_key}"  # noqa: S608 (the catalogue's)
            with connection.cursor() as cursor:
                cursor.execute(statement, [value.decode()])
                self._owners[path, value] = {found for (found,) in cursor.fetchall() if found}
        return self._owners[path, value]

    def conditions(self, table: SearchedTable) -> list[str]:
        """SQL for the rows of people, whose ids are the parameter `people`, an array; empty for a table without any.

        A path that every row has decides. Where none is, each is a condition, and so are rows that lead to nobody, and
        that only rows of these people refer to.
        """
        if table.schema != "public":
            return []
        if table.name == PEOPLE:
            return [f"id = ANY({_IDS})"]
        paths = sorted(self.paths.get(table.name, ()), key=len)
        certain = [path for path in paths if path[0].always]
        if certain:
            return [_at_end(certain[0])]
        of_nobody = [f"{_quoted(path[0].column)} IS NULL" for path in paths if len(path) == 1]
        joined = self.referring(table) if of_nobody else []
        return [_at_end(path) for path in paths] + [" AND ".join([*of_nobody, one]) for one in joined]

    def referring(self, table: SearchedTable) -> Iterator[str]:
        """SQL for the rows that only rows of these people refer to, by each key; as `conditions`."""
        for key in self.keys if table.schema == "public" else ():
            for path in self.paths.get(key.table, ()) if key.target == table.name else ():
                if len(path) == 1:
                    theirs = f"{_quoted(path[0].column)} = ANY({_IDS})"
                    tenant = f"{COLUMN}, " if key.paired else ""
                    joined = f"SELECT {tenant}{_quoted(key.column)} FROM {_quoted(key.table)} WHERE {theirs}"  # noqa: S608
                    here = f"{table.quoted}.{_quoted(key.key)}"
                    others = f"SELECT FROM {_quoted(key.table)} j WHERE j.{_quoted(key.column)} = {here}"
                    if key.paired:
                        others += f" AND j.{COLUMN} = {table.quoted}.{COLUMN}"
                    yield f"({tenant}{here}) IN ({joined}) AND NOT EXISTS ({others} AND NOT ({theirs}))"


def _at_end(path: Path) -> str:
    *between, last = path
    condition = f"{_quoted(last.column)} = ANY({_IDS})"
    for key in reversed(between):
        tenant = f"{COLUMN}, " if key.paired else ""
        within = f"SELECT {tenant}{_quoted(key.key)} FROM {_quoted(key.target)} WHERE {condition}"  # noqa: S608
        condition = f"({tenant}{_quoted(key.column)}) IN ({within})"
    return condition


def _not_enforced() -> Iterator[ForeignKey]:
    """References that a cluster cannot have as keys: from tables on the coordinator to rows on the nodes."""
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table
        for field in model._meta.concrete_fields if placements()[table] is Placement.LOCAL else ():
            if isinstance(field, models.ForeignKey):
                target, key = field.remote_field.model._meta.db_table, field.target_field
                if placements()[target] is Placement.DISTRIBUTED:
                    yield ForeignKey(table, field.column, target, str(key.column), str(key.rel_db_type(connection)))


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))
