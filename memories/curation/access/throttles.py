"""Counts a key's requests exactly, however many processes count."""

import uuid
from dataclasses import dataclass
from math import ceil

from django.db import connection

from memories.conf import Rate

# The row's lock serialises simultaneous requests. One that waited until the next window began counts in that one.
COUNT = """
    WITH clock AS (SELECT extract(epoch FROM clock_timestamp())::double precision AS now)
    INSERT INTO memories_throttlecounter AS c (key_id, scope, "window", requests)
    SELECT %(key)s, %(scope)s, floor(now / %(seconds)s)::bigint, 1 FROM clock
    ON CONFLICT (key_id, scope) DO UPDATE SET
        requests = CASE WHEN c."window" >= EXCLUDED."window" THEN c.requests + 1 ELSE 1 END,
        "window" = greatest(c."window", EXCLUDED."window")
    RETURNING requests, ("window" + 1) * %(seconds)s - extract(epoch FROM clock_timestamp())::double precision
"""


@dataclass(frozen=True)
class Allowance:
    """What a key has left: `limit` and `remaining` requests, and the whole seconds until the window ends."""

    limit: int
    remaining: int
    reset: int
    allowed: bool


def count_request(*, key_id: uuid.UUID, scope: str, rate: Rate) -> Allowance:
    """Count one request in the present fixed window; one statement, outside of any transaction."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"key": key_id, "scope": scope, "seconds": rate.seconds})
        requests, left = cursor.fetchone()
    return Allowance(
        limit=rate.requests,
        remaining=max(0, rate.requests - requests),
        reset=max(1, ceil(left)),
        allowed=requests <= rate.requests,
    )
