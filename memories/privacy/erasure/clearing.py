"""What deleted rows leave behind in a table: room to be used again, and the planner's samples of their columns."""

import logging
from collections.abc import Mapping

from django.apps import apps
from django.db import DatabaseError, connection
from psycopg import sql

logger = logging.getLogger(__name__)


def touched(counts: Mapping[str, int]) -> list[str]:
    """Names of the tables of which rows went, by the counts of an erasure."""
    labels = (label for label, gone in counts.items() if gone and label.count(".") == 1)
    return sorted({apps.get_model(label)._meta.db_table for label in labels})


def vacuum(table: str) -> bool:
    """Clear it away and take new samples; False where somebody else holds the table, or inside a transaction.

    Columns with personal text have no samples (SET STATISTICS 0), so new ones are taken of ids, states and dates. No
    other statement waits for it: the end of the table is not cut off.
    """
    if connection.in_atomic_block:
        return False
    statement = sql.SQL("VACUUM (ANALYZE, SKIP_LOCKED, TRUNCATE FALSE) {}").format(sql.Identifier(table))
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except DatabaseError as error:
        # Autovacuum does it later: nothing depends on it but the time until then.
        logger.warning("%s could not be vacuumed: %s", table, type(error).__name__)
        return False
    return True
