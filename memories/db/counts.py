"""The numbers of rows of several querysets in one statement.

Each is compiled on its own: Django takes five times as long to make subqueries of one queryset of them.
"""

from collections.abc import Iterable
from typing import Any

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
