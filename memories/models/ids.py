"""Time-ordered identifiers, so that new rows land at the end of every index."""

import secrets
import time
import uuid

# Of the UUIDs that new_id() makes.
OUR_VERSION = 7
_NANOSECONDS = 1_000_000  # in a millisecond
_RANDOM_BITS = 62


def new_id() -> uuid.UUID:
    """A version 7 UUID: 48 bits of Unix milliseconds, 12 bits of their fraction, then 62 random bits.

    RFC 9562, section 6.2, method 3: with the fraction (244 ns), ids that one process makes one after the other are
    in their order also within a millisecond.
    """
    milliseconds, rest = divmod(time.time_ns(), _NANOSECONDS)
    fraction = (rest << 12) // _NANOSECONDS
    random = secrets.randbits(_RANDOM_BITS)
    return uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | random)


def parse_uuid(text: str) -> uuid.UUID | None:
    """The UUID that `text` is, None if it is none."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
