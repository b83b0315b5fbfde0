"""`manage.py migrate`: Django's command, places for new tables on a cluster, and rights of web and worker."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.recorder import MigrationRecorder

from memories.checks import SETTINGS
from memories.management import distributing, grants, merged_migrations, policies

# Of new objects, then of collections before one of the next generation.
_SELDOM = (50_000, 50, 50)


class Command(migrate.Command):
    help = "Update the tables, then the rights of web and worker where they have a role of their own."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.MEMORYHUB_ROW_SECURITY != "off" and not settings.RUNTIME_ROLE:
            raise CommandError(
                "MEMORYHUB_ROW_SECURITY needs two roles, as policies do not bind the owner of tables: set DATABASE_URL "
                "to the role of web and worker and MEMORYHUB_OWNER_URL to the owner, or unset it."
            )
        _require_whole_sets(options["database"])
        is_default = options["database"] == DEFAULT_DB_ALIAS and not options["plan"]
        is_on_nodes = is_default and connections[DEFAULT_DB_ALIAS].settings_dict["DISTRIBUTED"]
        if is_on_nodes and distributing.is_distributed():
            distributing.number_on()
        with _seldom_collecting():
            super().handle(*args, **options)
        if is_on_nodes and distributing.is_distributed():
            distributing.distribute()
        if settings.RUNTIME_ROLE and is_default:
            role, password = settings.RUNTIME_ROLE
            grants.give(role, password)
            if settings.MEMORYHUB_ROW_SECURITY == "off":
                policies.lift()
            else:
                policies.give(role, enforced=settings.MEMORYHUB_ROW_SECURITY == "on")

    def check(self, *args: Any, **options: Any) -> None:
        """Of the settings and the database; the others are about the code, and load the admin and the API."""
        super().check(*args, **{**options, "tags": [SETTINGS, Tags.database]})


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Migrations make thousands of classes that refer to each other: looking through them takes a third of the time."""
    usual = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _require_whole_sets(alias: str) -> None:
    """Refuse a database that has only some of the migrations that were merged into one."""
    applied = MigrationRecorder(connections[alias]).applied_migrations()
    lacking = merged_migrations.lacking({name for app, name in applied if app == "memories"})
    if lacking:
        raise CommandError(
            f"The database is too old for this version (it lacks {lacking}, which was merged into another migration). "
            "Run manage.py migrate with the last version that has this migration, then with this one."
        )
