"""Finding a text wherever the database could keep it."""

from django.db import connection

# Types that hold neither text nor bytes.
_SILENT = (
    "boolean",
    "integer",
    "bigint",
    "smallint",
    "double precision",
    "numeric",
    "uuid",
    "timestamp with time zone",
)


def places_of(mark: str) -> list[str]:
    """Every `table.column` of every table with a row that contains `mark`, as text or as its bytes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND NOT data_type = ANY(%s) ORDER BY 1, 2",
            [list(_SILENT)],
        )
        columns = cursor.fetchall()
        found: list[str] = []
        for table, column in columns:
            cursor.execute(
                f'SELECT 1 FROM "{table}" WHERE "{column}"::text ILIKE %s OR "{column}"::text ILIKE %s LIMIT 1',
                [f"%{mark}%", f"%{mark.encode().hex()}%"],
            )
            if cursor.fetchone():
                found.append(f"{table}.{column}")
    return found
