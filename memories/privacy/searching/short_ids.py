"""Short external ids ("u1", or one plain word): searched only where a column or a JSON key says whose it is."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memories.privacy.searching.search_terms import SearchTerms
from memories.privacy.searching.tables import Column, Row, SearchedTable, reading
from memories.privacy.searching.verdicts import TermPattern, TraceKind, holds, is_plain

_OWNER_KEY = "(user|users|user_id|user_ids|person_id|end_user_id|subject_id|allowed_users)"
_ARRAYS = ("_text", "_varchar", "_bpchar")
_TEXTS = ("text", "varchar", "bpchar")


class Naming(NamedTuple):
    """A column of a row that has one of the ids as a whole value."""

    column: str
    row: Row
    pattern: TermPattern


def rows_naming(table: SearchedTable, terms: SearchTerms) -> Iterator[Naming]:
    """The rows of the table that have one of the short ids as a whole value."""
    names = [name for name in terms.names if is_plain(name)]
    conditions = [(sql, value) for column in table.columns for sql, value in _conditions(column, names)]
    if not (names and conditions) or table.query:
        return
    chosen = ", ".join(f"({column.sql})::text" for column in table.columns)
    where = " OR ".join(sql for sql, _value in conditions)
    statement = f"SELECT {chosen} FROM ONLY {table.quoted} WHERE {where}"  # noqa: S608
    with reading(table.server) as cursor:
        cursor.execute(statement, [value for _sql, value in conditions])
        for values in cursor.fetchall():
            found = zip(table.columns, values, strict=True)
            row = {column.name: value.encode() for column, value in found if value is not None}
            for name in names:
                pattern = TermPattern(TraceKind.NAME, name, name.encode())
                yield from (
                    Naming(column, row, pattern) for column, value in row.items() if _names(column, value, pattern)
                )


def _conditions(column: Column, names: list[str]) -> Iterator[tuple[str, str | list[str]]]:
    """SQL with one parameter, and the parameter."""
    is_owner = re.fullmatch(f"(.*_)?{_OWNER_KEY}", column.name)
    if is_owner and column.type in _TEXTS:
        yield f"{column.sql} = ANY(%s)", names
    elif is_owner and column.type in _ARRAYS:
        yield f"{column.sql}::text[] && %s::text[]", names
    elif column.type in ("json", "jsonb"):
        either = "|".join(re.escape(name) for name in names)
        yield f"{column.sql}::text ~ %s", f'"{_OWNER_KEY}": ?\\[?"({either})"'


def _names(column: str, value: bytes, pattern: TermPattern) -> bool:
    """A column says whose it is by its own name, and JSON by the key before the value."""
    if re.fullmatch(f"(.*_)?{_OWNER_KEY}", column):
        return holds(value, pattern)
    return re.search(f'"{_OWNER_KEY}": ?\\[?"({re.escape(pattern.value)})"'.encode(), value) is not None
