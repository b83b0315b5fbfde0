"""Turns written down: hundreds by one statement that takes arrays, a single one by a part of another statement."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, models

from memories.models import Turn


def _kind(field: models.Field[Any, Any]) -> str:
    # A cast to varchar(255) would cut what is too long; the column itself refuses it.
    return "text" if isinstance(field, models.CharField) else str(field.db_type(connection))


_FIELDS = Turn._meta.concrete_fields
# Name of the column → how a value is written, where it is not as it is.
_COLUMNS: dict[str, Callable[[Any], str] | None] = {
    str(field.column): json.dumps if isinstance(field, models.JSONField) else None for field in _FIELDS
}
# For a WITH: most posts hold one turn, and its arrays would take longer to write than the row.
INSERT_ONE = (
    f"INSERT INTO memories_turn ({', '.join(_COLUMNS)}) "  # noqa: S608
    f"VALUES ({', '.join(f'%(turn_{name})s' for name in _COLUMNS)})"
)
_ARRAYS = ", ".join(f"%s::{_kind(field)}[]" for field in _FIELDS)
_INSERT = f"INSERT INTO memories_turn ({', '.join(_COLUMNS)}) SELECT * FROM unnest({_ARRAYS})"  # noqa: S608


def insert(turns: Sequence[Turn]) -> None:
    """Insert rows that have all their values. Errors: IntegrityError."""
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [_column(turns, name) for name in _COLUMNS])


def values_of(turn: Turn) -> dict[str, Any]:
    """The parameters of INSERT_ONE."""
    return {f"turn_{name}": _written(getattr(turn, name), write) for name, write in _COLUMNS.items()}


def _column(turns: Sequence[Turn], name: str) -> list[Any]:
    write = _COLUMNS[name]
    return [_written(getattr(turn, name), write) for turn in turns]


def _written(value: Any, write: Callable[[Any], str] | None) -> Any:
    return value if value is None or write is None else write(value)
