"""The look at an idle connection: free while it is well, honest when it is not."""

from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from psycopg import _queries

from memories.context import sent_blocks
from memoryhub.database.base import DatabaseWrapper
from tests.database import elsewhere


def end_from_elsewhere(pid: int) -> None:
    def end() -> None:
        with connection.cursor() as cursor:
            # Waits up to five seconds for the end of it.
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    elsewhere(end)


def own_pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
class TestUsable:
    def test_a_connection_that_is_well_is_asked_nothing(self) -> None:
        assert isinstance(connections["default"], DatabaseWrapper)
        own_pid()
        with CaptureQueriesContext(connection) as captured:
            assert connection.is_usable()
        assert not captured.captured_queries

    def test_one_that_the_server_ended_is_noticed(self) -> None:
        pid = own_pid()
        end_from_elsewhere(pid)
        assert not connection.is_usable()
        connection.close()
        assert own_pid() != pid

    def test_a_request_after_it_gets_another_connection(self) -> None:
        pid = own_pid()
        end_from_elsewhere(pid)
        # As at the beginning of a request.
        connections["default"].health_check_enabled = True  # type: ignore[attr-defined]
        connection.close_if_unusable_or_obsolete()
        assert own_pid() != pid


@pytest.mark.django_db
def test_psycopg_remembers_how_a_long_statement_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does of a short one."""
    split, taken_apart = _queries._split_query, []

    def counted(*given: Any) -> Any:
        taken_apart.append(1)
        return split(*given)

    monkeypatch.setattr(_queries, "_split_query", counted)
    assert 4_096 < len(sent_blocks._FIND.encode()) < 10_000
    for _ in range(3):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT %s::int /* {'x' * 10_000} */", [1])
    assert taken_apart == [1]
