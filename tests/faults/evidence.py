"""What a fault must not have done, asked of the database in words of its own."""

from typing import Any

import psycopg

# Each is a query that finds what is wrong. Beyond 500 facts a person's least are archived.
WRONG = {
    "a user turn that not exactly one committed extraction covers": """
        SELECT t.session_id, t.number, count(r.id) FROM memories_turn t
        LEFT JOIN memories_extractionrun r ON r.session_id = t.session_id AND r.status = 'committed'
            AND t.number BETWEEN r.first_number AND r.last_number
        WHERE t.role = 'user' AND t.content LIKE '%%' || %(mark)s || '%%'
        GROUP BY t.session_id, t.number HAVING count(r.id) <> 1
    """,
    "a turn of the user that is not exactly one fact, resting on that turn once": """
        SELECT t.session_id, t.number, count(f.id), max(f.mentions) FROM memories_turn t
        LEFT JOIN memories_fact f ON f.end_user_id = t.end_user_id AND f.content = t.content
            AND f.status IN ('active', 'archived')
        LEFT JOIN memories_factevidence e ON e.fact_id = f.id
        WHERE t.role = 'user' AND t.content LIKE '%%' || %(mark)s || '%%'
        GROUP BY t.session_id, t.number
        HAVING count(f.id) <> 1 OR max(f.mentions) <> 1 OR count(e.turn_id) <> 1 OR bool_or(e.turn_id <> t.id)
    """,
    "a fact that nobody said": """
        SELECT f.id FROM memories_fact f WHERE f.content LIKE '%%' || %(mark)s || '%%' AND NOT EXISTS (
            SELECT 1 FROM memories_turn t
            WHERE t.end_user_id = f.end_user_id AND t.content = f.content AND t.role = 'user'
        )
    """,
    "a session whose turns are not numbered from 1 without gaps": """
        SELECT session_id FROM memories_turn GROUP BY session_id
        HAVING min(number) <> 1 OR max(number) <> count(*) OR count(DISTINCT number) <> count(*)
    """,
    "a parked batch": "SELECT session_id FROM memories_sessionqueue WHERE parked_at IS NOT NULL",
}


def wrong(database: Any, mark: str, *, parked: int = 0) -> dict[str, list[Any]]:
    """What is wrong with the turns that hold `mark`, by what it is; `database` is a cursor or psycopg's connection."""
    found: dict[str, list[Any]] = {}
    for what, query in WRONG.items():
        cursor = database.execute(query, {"mark": mark}) or database
        rows = cursor.fetchall()
        if len(rows) != (parked if what == "a parked batch" else 0):
            found[what] = rows[:5]
    return found


def count(database: psycopg.Connection, query: str, *values: Any) -> int:
    row = database.execute(query.encode(), values).fetchone()
    assert row
    return int(row[0])
