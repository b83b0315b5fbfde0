"""For the few statements written by hand, where each request would else pay for Django writing the same one again."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from django.db import connection, models

Row = TypeVar("Row", bound=models.Model)


def columns_of(model: type[models.Model]) -> tuple[str, ...]:
    """The names of all columns of a model whose fields are stored as they are read."""
    return tuple(str(field.column) for field in model._meta.concrete_fields)


def selected(alias: str, names: Sequence[str]) -> str:
    """What stands behind SELECT for these columns of a table."""
    return ", ".join(f"{alias}.{name}" for name in names)


def assigned(names: Sequence[str]) -> str:
    """What stands behind SET, with parameters of the same names."""
    return ", ".join(f"{name} = %({name})s" for name in names)


def read(model: type[Row], names: Sequence[str], values: Iterable[Any]) -> Row:
    """The next `values` as a row; fields that are not named are read when somebody asks for them."""
    return model.from_db(connection.alias, names, list(islice(values, len(names))))
