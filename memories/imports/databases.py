"""Reads rows of databases of other systems: SQLite's files and PostgreSQL, read only."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from memories.imports.findings import VIEWS, UnreadableError
from memories.imports.places import Given
from memories.imports.raw_documents import CutOffError

_SQLITE = b"SQLite format 3\0"
# Of a database's file, in bytes.
_HEAD = 100
_ROWS_AT_ONCE = 500
# Of a value.
_LONGEST = 100_000_000


def is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def sqlite_rows(path: Path, query: str) -> Iterator[dict[str, Any]]:
    """Read only: a hub that imports changes nothing where it reads. Errors: OSError, ValueError, sqlite3.Error;
    CutOffError, where the file ends early."""
    with closing(sqlite3.connect(f"{path.resolve(strict=True).as_uri()}?mode=ro", uri=True)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        connection.row_factory = sqlite3.Row
        # What is no text is refused where it stands.
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        try:
            # A view can be a program that never ends, or fills the memory.
            if connection.execute("SELECT 1 FROM sqlite_master WHERE lower(type) = 'view'").fetchone():
                raise UnreadableError(VIEWS)
            for row in connection.execute(query):
                yield dict(row)
        except sqlite3.DatabaseError:
            if fault := _ends_early(path):
                raise fault from None
            raise


def _ends_early(path: Path) -> CutOffError | None:
    """Why it cannot be read, where it has fewer pages than it says."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    # 1 stands for 65,536.
    page = int.from_bytes(head[16:18], "big")
    pages, size = int.from_bytes(head[28:32], "big"), path.stat().st_size
    said = pages * (65536 if page == 1 else page)
    return CutOffError(path, size, 0, whole=0) if size < said else None


def table_rows(given: Given, query: str, *, table: str, beside: str = "") -> Iterator[dict[str, Any]]:
    """Rows of a table of another database, some at a time, read only. In the query `{}` is the table, `{beside}`
    another one."""
    with psycopg.connect(given.at, row_factory=dict_row) as connection:
        connection.read_only = True
        with connection.cursor(name="import") as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            names = {"beside": sql.Identifier(*beside.split("."))} if beside else {}
            yield from cursor.execute(sql.SQL(query).format(sql.Identifier(*table.split(".")), **names))


def has_table(given: Given, name: str) -> bool:
    with psycopg.connect(given.at) as connection:
        written = sql.Identifier(*name.split(".")).as_string()
        row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [written]).fetchone()
        return bool(row and row[0])


def tables_like(given: Given, pattern: str) -> list[str]:
    """The names of the tables of another database that fit a pattern of LIKE. Errors: psycopg.Error."""
    with psycopg.connect(given.at) as connection:
        found = connection.execute(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = ANY (current_schemas(false)) AND table_name LIKE %s ORDER BY table_name",
            [pattern],
        )
        return [name for (name,) in found]


def tables_of(path: Path) -> dict[str, set[str]]:
    """The tables of an SQLite file with the names of their columns. Errors: OSError, sqlite3.Error."""
    columns = "SELECT m.name AS name, p.name AS col FROM sqlite_master m, pragma_table_info(m.name) p"
    found: dict[str, set[str]] = {}
    for row in sqlite_rows(path, columns):
        found.setdefault(row["name"], set()).add(row["col"])
    return found
