"""How long a statement may take: half a minute for the web's role, longer for work in the background."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import DatabaseError, InterfaceError, connection
from django.db.backends.signals import connection_created

# More than any query or batch takes. django-q ends tasks that take longer than their own timeout.
OF_A_WORKER = "10min"


def as_a_worker() -> None:
    """Give every connection that this process and its children make from now on the timeout of a worker."""
    connection_created.connect(_begin, dispatch_uid="a worker's statement_timeout")


@contextmanager
def unbounded() -> Iterator[None]:
    """Statements of the block have no timeout: their task has one. Its caller has an own_session()."""
    before = _changed_to("0")
    try:
        yield
    finally:
        # A broken connection is made anew with its own timeout; a failed transaction restores the timeout by itself.
        with suppress(DatabaseError, InterfaceError):
            _changed_to(before)


def _begin(connection: Any, **_: Any) -> None:
    if connection.is_pooled:
        # Single statements have the half minute of the role.
        connection.transaction_timeout = OF_A_WORKER
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [OF_A_WORKER])


def _changed_to(time: str) -> str:
    """Change the timeout; returns the one before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH before AS MATERIALIZED (SELECT current_setting('statement_timeout') AS time) "
            "SELECT time, set_config('statement_timeout', %s, false) FROM before",
            [time],
        )
        return str(cursor.fetchone()[0])
