"""Reading many rows at once: in PostgreSQL's binary format, in which a vector is the numbers that it consists of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from psycopg.pq import Format

# halfvec_send() writes the dimensions and an unused number, two bytes each, before the numbers.
_HEADER = 2


def fetched(statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a query; bytea comes as bytes, without the detour through hexadecimal digits."""
    with connection.cursor() as cursor:
        cursor.cursor.format = Format.BINARY
        cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def vectors(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """What halfvec_send() gave for vectors of one dimension, as float32[n, dimensions]."""
    halves = np.frombuffer(b"".join(sent), ">f2").reshape(len(sent), -1)[:, _HEADER:]
    return halves.astype(np.float32)
