"""All tables of the database's catalogue, also those that nobody registered, and their rows.

On a cluster (docs/distributed.md) the catalogue of each node is read, and the rows where they lie: what a move left
behind on a node is in no table of the coordinator.
"""

import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from django.apps import apps
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_noop

# A slice is a statement with its own snapshot: no vacuum waits for a whole table.
SLICE_PAGES = 4096
BLOCK_BYTES = 4 << 20
SYSTEM = ("pg_catalog", "information_schema")
_TABLES = """
SELECT n.nspname, c.relname, c.oid::bigint, has_table_privilege(c.oid, 'SELECT'),
    pg_relation_size(c.oid) / current_setting('block_size')::int
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname <> ALL(%s) AND n.nspname !~ '^pg_(toast|temp_)'
ORDER BY 1, 2
"""
# On a node these are names for the parts on all nodes.
_WHOLE = "SELECT logicalrelid::oid::bigint FROM pg_dist_partition"
_WORKERS = "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 AND noderole = 'primary' ORDER BY nodeid"
_PART = re.compile(r"(.+)_[0-9]+")
# Numbers, times and choices hold nobody's words: they are read only as primary and foreign keys.
_COLUMNS = """
SELECT a.attrelid::bigint, a.attname, t.typname, t.typsend::regproc::text, EXISTS (
    SELECT 1 FROM pg_constraint k WHERE k.conrelid = a.attrelid AND k.contype = 'p' AND a.attnum = ANY(k.conkey))
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relkind IN ('r', 'm') AND a.attnum > 0 AND NOT a.attisdropped AND (
    t.typcategory NOT IN ('N', 'B', 'D', 'T', 'E') OR EXISTS (
        SELECT 1 FROM pg_constraint k
        WHERE k.conrelid = a.attrelid AND k.contype IN ('p', 'f') AND a.attnum = ANY(k.conkey)))
ORDER BY 1, a.attnum
"""
VECTORS = ("vector", "halfvec", "sparsevec")
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_ESCAPED = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
Row = dict[str, bytes]


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    sql: str
    primary: bool = False


@dataclass(frozen=True)
class SearchedTable:
    """A table or, with `query`, a view or function of the system; `label` is the first part of the names of places.

    On a cluster `part` is what of it lies on the node of `server`.
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    pages: int = 0
    query: str = ""
    part: str = ""
    server: BaseDatabaseWrapper = field(default_factory=lambda: connections[connection.alias], compare=False)

    @cached_property
    def label(self) -> str:
        model = _models().get(self.name) if self.schema == "public" else None
        return model._meta.label if model else self.name if self.query else f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        quote = connection.ops.quote_name
        return f"{quote(self.schema)}.{quote(self.part or self.name)}"

    def place(self, column: str) -> str:
        """`memories.Turn.content`; `public.table.column` when there is no model."""
        model = _models().get(self.name) if self.schema == "public" else None
        names = {field.column: field.name for field in model._meta.local_fields} if model else {}
        return f"{self.label}.{names.get(column, column)}"

    def row(self, line: bytes) -> Row:
        """The columns of a line of COPY that are not NULL."""
        values = zip(self.columns, line.split(b"\t"), strict=True)
        return {column.name: _ESCAPE.sub(_plain, value) for column, value in values if value != rb"\N"}


def tables() -> tuple[list[SearchedTable], dict[str, str]]:
    """All tables with columns that can hold words or ids; and table → reason for those that may not be read."""
    with connection.cursor() as cursor:
        return _tables(cursor, connections[connection.alias])


@contextmanager
def servers() -> Iterator[list[BaseDatabaseWrapper]]:
    """A connection to each server that has rows: the hub's own, and on a cluster those of the other nodes."""
    own = connections[connection.alias]
    workers: list[BaseDatabaseWrapper] = []
    if own.settings_dict["DISTRIBUTED"]:
        with connection.cursor() as cursor:
            cursor.execute(_WORKERS)
            workers = [_connected(own, host, port) for host, port in cursor.fetchall()]
    try:
        yield [own, *workers]
    finally:
        for worker in workers:
            worker.close()
            del connections[worker.alias]


def tables_on(server: BaseDatabaseWrapper) -> tuple[list[SearchedTable], dict[str, str]]:
    """As `tables`, of what lies on this server."""
    if not server.settings_dict["DISTRIBUTED"]:
        return tables()
    with reading(server) as cursor:
        cursor.execute(_WHOLE)
        whole = {oid for (oid,) in cursor.fetchall()}
        return _tables(cursor, server, whole)


@contextmanager
def reading(server: BaseDatabaseWrapper) -> Iterator[Any]:
    """A cursor for one transaction. On a cluster it sees the parts of tables, too."""
    with transaction.atomic(using=server.alias), server.cursor() as cursor:
        if server.settings_dict["DISTRIBUTED"]:
            cursor.execute("SET LOCAL citus.override_table_visibility = off")
        yield cursor


def slices(table: SearchedTable) -> Iterator[Iterator[bytes]]:
    """The rows as COPY writes them: of each slice the blocks, of whole lines and some megabytes.

    Read the blocks of a slice to the end before you send another statement: the connection waits for ever otherwise.
    """
    for statement in _statements(table):
        yield _blocks(table.server, statement)


def _blocks(server: BaseDatabaseWrapper, statement: str) -> Iterator[bytes]:
    lines: list[bytes] = []
    size = 0
    with reading(server) as cursor, cursor.copy(f"COPY ({statement}) TO STDOUT") as copy:
        for line in copy:
            lines.append(bytes(line))
            size += len(line)
            if size >= BLOCK_BYTES:
                yield b"".join(lines)
                lines, size = [], 0
    if lines:
        yield b"".join(lines)


def _statements(table: SearchedTable) -> Iterator[str]:
    if table.query:
        yield table.query
        return
    chosen = ", ".join(column.sql for column in table.columns)
    statement = f"SELECT {chosen} FROM ONLY {table.quoted}"  # noqa: S608 (the catalogue's)
    for first in range(0, max(table.pages, 1), SLICE_PAGES):
        last = first + SLICE_PAGES
        # The last one has no end: the table may have grown.
        until = f" AND ctid < '({last},0)'" if last < table.pages else ""
        yield f"{statement} WHERE ctid >= '({first},0)'{until}"


def _connected(own: BaseDatabaseWrapper, host: str, port: int) -> BaseDatabaseWrapper:
    """A connection to another node, as the role and with the options that the hub has on the coordinator."""
    copied = own.copy(f"{own.alias} at {host}:{port}")
    copied.settings_dict |= {"HOST": host, "PORT": port}
    connections[copied.alias] = copied
    return copied


def _tables(
    cursor: Any, server: BaseDatabaseWrapper, whole: Container[int] = ()
) -> tuple[list[SearchedTable], dict[str, str]]:
    """Without those in `whole`, whose parts are among the others."""
    columns = _columns(cursor)
    found: list[SearchedTable] = []
    closed: dict[str, str] = {}
    cursor.execute(_TABLES, [list(SYSTEM)])
    for schema, name, oid, readable, pages in cursor.fetchall():
        if oid in whole:
            continue
        if not readable:
            closed[f"{schema}.{name}"] = gettext_noop("no right to read it")
        elif oid in columns:
            found.append(replace(named(schema, name, server), columns=tuple(columns[oid]), pages=pages))
    return found, closed


def named(schema: str, name: str, server: BaseDatabaseWrapper) -> SearchedTable:
    """What the server's catalogue names so: a table, or a part of one."""
    part = _PART.fullmatch(name) if server.settings_dict["DISTRIBUTED"] and schema == "public" else None
    if part and part[1] in _models():
        return SearchedTable(schema, part[1], (), part=name, server=server)
    return SearchedTable(schema, name, (), server=server)


def _columns(cursor: Any) -> dict[int, list[Column]]:
    found: dict[int, list[Column]] = {}
    cursor.execute(_COLUMNS)
    for oid, name, kind, send, primary in cursor.fetchall():
        quoted = connection.ops.quote_name(name)
        # A vector as its digest: the text of a thousand numbers takes long to write and to read.
        sql = f"encode(sha256({send}({quoted})), 'hex')" if kind in VECTORS else quoted
        found.setdefault(oid, []).append(Column(name, kind, sql, primary))
    return found


@cache
def _models() -> dict[str, Any]:
    models = apps.get_models(include_auto_created=True)
    return {model._meta.db_table: model for model in models if not model._meta.proxy}


def _plain(escape: re.Match[bytes]) -> bytes:
    return _ESCAPED.get(escape[1], escape[1])
