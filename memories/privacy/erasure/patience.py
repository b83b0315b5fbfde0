"""Short transactions that give way: an erasure waits for whoever writes at this moment, and never they for it."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, LockNotAvailable

T = TypeVar("T")
# Who waits for a lock holds others up by those that it has: not for longer than this. Shorter than what PostgreSQL
# waits before it looks for a deadlock.
LOCK_TIMEOUT = "100ms"
TRIES = 60
# Between two tries; most locks are held for milliseconds.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 1.0


def patiently(act: Callable[[], T]) -> T:
    """What `act()` returns, in a transaction of its own, tried again while somebody else holds what it needs.

    `act` must do all that it does in the database. Errors: OperationalError after about a minute.
    """
    for tried in range(TRIES):
        try:
            return _try(act)
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable | DeadlockDetected):
                raise
            time.sleep(min(LONGEST_PAUSE, SHORTEST_PAUSE * 2**tried))
    return _try(act)


def _try(act: Callable[[], T]) -> T:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        return act()
