"""Which process accepts a new connection: one that has no more than the others, by counts in memory that they share.

Without it, the process that wakes first takes most connections: eight clients that keep theirs open may all be served
by one of two processes."""

from mmap import mmap
from typing import Any

MOST_PROCESSES = 64
# For each process its connections plus one; 0: no process. The master makes it before it forks.
_COUNTS = memoryview(mmap(-1, MOST_PROCESSES * 4)).cast("I")


class ConnectionCount:
    """The open connections of one process. The master makes it, and frees it when the process has ended."""

    def __init__(self) -> None:
        self._number = _COUNTS.tolist().index(0)
        _COUNTS[self._number] = 1

    def set(self, connections: int) -> None:
        _COUNTS[self._number] = connections + 1

    def free(self) -> None:
        _COUNTS[self._number] = 0

    def has_more_than_another(self) -> bool:
        own = _COUNTS[self._number]
        return any(0 < count < own for count in _COUNTS)


class CountedConnections(set[Any]):
    """uvicorn's set of open connections, which notes its size in the process's count."""

    def __init__(self, count: ConnectionCount) -> None:
        super().__init__()
        self._count = count

    def add(self, connection: Any) -> None:
        super().add(connection)
        self._count.set(len(self))

    def discard(self, connection: Any) -> None:
        super().discard(connection)
        self._count.set(len(self))
