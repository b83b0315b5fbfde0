"""One budget for the answer to a request: rows, bytes and seconds, however many operations the request has.

Whoever reads for an answer takes from it before more is read. Outside a request nothing is counted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic

from memories.exceptions import RequestTooCostly

# A search of the store finds 1,000 items at most: fifty of a batch may find as many.
MOST_ROWS = 50_000
# What becomes objects of Python and then JSON takes about six times as much memory meanwhile.
MOST_BYTES = 24 * 1024 * 1024
# A full batch of the store, each value of which is judged, takes about 20; most proxies wait for 60.
MOST_SECONDS = 50.0
# What a row costs beside its texts: its place in the answer, dates and ids.
ROW_BYTES = 200


@dataclass
class _Left:
    rows: int
    size: int
    until: float


_left: ContextVar[_Left | None] = ContextVar("budget", default=None)


@contextmanager
def of_request() -> Iterator[None]:
    """What the block reads is of one request."""
    token = _left.set(_Left(MOST_ROWS, MOST_BYTES, monotonic() + MOST_SECONDS))
    try:
        yield
    finally:
        _left.reset(token)


def spend(*, rows: int = 1, size: int = 0) -> None:
    """Take so many rows with so many bytes of text. Errors: RequestTooCostly, which says of what there is no more."""
    left = _left.get()
    if left is None:
        return
    left.rows -= rows
    left.size -= size + rows * ROW_BYTES
    if left.rows < 0:
        raise RequestTooCostly(f"The answer would have more than {MOST_ROWS:,} rows. {_NARROW}")
    if left.size < 0:
        raise RequestTooCostly(f"The answer would have more than {MOST_BYTES:,} bytes. {_NARROW}")
    check_time()


def check_time() -> None:
    """To be asked before each operation. Errors: RequestTooCostly."""
    left = _left.get()
    if left is not None and monotonic() > left.until:
        raise RequestTooCostly(f"The request took more than {MOST_SECONDS:.0f} seconds. {_NARROW}")


def bytes_left() -> int | None:
    """For statements that end where the budget does; None outside a request."""
    left = _left.get()
    return None if left is None else max(0, left.size)


_NARROW = "Ask for fewer operations, a lower limit or fewer names in one request."
