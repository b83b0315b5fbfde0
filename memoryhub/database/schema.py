"""Django's schema editor for a distributed database: foreign keys of distributed tables are left to `distribute`.

A key has to name the tenant there, and the table that it refers to may not be placed yet. `manage.py migrate` places
new tables and adds the keys when it has run (memories/management/distributing.py).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.postgresql.schema import DatabaseSchemaEditor
from django.db.models import Field, ForeignKey, Model

_DISTRIBUTED = """
    SELECT 1 FROM pg_dist_partition d JOIN pg_class c ON c.oid = d.logicalrelid
    WHERE d.partmethod = 'h' AND c.relname = ANY (%s)
"""


class SchemaEditor(DatabaseSchemaEditor):
    def create_model(self, model: type[Model]) -> None:
        with self._without_keys(model, model._meta.local_fields):
            super().create_model(model)

    def add_field(self, model: type[Model], field: "Field[Any, Any]") -> None:
        with self._without_keys(model, [field]):
            super().add_field(model, field)

    @contextmanager
    def _without_keys(self, model: type[Model], fields: "Iterable[Field[Any, Any]]") -> Iterator[None]:
        left = [field for field in fields if isinstance(field, ForeignKey) and self._is_left(model, field)]
        for field in left:
            field.db_constraint = False  # type: ignore[attr-defined]  # the stubs lack it
        try:
            yield
        finally:
            for field in left:
                field.db_constraint = True  # type: ignore[attr-defined]  # as above

    def _is_left(self, model: type[Model], field: "ForeignKey[Any, Any]") -> bool:
        """Whether a key would be from or to a distributed table."""
        tables = [model._meta.db_table, field.remote_field.model._meta.db_table]
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass('pg_catalog.pg_dist_partition')")
            if not field.db_constraint or cursor.fetchone() == (None,):  # type: ignore[attr-defined]  # as above
                return False
            cursor.execute(_DISTRIBUTED, [tables])
            return cursor.fetchone() is not None
