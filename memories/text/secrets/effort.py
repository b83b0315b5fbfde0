"""A budget for redaction: how many places of a request's texts are examined. Hostile texts can have many; pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from memories.exceptions import TooManySecrets

# A place costs about 3 microseconds, so all of them about a second. A million characters of "pw pw …" stay below.
MOST_PLACES = 400_000

_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


@contextmanager
def bounded() -> Iterator[None]:
    """Within the block at most MOST_PLACES are examined; beyond that spend() raises TooManySecrets."""
    token = _left.set([MOST_PLACES])
    try:
        yield
    finally:
        _left.reset(token)


def spend(places: int) -> None:
    """Take so many places of a text from the budget before they are examined. Errors: TooManySecrets."""
    left = _left.get()
    if left is None:
        return
    left[0] -= places
    if left[0] < 0:
        raise TooManySecrets


def left() -> int | None:
    """What is left of the budget; None outside a block."""
    found = _left.get()
    return None if found is None else found[0]
