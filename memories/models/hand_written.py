"""For the few statements written by hand, where each request would else pay for Django writing the same one again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models
from django.db.models.base import ModelState
from psycopg.pq import Format
from psycopg.sql import Literal

from memoryhub.database.naming import of_tenant

Row = TypeVar("Row", bound=models.Model)


def columns_of(model: type[models.Model]) -> tuple[str, ...]:
    """The names of all columns of a model."""
    return tuple(str(field.column) for field in model._meta.concrete_fields)


def defaults_of(model: type[models.Model]) -> dict[str, Any]:
    """What the columns of a new row hold, beside its key, where nobody says otherwise."""
    return {str(field.column): field.get_default() for field in model._meta.concrete_fields if not field.primary_key}


def selected(alias: str, names: Sequence[str]) -> str:
    """What stands behind SELECT for these columns of a table."""
    return ", ".join(f"{alias}.{name}" for name in names)


def given(names: Iterable[str], prefix: str = "") -> str:
    """What stands behind VALUES, with parameters of the same names after the prefix."""
    return ", ".join(f"%({prefix}{name})s" for name in names)


def assigned(names: Sequence[str], prefix: str = "") -> str:
    """What stands behind SET, with parameters of the same names after the prefix."""
    return ", ".join(f"{name} = %({prefix}{name})s" for name in names)


class Parameter(models.Expression):
    """A named parameter of a statement, in a condition of the ORM that is written into it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, *_args: Any, **_kwargs: Any) -> tuple[str, tuple[str | int, ...]]:
        return f"%({self.name})s", ()


def parameter(name: str) -> Any:
    """Stands for a value of any type."""
    return Parameter(name)


def condition(model: type[models.Model], rule: models.Q, *, alias: str = "") -> str:
    """What stands behind WHERE for the rows of which `rule` holds. It asks for columns of this table only.

    Django writes it here once. Its values are parameter()s; constants become literals, as partial indexes need them.
    On a distributed database its subqueries name the statement's tenant, the parameter `tenant`.
    """
    if not rule:
        return "true"
    query = model._default_manager.filter(rule).query
    table = model._meta.db_table
    if joined := [name for name, used in query.alias_refcount.items() if used and name != table]:
        raise ValueError(f"The condition joins {joined}")
    with of_tenant(parameter("tenant")):
        sql, constants = query.get_compiler(connection=connection).compile(query.where)
    between = sql.split("%s")
    literals = [Literal(value).as_string(None).replace("%", "%%") for value in constants]
    sql = "".join(text for pair in zip(between, [*literals, ""], strict=True) for text in pair)
    return f"({sql})".replace(f'"{table}".', f"{alias}." if alias else f"{table}.")


def first(statement: str, parameters: Mapping[str, Any] | None = None) -> tuple[Any, ...] | None:
    """The first row of a query, if there is one; in the binary format, for dates as text take longer to read."""
    with connection.cursor() as cursor:
        cursor.cursor.format = Format.BINARY
        cursor.execute(statement, parameters)
        row: tuple[Any, ...] | None = cursor.fetchone()
        return row


def read(model: type[Row], names: Sequence[str], values: Iterable[Any], **joined: models.Model) -> Row:
    """The next of `values` as a row; columns that are not named are read when somebody asks for them.

    As Model.from_db() makes it, without the two signals of every new object: nobody listens to them. `joined` are the
    rows that its foreign keys name.
    """
    row = model.__new__(model)
    row._state = ModelState()
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    row._state.fields_cache = joined
    # zip() takes a name before a value: the values that follow are left.
    row.__dict__.update(zip(names, values, strict=False))
    return row
