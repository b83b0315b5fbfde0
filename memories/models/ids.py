"""Time-ordered identifiers, so that new rows land at the end of every index."""

import secrets
import threading
import time
import uuid

# Of the UUIDs that new_id() makes.
OUR_VERSION = 7
_NANOSECONDS = 1_000_000  # in a millisecond
_RANDOM_BITS = 62


class Ticks:
    """A clock in 4,096ths of a millisecond (244 ns) that never stands still and never goes back.

    Clocks of machines are set back at times, and an id made after another must not sort before it (RFC 9562, 6.2).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = -1

    def next(self) -> int:
        now = (time.time_ns() << 12) // _NANOSECONDS
        with self._lock:
            self._last = max(now, self._last + 1)
            return self._last


_ticks = Ticks()


def new_id() -> uuid.UUID:
    """A version 7 UUID: 48 bits of Unix milliseconds, 12 bits of their fraction, then 62 random bits.

    RFC 9562, section 6.2, method 3: ids that one process makes one after the other are in their order.
    """
    milliseconds, fraction = divmod(_ticks.next(), 1 << 12)
    random = secrets.randbits(_RANDOM_BITS)
    return uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random)


def parse_uuid(text: str) -> uuid.UUID | None:
    """The UUID that `text` is, None if it is none."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
