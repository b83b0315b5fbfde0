"""Whose a row is, by the foreign keys that the database's catalogue has: of a table that nobody registered, too."""

import uuid
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from django.db import connection

from memories.models import EndUser
from memories.privacy.searching.tables import Row, Table

PEOPLE = EndUser._meta.db_table
_KEYS = """
SELECT c.relname, a.attname, f.relname, b.attname
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
JOIN pg_class f ON f.oid = k.confrelid JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1]
WHERE k.contype = 'f' AND array_length(k.conkey, 1) = 1
"""


class Key(NamedTuple):
    """A foreign key: `table.column` holds `target.key`."""

    table: str
    column: str
    target: str
    key: str


Chain = tuple[Key, ...]


class Belonging:
    """The ways from tables to people, and the owners of rows that were asked for."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_KEYS)
            self.keys = [Key(*row) for row in cursor.fetchall()]
        self._known: dict[tuple[Chain, bytes], set[uuid.UUID]] = {}

    @cached_property
    def chains(self) -> dict[str, list[Chain]]:
        """Table → for each of its columns that leads to a person the shortest way there."""
        found: dict[str, list[Chain]] = {}
        edge: list[Chain] = [(key,) for key in self.keys if key.target == PEOPLE]
        while edge:
            for chain in edge:
                found.setdefault(chain[0].table, []).append(chain)
            reached = {(chain[0].table, chain[0].column) for ways in found.values() for chain in ways}
            longer = [(key, *chain) for chain in edge for key in self.keys if key.target == chain[0].table]
            first = {(way[0].table, way[0].column): way for way in reversed(longer)}
            edge = [way for start, way in first.items() if start not in reached and way[0].table != PEOPLE]
        return found

    def owners(self, table: Table, row: Row) -> set[uuid.UUID]:
        """The people whom the row is about: by its own keys, or by those of a table that joins it to people."""
        if table.schema != "public" or table.query:
            return set()
        if table.name == PEOPLE:
            return {uuid.UUID(row["id"].decode())}
        ways = [chain for chain in self.chains.get(table.name, ()) if chain[0].column in row]
        # A column that names the person says it; where there is none, all that the row is about do.
        named = {uuid.UUID(row[chain[0].column].decode()) for chain in ways if len(chain) == 1}
        told = named or set().union(*(self._reached(chain, row[chain[0].column]) for chain in ways))
        return told or set().union(*self._joined(table, row))

    def _joined(self, table: Table, row: Row) -> Iterator[set[uuid.UUID]]:
        for key in self.keys:
            if key.target == table.name and key.key in row:
                for chain in self.chains.get(key.table, ()):
                    if chain[0].column != key.column:
                        yield self._reached((key._replace(target=key.table, key=key.column), *chain), row[key.key])

    def _reached(self, chain: Chain, value: bytes) -> set[uuid.UUID]:
        """The people at the end of the chain that begins with this value."""
        asked = (chain, value)
        if asked not in self._known:
            last = f"t{len(chain) - 2}.{_quoted(chain[-1].column)}"
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT {last} FROM {_join(chain)}::text = %s", [value.decode()])  # noqa: S608
                self._known[asked] = {found for (found,) in cursor.fetchall() if found}
        return self._known[asked]

    def condition(self, table: Table) -> str | None:
        """SQL that holds for the rows of the people of an array (its one parameter); None of a table without any."""
        if table.schema != "public" or not (table.name == PEOPLE or table.name in self.chains):
            return None
        if table.name == PEOPLE:
            return "id = ANY(%s)"
        *between, last = min(self.chains[table.name], key=len)
        condition = f"{_quoted(last.column)} = ANY(%s)"
        for key in reversed(between):
            within = f"SELECT {_quoted(key.key)} FROM {_quoted(key.target)} WHERE {condition}"  # noqa: S608
            condition = f"{_quoted(key.column)} IN ({within})"
        return condition


def _join(chain: Chain) -> str:
    """The tables behind the chain's first key, up to the one that names the person, and what the first is found by."""
    said = f"{_quoted(chain[0].target)} t0"
    for number, key in enumerate(chain[1:-1], start=1):
        before, here = f"t{number - 1}.{_quoted(key.column)}", f"t{number}.{_quoted(key.key)}"
        said += f" JOIN {_quoted(key.target)} t{number} ON {here} = {before}"
    return f"{said} WHERE t0.{_quoted(chain[0].key)}"


def _quoted(name: str) -> str:
    return str(connection.ops.quote_name(name))
