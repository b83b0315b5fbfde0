"""One simulated clock: what verbs are told as `now` is what the database's own clock says.

PostgreSQL looks a function up along the search path; named before its own catalogue, ours tells the time. So due
times, leases and pauses pass by moving the clock, not the rows.
"""

import itertools
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db import connection

from memories.models import ids
from memories.queue.attempts import Attempt

BEGINNING = datetime(2026, 11, 3, 9, 12, tzinfo=UTC)
MILLISECOND = 1_000_000
_REPLACED = """
    CREATE SCHEMA simulated;
    -- Behind row level security also for the roles that statements take, which would see the true time instead.
    GRANT USAGE ON SCHEMA simulated TO PUBLIC;
    CREATE FUNCTION simulated.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
        AS $$ SELECT current_setting('simulated.now')::timestamptz $$;
    SET LOCAL search_path = simulated, public, pg_catalog;
"""


class Clock:
    """The simulated time; it stands still until it is moved."""

    def __init__(self) -> None:
        self.now = BEGINNING
        self.move(timedelta())

    def move(self, by: timedelta) -> None:
        self.now += by
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('simulated.now', %s, true)", [self.now.isoformat()])


def replace_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the transaction of the test: the database's clock, the time that an attempt takes, and what ids are made of,
    so that one run is as another."""
    with connection.cursor() as cursor:
        cursor.execute(_REPLACED)
    monkeypatch.setattr(Attempt, "now", lambda calling: calling.begun_at)
    moments = itertools.count(MILLISECOND, MILLISECOND)
    monkeypatch.setattr(ids, "_ticks", ids.Ticks())
    monkeypatch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: next(moments)))
