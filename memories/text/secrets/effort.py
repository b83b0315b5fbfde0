"""A budget for redaction: how many places of a request's texts are examined. Hostile texts can have many; pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import thread_time

from memories.exceptions import TooManySecrets

# A place costs about 10 microseconds of the processor. A million characters of "pw pw …" stay below.
MOST_PLACES = 400_000
# Beyond the first ones, no more than one for so many characters: "password" alone is as long.
FREE_PLACES, CHARACTERS = 20_000, 8
# Of the processor, whatever the places cost.
MOST_SECONDS = 2.0
# Between two looks at the clock.
_STRIDE = 256


@dataclass
class _Left:
    places: int
    dense: int
    until: float
    examined: int = 0


_left: ContextVar[_Left | None] = ContextVar("left", default=None)


@contextmanager
def bounded() -> Iterator[None]:
    """Within the block at most MOST_PLACES are examined; beyond that spend() raises TooManySecrets."""
    token = _left.set(_Left(MOST_PLACES, FREE_PLACES, thread_time() + MOST_SECONDS))
    try:
        yield
    finally:
        _left.reset(token)


def begin(characters: int) -> None:
    """A text of so many characters is to be looked through."""
    left = _left.get()
    if left is not None:
        left.dense += characters // CHARACTERS


def spend(places: int) -> None:
    """Take so many places of a text from the budget before they are examined. Errors: TooManySecrets."""
    left = _left.get()
    if left is None:
        return
    left.places -= places
    left.dense -= places
    if left.places < 0 or left.dense < 0:
        raise TooManySecrets


def examine() -> None:
    """To be called for each place: looks at the clock now and then. Errors: TooManySecrets."""
    left = _left.get()
    if left is None:
        return
    left.examined += 1
    if left.examined % _STRIDE == 0 and thread_time() > left.until:
        raise TooManySecrets


def left() -> int | None:
    """What is left of the budget; None outside a block."""
    found = _left.get()
    return None if found is None else found.places
