"""Migrations that later ones replace: which names this version knows, and which databases it can migrate."""

from collections.abc import Set as AbstractSet

from django.db.migrations.loader import MigrationLoader


def known() -> set[str]:
    """The names of our migrations, and of those that they replace."""
    return set().union(*({name, *replaced} for name, replaced in _replaced().items()))


def lacking(applied: AbstractSet[str]) -> str:
    """The last missing migration of a merged set of which the database has only some, or "".

    Django counts a merged migration as applied if all that it replaces are, and runs it if none is. If only some are,
    it silently skips the migration and runs the later ones.
    """
    partial = [names - applied for names in _replaced().values() if names & applied and names - applied]
    return max(set().union(*partial), default="")


def _replaced() -> dict[str, set[str]]:
    """Each of our migrations → the names of those that it replaces."""
    found = (MigrationLoader(None).disk_migrations or {}).items()
    return {key[1]: {name for _, name in one.replaces} for key, one in found if key[0] == "memories"}
