"""The databases of the tests: one is migrated for each server, those that tests use are copies of it.

Migrations take the time of fifty tests. `python -m tests.migrated` makes the first one beside what else is to be done.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import django
import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.postgresql.creation import DatabaseCreation

from memoryhub.embedded_postgres.locks import exclusive

MIGRATED, HALF_MADE = "migrated", "half_migrated"


@contextmanager
def copied() -> Iterator[None]:
    """Where Django would migrate a database for tests it copies one that is."""
    plain = DatabaseCreation.create_test_db

    def copy(creation: DatabaseCreation, *_: Any, **__: Any) -> str:
        _make(partial(plain, creation))
        name = str(connection.settings_dict["TEST"]["NAME"] or f"test_{connection.settings_dict['NAME']}")
        create(name, template=MIGRATED)
        _use(name)
        return name

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DatabaseCreation, "create_test_db", copy)
        yield


def create(name: str, *, template: str = "template1") -> None:
    """A new database; one of that name goes."""
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE {template}")


def _make(migrate: Callable[..., Any]) -> None:
    """Migrate MIGRATED unless it is there; whoever comes meanwhile waits."""
    own = connection.settings_dict["TEST"]["NAME"]
    with exclusive(settings.HOME / "tables.lock"):
        with connection._nodb_cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [MIGRATED])
            if cursor.fetchone():
                return
        connection.settings_dict["TEST"]["NAME"] = HALF_MADE
        migrate(verbosity=0, autoclobber=True, serialize=False)
        connection.settings_dict["TEST"]["NAME"] = own
        connection.close()
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {HALF_MADE} RENAME TO {MIGRATED}")


def _use(name: str) -> None:
    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


if __name__ == "__main__":
    django.setup()
    _make(connection.creation.create_test_db)
