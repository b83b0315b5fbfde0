"""Short transactions that give way: they wait for whoever writes at this moment, and never others for them."""

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from django.db import OperationalError, connection, transaction
from psycopg.errors import DeadlockDetected, LockNotAvailable

T = TypeVar("T")


def give_way(act: Callable[[], T], *, lock_timeout: str, pauses: Iterable[float]) -> T:
    """What `act()` returns, in a transaction of its own that waits for no lock for longer; tried again after each of
    the pauses, in seconds, while somebody else holds what it needs.

    `act` must do all that it does in the database. Errors: OperationalError, when somebody still holds it.
    """
    for pause in pauses:
        try:
            return _try(act, lock_timeout)
        except OperationalError as error:
            if not is_held(error):
                raise
            time.sleep(pause)
    return _try(act, lock_timeout)


def is_held(error: OperationalError) -> bool:
    """Whether it is only that somebody else holds what was needed."""
    return isinstance(error.__cause__, LockNotAvailable | DeadlockDetected)


def _try(act: Callable[[], T], lock_timeout: str) -> T:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{lock_timeout}'")
        return act()
