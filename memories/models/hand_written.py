"""For the few statements written by hand, where each request would else pay for Django writing the same one again."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from django.db import connection, models

Row = TypeVar("Row", bound=models.Model)


def columns_of(model: type[models.Model]) -> tuple[str, ...]:
    """The names of all columns of a model."""
    return tuple(str(field.column) for field in model._meta.concrete_fields)


def selected(alias: str, names: Sequence[str]) -> str:
    """What stands behind SELECT for these columns of a table."""
    return ", ".join(f"{alias}.{name}" for name in names)


def assigned(names: Sequence[str]) -> str:
    """What stands behind SET, with parameters of the same names."""
    return ", ".join(f"{name} = %({name})s" for name in names)


def read(model: type[Row], names: Sequence[str], values: Iterable[Any]) -> Row:
    """The next `values` as a row; fields that are not named are read when somebody asks for them."""
    given = list(islice(values, len(names)))
    for place in _documents(model, tuple(names)):
        given[place] = given[place] and json.loads(given[place])
    return model.from_db(connection.alias, names, given)


@cache
def _documents(model: type[models.Model], names: tuple[str, ...]) -> list[int]:
    """Places of the columns that Django has the driver hand over as JSON text."""
    fields = {field.column: field for field in model._meta.concrete_fields}
    return [place for place, name in enumerate(names) if isinstance(fields[name], models.JSONField)]
