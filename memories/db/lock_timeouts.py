"""Short transactions with a lock timeout: they wait for a moment, and nobody waits long for them."""

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction
from psycopg.errors import DeadlockDetected, LockNotAvailable

T = TypeVar("T")


def retry_while_locked(
    act: Callable[[], T], *, lock_timeout: str, pauses: Iterable[float], using: str = DEFAULT_DB_ALIAS
) -> T:
    """Run `act()` in a transaction of its own that waits for no lock longer than `lock_timeout`, and return its result.

    While somebody else holds a lock that it needs, it is tried again after each of the pauses, in seconds. `act` must
    have no effect outside the database. Errors: OperationalError, when the lock is still held.
    """
    for pause in pauses:
        try:
            return _try(act, lock_timeout, using)
        except OperationalError as error:
            if not is_lock_error(error):
                raise
            time.sleep(pause)
    return _try(act, lock_timeout, using)


def is_lock_error(error: OperationalError) -> bool:
    """Whether a lock that somebody else holds is the only reason."""
    return isinstance(error.__cause__, LockNotAvailable | DeadlockDetected)


def _try(act: Callable[[], T], lock_timeout: str, using: str) -> T:
    with transaction.atomic(using=using):
        with connections[using].cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{lock_timeout}'")
        return act()
