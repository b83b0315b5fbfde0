"""Reads many rows at once, in PostgreSQL's binary format: a vector arrives as numbers, not as text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from psycopg.pq import Format

# halfvec_send() writes the dimensions and an unused number, two bytes each, before the numbers.
_HEADER = 2


def fetched(statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a query; bytea arrives as bytes, without the detour through hexadecimal digits."""
    with connection.cursor() as cursor:
        cursor.cursor.format = Format.BINARY
        cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def vectors(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """What halves() gives, in single precision."""
    return halves(sent).astype(np.float32)


def halves(sent: Sequence[bytes]) -> NDArray[np.float16]:
    """The results of halfvec_send() for vectors of one dimension, as float16[n, dimensions]."""
    found = np.frombuffer(b"".join(sent), ">f2").reshape(len(sent), -1)[:, _HEADER:]
    return found.astype(np.float16)
