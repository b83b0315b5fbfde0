"""Time-ordered identifiers, so that new rows land at the end of every index."""

import secrets
import time
import uuid

_RANDOM_BITS = 74


def new_id() -> uuid.UUID:
    """A version 7 UUID: 48 bits of Unix milliseconds, then 74 random bits (RFC 9562, section 5.7)."""
    milliseconds = time.time_ns() // 1_000_000
    random = secrets.randbits(_RANDOM_BITS)
    high, low = random >> 62, random & ((1 << 62) - 1)
    return uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)


def parse_uuid(text: str) -> uuid.UUID | None:
    """The UUID that `text` is, None if it is none."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
