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
# Of the processor for examining them, whatever they cost.
MOST_SECONDS = 2.0


@dataclass
class _Left:
    places: int
    dense: int
    # Of the processor, in this thread; `last`: its clock at the last place.
    seconds: float
    last: float = 0.0


_left: ContextVar[_Left | None] = ContextVar("left", default=None)


@contextmanager
def bounded() -> Iterator[None]:
    """Within the block at most MOST_PLACES are examined; beyond that spend() raises TooManySecrets."""
    token = _left.set(_Left(MOST_PLACES, FREE_PLACES, MOST_SECONDS))
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


def start_clock() -> None:
    """To be called before the first place of a text: to find them is no examination."""
    left = _left.get()
    if left is not None:
        left.last = thread_time()


def examine() -> None:
    """To be called for each place: what was done since the last one was for that. Errors: TooManySecrets."""
    left = _left.get()
    if left is None:
        return
    now = thread_time()
    left.seconds -= now - left.last
    left.last = now
    if left.seconds < 0:
        raise TooManySecrets


def left() -> int | None:
    """What is left of the budget; None outside a block."""
    found = _left.get()
    return None if found is None else found.places
