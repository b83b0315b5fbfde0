"""Rows of other people that mention a person: counted for the preview of a case, never deleted."""

import re
from typing import Any

from django.db import connection

from memories.models import EndUser
from memories.privacy.searching import tables, text_columns
from memories.privacy.searching.ownership import Ownership
from memories.privacy.searching.tables import SearchedTable
from memoryhub.database.placement import COLUMN

# Shorter ids ("1", "bob") are words of any language.
SHORTEST = 4
# Where a name makes the row the person's: an erasure ends keys that are bound to them and files that wait to be
# imported, and a case counts both. The tables are of people as well, by what a key or an import made.
_OWN = frozenset({"memories.APIKey.user_id", "memories.Import.options", "memories.Import.preview"})


def mentions_of(person: EndUser) -> dict[str, int]:
    """Place (`memories.Turn.content`) → rows of the tenant, but for the person's, in which an id of theirs is a word.

    Of every table of the catalogue whose rows are of people, or of several of them. Each is read once.
    """
    behind = EndUser.objects.with_aliases(person).values_list("pk", "external_id")
    names = [name for _pk, name in behind if len(name) >= SHORTEST]
    ownership = Ownership()
    found: dict[str, int] = {}
    for table in tables.tables()[0] if names else ():
        theirs = ownership.conditions(table) or list(ownership.referring(table))
        if theirs and any(column.name == COLUMN for column in table.columns):
            given = {"tenant": person.tenant_id, "people": [pk for pk, _name in behind]}
            found |= _naming(table, theirs, names, given)
    return found


def _naming(table: SearchedTable, theirs: list[str], names: list[str], given: dict[str, Any]) -> dict[str, int]:
    """Place → rows that have one of the names there as a word, of the tenant and not of the person."""
    columns = [column for column in text_columns.of_words(table) if table.place(column.name) not in _OWN]
    if not columns:
        return {}
    counted = ", ".join(f"count(*) FILTER (WHERE {_any(f'({column.sql})::text', names, given)})" for column in columns)
    others = " AND ".join(f"({condition}) IS NOT TRUE" for condition in theirs)
    statement = f"SELECT {counted} FROM {table.quoted} WHERE {COLUMN} = %(tenant)s AND {others}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        [counts] = cursor.fetchall()
    return {table.place(column.name): count for column, count in zip(columns, counts, strict=True) if count}


def _any(text: str, names: list[str], given: dict[str, Any]) -> str:
    """SQL, whose parameters it puts among those that are given."""
    conditions = []
    for place, name in enumerate(names):
        given |= {f"name_{place}": name, f"word_{place}": _word(name)}
        # A plain search comes first: most rows need no regular expression.
        conditions.append(f"(strpos({text}, %(name_{place})s) > 0 AND {text} ~ %(word_{place})s)")
    return " OR ".join(conditions)


def _word(name: str) -> str:
    """The name between characters that are no letters or digits; Chinese leaves no space around a name."""
    before = "(^|[^0-9A-Za-z])" if name[0].isascii() and name[0].isalnum() else ""
    after = "([^0-9A-Za-z]|$)" if name[-1].isascii() and name[-1].isalnum() else ""
    return f"{before}{re.escape(name)}{after}"
