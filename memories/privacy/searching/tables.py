"""All tables of the database's catalogue, also those that nobody registered, and their rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from django.apps import apps
from django.db import connection, transaction
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
    """A table or, with `query`, a view or function of the system; `label` is the first part of the names of places."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    pages: int = 0
    query: str = ""

    @cached_property
    def label(self) -> str:
        model = _models().get(self.name) if self.schema == "public" else None
        return model._meta.label if model else self.name if self.query else f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        quote = connection.ops.quote_name
        return f"{quote(self.schema)}.{quote(self.name)}"

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
    columns = _columns()
    found: list[SearchedTable] = []
    closed: dict[str, str] = {}
    with connection.cursor() as cursor:
        cursor.execute(_TABLES, [list(SYSTEM)])
        for schema, name, oid, readable, pages in cursor.fetchall():
            if not readable:
                closed[f"{schema}.{name}"] = gettext_noop("no right to read it")
            elif oid in columns:
                found.append(SearchedTable(schema, name, tuple(columns[oid]), pages))
    return found, closed


def blocks(table: SearchedTable) -> Iterator[bytes]:
    """The rows as COPY writes them, in blocks of whole lines of some megabytes."""
    for statement in _slices(table):
        lines: list[bytes] = []
        size = 0
        with transaction.atomic(), connection.cursor() as cursor, cursor.copy(f"COPY ({statement}) TO STDOUT") as copy:
            for line in copy:
                lines.append(bytes(line))
                size += len(line)
                if size >= BLOCK_BYTES:
                    yield b"".join(lines)
                    lines, size = [], 0
        if lines:
            yield b"".join(lines)


def _slices(table: SearchedTable) -> Iterator[str]:
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


def _columns() -> dict[int, list[Column]]:
    found: dict[int, list[Column]] = {}
    with connection.cursor() as cursor:
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
