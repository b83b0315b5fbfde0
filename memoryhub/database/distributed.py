"""Django's SQL for a distributed database: each statement about rows of a tenant names the tenant.

Citus then sends it to the one node that has them. It refuses locks across tenants, and joins and correlated subqueries
whose tables it cannot tell to be of the same tenant. So here
- a join between distributed tables compares their tenants, too, and so does a correlated subquery;
- the tenant that a filter, or `of_tenant` around it, names is named for every table of the statement;
- a statement that locks or changes rows without such a name first reads, without locks, which tenants they are of, and
  is then sent once for each of them.
"""

import uuid
from collections.abc import Iterable
from functools import cache
from typing import Any

from django.apps import apps
from django.db.models import Field, Lookup
from django.db.models.expressions import Case, Col
from django.db.models.functions import Coalesce, Now
from django.db.models.lookups import Exact
from django.db.models.sql import compiler
from django.db.models.sql.constants import INNER, MULTI, ROW_COUNT
from django.db.models.sql.datastructures import BaseTable, Join
from django.db.models.sql.query import Query
from django.db.models.sql.where import AND, WhereNode

from memories.db import tenancy
from memories.db.tenancy import Policies
from memoryhub.database.naming import named, of_tenant
from memoryhub.database.placement import COLUMN, distributed

NOBODY = uuid.UUID(int=0)


def _only_tenant() -> uuid.UUID | None:
    """The only tenant of a request or a task."""
    current = tenancy.current()
    is_one = current is not None and current.policies is Policies.ONE and current.tenants
    return uuid.UUID(current.tenants) if current and is_one else None


def _distributed(query: Query) -> frozenset[str]:
    """The distributed tables; none for models of migrations, which run before the tables are distributed."""
    return distributed() if query.get_meta().apps is apps else frozenset()


@cache
def _fields() -> dict[str, "Field[Any, Any]"]:
    """Distributed table → its field of the tenant."""
    models = {model._meta.db_table: model for model in apps.get_models()}
    return {
        table: next(field for field in models[table]._meta.concrete_fields if field.column == COLUMN)
        for table in distributed()
    }


def _is(alias: str, table: str, tenant: Any) -> "Lookup[Any]":
    """The condition that rows of this table are the tenant's."""
    field = _fields()[table]
    return field.get_lookup("exact")(field.get_col(alias), tenant)  # type: ignore[misc]


def _named_by(node: Any) -> Any:
    """The tenant that all rows which fulfil these conditions have; None if they do not say."""
    if isinstance(node, WhereNode):
        if node.negated or (node.connector != AND and len(node.children) > 1):
            return None
        return next((found for found in map(_named_by, node.children) if found is not None), None)
    if isinstance(node, Exact) and isinstance(node.lhs, Col) and node.lhs.target.column == COLUMN:
        is_value = not hasattr(node.rhs, "resolve_expression") and not hasattr(node.rhs, "as_sql")
        return node.rhs if is_value and node.lhs.target.model._meta.db_table in distributed() else None
    return None


def _columns(node: Any) -> Iterable[Col]:
    if isinstance(node, WhereNode):
        for child in node.children:
            yield from _columns(child)
    elif isinstance(node, Col):
        yield node
    elif hasattr(node, "get_source_expressions"):
        for source in node.get_source_expressions():
            if not isinstance(source, Query):
                yield from _columns(source)


class _TenantCompiler(compiler.SQLCompiler):
    """What all statements share."""

    # How many CASE and COALESCE are around what is written.
    _in_choice = 0

    def as_sql(self, *args: Any, **options: Any) -> Any:
        with of_tenant(self._statement_tenant()):
            return super().as_sql(*args, **options)

    def compile(self, node: Any) -> Any:
        if isinstance(node, Case | Coalesce):
            self._in_choice += 1
            try:
                return super().compile(node)
            finally:
                self._in_choice -= 1
        if isinstance(node, Now) and self._in_choice and isinstance(self, _Changing):
            # Each node would ask its own clock there, which Citus refuses.
            with self.connection.cursor() as cursor:
                cursor.execute("SELECT statement_timestamp()")
                return "%s::timestamptz", cursor.fetchone()
        sql, parameters = super().compile(node)
        if not isinstance(node, Join):
            return sql, parameters
        parent = self.query.alias_map[node.parent_alias]
        if not {node.table_name, parent.table_name} <= _distributed(self.query):
            return sql, parameters
        own, other = (self.quote_name_unless_alias(name) for name in (str(node.table_alias), node.parent_alias))
        # It ends with the parenthesis of its conditions.
        sql = f"{sql[:-1]} AND {own}.{COLUMN} = {other}.{COLUMN}"
        if named() is None:
            return f"{sql})", parameters
        known, more = super().compile(_is(str(node.table_alias), str(node.table_name), named()))
        return f"{sql} AND {known})", [*parameters, *more]

    def pre_sql_setup(self, *args: Any, **options: Any) -> Any:
        found = super().pre_sql_setup(*args, **options)
        if hasattr(self, "where") and not self.query.combinator:
            own: list[Any] = [] if self.where is None else [self.where]  # type: ignore[has-type]
            self.where = WhereNode([*own, *self._conditions()]) or None  # type: ignore[list-item]
        return found

    def _statement_tenant(self) -> Any:
        return _named_by(self.query.where) or named() or _only_tenant()

    def _base(self) -> str:
        """The table that the statement is about."""
        return str(self.query.get_meta().db_table)

    def _conditions(self) -> "list[Lookup[Any]]":
        query, tenant = self.query, named()
        tables = [(alias, join) for alias, join in query.alias_map.items() if query.alias_refcount.get(alias)]
        ours = [(alias, join) for alias, join in tables if join.table_name in _distributed(query)]
        if tenant is not None:
            return [
                _is(alias, join.table_name, tenant)
                for alias, join in ours
                if isinstance(join, BaseTable) or join.join_type == INNER
            ]
        if not ours or not query.subquery:
            return []
        for column in _columns(query.where):
            table = column.target.model._meta.db_table
            if column.alias not in query.alias_map and table in distributed():
                return [_is(ours[0][0], ours[0][1].table_name, _fields()[table].get_col(column.alias))]
        return []

    def _tenants(self) -> list[Any]:
        """The tenants of the rows that the statement is about, as they are now, without locks."""
        query = self.query.clone()
        query.__class__ = Query
        query.select_for_update = query.select_related = False
        if not query.is_sliced:
            query.clear_ordering(force=True)
            query.distinct = True
        query.set_values([COLUMN])
        found = query.get_compiler(self.using).execute_sql(MULTI)
        return list(dict.fromkeys(row[0] for rows in found or () for row in rows))


class SQLCompiler(_TenantCompiler):
    def execute_sql(self, result_type: Any = MULTI, *args: Any, **options: Any) -> Any:
        asked = self.query.select_for_update and self._base() in _distributed(self.query) and not self.query.combinator
        if not asked or self._statement_tenant() is not None:
            return super().execute_sql(result_type, *args, **options)
        first, *others = self._tenants() or [NOBODY]
        with of_tenant(first):
            found = super().execute_sql(result_type, *args, **options)
        if result_type != MULTI or not others:
            return found
        rows = [row for chunk in found or () for row in chunk]
        limit = self.query.high_mark
        for tenant in others:
            query = self.query.clone()
            if limit is not None:
                if len(rows) >= limit:
                    break
                query.high_mark = limit - len(rows)
            with of_tenant(tenant):
                rows += [row for chunk in query.get_compiler(self.using).execute_sql(MULTI) or () for row in chunk]
        return [rows]


class _Changing(_TenantCompiler):
    """Statements that change rows: one for each tenant whose rows they are."""

    def execute_sql(self, *args: Any, **options: Any) -> Any:
        if self._base() not in _distributed(self.query) or self._statement_tenant() is not None:
            return super().execute_sql(*args, **options)
        *others, last = self._tenants() or [NOBODY]
        counted = 0
        for tenant in others:
            with of_tenant(tenant):
                counted += self.query.clone().get_compiler(self.using).execute_sql(ROW_COUNT) or 0
        with of_tenant(last):
            found = super().execute_sql(*args, **options)
        return found + counted if isinstance(found, int) else found


def _named(query: Query) -> Query:
    """The query with the known tenant among its conditions."""
    table = query.get_meta().db_table
    if table not in _distributed(query) or named() is None:
        return query
    query = query.clone()
    query.where.add(_is(query.get_initial_alias(), table, named()), AND)
    return query


class SQLUpdateCompiler(_Changing, compiler.SQLUpdateCompiler):
    def as_sql(self, *args: Any, **options: Any) -> Any:
        # Rows are saved with all their fields. Citus refuses to set the tenant, even to what it is.
        query: Any = self.query.clone()
        if self._base() in _distributed(query):
            query.values = [one for one in query.values if one[0].column != COLUMN]
        self.query = query
        return super().as_sql(*args, **options)

    def pre_sql_setup(self, *args: Any, **options: Any) -> Any:
        compiler.SQLUpdateCompiler.pre_sql_setup(self, *args, **options)
        # By now a statement that joins is one about the primary keys that a subquery finds.
        self.query = _named(self.query)  # type: ignore[assignment]  # of the same class


class SQLDeleteCompiler(_Changing, compiler.SQLDeleteCompiler):
    def _as_sql(self, query: Query) -> Any:
        return compiler.SQLDeleteCompiler._as_sql(self, _named(query))  # type: ignore[attr-defined]


class SQLAggregateCompiler(_TenantCompiler, compiler.SQLAggregateCompiler):
    pass


SQLInsertCompiler = compiler.SQLInsertCompiler
