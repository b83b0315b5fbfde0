"""Errors in the hub's log: place and type, never the message.

The message of an error may quote a person. PostgreSQL quotes the values of a duplicate key, and parsers their input.
"""

import logging
import traceback
from collections.abc import Iterator
from types import TracebackType

Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
LEFT_OUT = "(its message is left out)"


class DiscreetFormatter(logging.Formatter):
    """Tracebacks contain only places and error types."""

    def formatException(self, ei: Raised) -> str:  # noqa: N802  (the name is logging's)
        return "\n".join(_lines(ei[1])) if ei[1] is not None else ""


def _lines(error: BaseException) -> Iterator[str]:
    """The first cause first, as in Python's own tracebacks."""
    for one in reversed(list(_chain(error))):
        yield "Traceback (most recent call last):"
        yield from (line.rstrip("\n") for line in traceback.format_tb(one.__traceback__))
        yield f"{type(one).__module__}.{type(one).__qualname__} {LEFT_OUT}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes."""
    met: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in met:
        met.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
