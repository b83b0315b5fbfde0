"""The databases of the tests: copies of the one that is migrated in the home of their server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.postgresql.creation import DatabaseCreation

from memoryhub.embedded_postgres import server

MIGRATED = server.DATABASE


@contextmanager
def copied() -> Iterator[None]:
    """Where Django would migrate a database for tests it copies one that is."""

    def copy(_creation: DatabaseCreation, *_: Any, **__: Any) -> str:
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


def _use(name: str) -> None:
    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
