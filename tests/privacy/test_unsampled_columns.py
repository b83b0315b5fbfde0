"""The planner keeps no samples of columns that can hold personal data."""

import pytest
from django.db import connection

from tests import factories

_SAMPLED = "SELECT count(*) FROM pg_stats WHERE tablename = 'memories_turn' AND attname = %s"


def sampled(column: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLED, [column])
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db
def test_analyze_samples_no_words() -> None:
    factories.session(factories.end_user(), [("user", f"I live in Leiden ({n})") for n in range(30)])
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ANALYZE memories_turn")
        assert not sampled("content")
        assert sampled("role")
        assert sampled("created_at")
        # Without the migration it would be.
        cursor.execute("ALTER TABLE memories_turn ALTER COLUMN content SET STATISTICS 100")
        cursor.execute("ANALYZE memories_turn")
    assert sampled("content")
