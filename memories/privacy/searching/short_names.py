"""Ids of a few letters ("u1") or of one plain word: looked for only where a column or a JSON key says whose it is."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from django.db import connection

from memories.privacy.searching.judging import Kind, Sought, holds, is_plain
from memories.privacy.searching.needles import Needles
from memories.privacy.searching.tables import Column, Row, Table

WHOSE = "(user|users|user_id|user_ids|person_id|end_user_id|subject_id|allowed_users)"
_ARRAYS = ("_text", "_varchar", "_bpchar")
_TEXTS = ("text", "varchar", "bpchar")


class Naming(NamedTuple):
    """A column of a row that names one of them."""

    column: str
    row: Row
    sought: Sought


def rows_naming(table: Table, needles: Needles) -> Iterator[Naming]:
    """The rows of the table that name somebody of these ids as a whole value."""
    names = [name for name in needles.names if is_plain(name)]
    asked = [(said, values) for column in table.columns for said, values in _questions(column, names)]
    if not (names and asked) or table.query:
        return
    chosen = ", ".join(f"({column.sql})::text" for column in table.columns)
    question = " OR ".join(said for said, _values in asked)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {chosen} FROM ONLY {table.quoted} WHERE {question}", [v for _s, v in asked])  # noqa: S608
        for values in cursor.fetchall():
            found = zip(table.columns, values, strict=True)
            row = {column.name: value.encode() for column, value in found if value is not None}
            yield from _said(row, names)


def _questions(column: Column, names: list[str]) -> Iterator[tuple[str, str | list[str]]]:
    """SQL with one parameter, and the parameter."""
    named = re.fullmatch(f"(.*_)?{WHOSE}", column.name)
    if named and column.type in _TEXTS:
        yield f"{column.sql} = ANY(%s)", names
    elif named and column.type in _ARRAYS:
        yield f"{column.sql}::text[] && %s::text[]", names
    elif column.type in ("json", "jsonb"):
        either = "|".join(re.escape(name) for name in names)
        yield f"{column.sql}::text ~ %s", f'"{WHOSE}": ?\\[?"({either})"'


def _said(row: Row, names: list[str]) -> Iterator[Naming]:
    for name in names:
        sought = Sought(Kind.NAME, name, name.encode())
        yield from (Naming(column, row, sought) for column, value in row.items() if _names(column, value, sought))


def _names(column: str, value: bytes, sought: Sought) -> bool:
    """A column says whose it is by its own name, and JSON by the key before the value."""
    if re.fullmatch(f"(.*_)?{WHOSE}", column):
        return holds(value, sought)
    return re.search(f'"{WHOSE}": ?\\[?"({re.escape(sought.value)})"'.encode(), value) is not None
