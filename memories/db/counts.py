"""The numbers of rows of several querysets in one statement, and how old each is.

Each is compiled on its own: Django takes five times as long to make subqueries of one queryset of them.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet


def counts(querysets: Iterable[QuerySet[Any]], *, most: int | None = None) -> list[int]:
    """The number of rows of each, or `most` where there are more."""
    numbers, given = [], list[Any]()
    for rows in querysets:
        try:
            sql, parameters = rows.order_by().values("pk")[:most].query.sql_with_params()
        except EmptyResultSet:
            numbers.append("0")
        else:
            numbers.append(f"(SELECT count(*) FROM ({sql}) counted)")  # noqa: S608 - compiled by Django
            given += parameters
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(numbers)}", given)
        return list(cursor.fetchone())


class RowTally(NamedTuple):
    """How many rows there are, and the first of their moments."""

    number: int
    first: datetime | None


def tallies(querysets: Iterable[tuple[QuerySet[Any], str]]) -> list[RowTally]:
    """The tally of each, with the moment in the named field."""
    found, parts, given = list[RowTally](), list[str](), list[Any]()
    for place, (rows, moment) in enumerate(querysets):
        found.append(RowTally(0, None))
        try:
            sql, parameters = rows.order_by().values_list(moment).query.sql_with_params()
        except EmptyResultSet:
            continue
        parts.append(f"SELECT {place}, count(*), min(moment) FROM ({sql}) counted (moment)")  # noqa: S608 - as above
        given += parameters
    if parts:
        with connection.cursor() as cursor:
            cursor.execute(" UNION ALL ".join(parts), given)
            for place, number, first in cursor.fetchall():
                found[place] = RowTally(number, first)
    return found
