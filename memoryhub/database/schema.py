"""Django's schema editor for a distributed database, whose foreign keys have to name the tenant.

Those of models are left out: `manage.py migrate` adds them when it has run and all tables are placed
(memories/management/distributing.py). Those in the SQL of a migration get the tenant, and the migration's tables are
placed before.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.postgresql.schema import DatabaseSchemaEditor
from django.db.models import Field, ForeignKey, Model

from memoryhub.database.placement import distributed

# What Citus does not take as it is.
_ADAPTED = re.compile(r"FOREIGN KEY|SET STATISTICS|SET STORAGE")
_PLACED = """
    SELECT c.relname FROM pg_dist_partition d JOIN pg_class c ON c.oid = d.logicalrelid
    WHERE d.partmethod = ANY (%s::"char"[])
"""


class SchemaEditor(DatabaseSchemaEditor):
    def execute(self, sql: Any, params: Any = ()) -> None:
        # Django's own statements are objects.
        if isinstance(sql, str) and _ADAPTED.search(sql) and self._distributed():
            from memories.management import distributing  # noqa: PLC0415  (it imports the models)

            for statement in distributing.for_nodes(sql):
                super().execute(statement, params)
            return
        super().execute(sql, params)

    def create_model(self, model: type[Model]) -> None:
        with self._without_keys(model, model._meta.local_fields):
            super().create_model(model)

    def add_field(self, model: type[Model], field: "Field[Any, Any]") -> None:
        table, check = model._meta.db_table, field.db_parameters(self.connection)["check"]
        with self._without_keys(model, [field]):
            if not check or table not in self._placed("hn"):
                super().add_field(model, field)
                return
            # Citus takes a check alone, with its name.
            self.sql_check_constraint = ""
            super().add_field(model, field)
            del self.sql_check_constraint
        name = self.quote_name(f"{table}_{field.column}_check")
        self.execute(f"ALTER TABLE {self.quote_name(table)} ADD CONSTRAINT {name} CHECK ({check})")

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
        """Whether a key would be from or to a table that is distributed, or will be."""
        there = self._distributed() if field.db_constraint else set()  # type: ignore[attr-defined]  # as above
        tables = {model._meta.db_table, field.remote_field.model._meta.db_table}
        return bool(there) and not tables.isdisjoint(there | distributed())

    def _distributed(self) -> set[str]:
        return self._placed("h")

    def _placed(self, methods: str) -> set[str]:
        """The tables that Citus knows: h are distributed, n others."""
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT to_regclass('pg_catalog.pg_dist_partition')")
            if cursor.fetchone() == (None,):
                return set()
            cursor.execute(_PLACED, [list(methods)])
            return {table for (table,) in cursor.fetchall()}
