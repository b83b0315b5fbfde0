"""Caches of a process: the least recently used values are evicted first, and idle ones after a time."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, TypeVar

from memories.exceptions import HubBusy
from memories.telemetry.families import INDEX

T = TypeVar("T")
S = TypeVar("S")

# When an index is evicted that nobody used.
IDLE_SECONDS = 600.0


class LRUCache(Generic[T]):
    """Thread-safe cache of at most `capacity` (in the unit of `weigh`).

    Values are shared: nobody may change one. A timer evicts what nobody used for `idle_seconds`, because it may belong
    to somebody who was erased.
    """

    def __init__(self, *, capacity: int, idle_seconds: float, weigh: Callable[[T], int]) -> None:
        self._capacity, self._idle_seconds, self._weigh = capacity, idle_seconds, weigh
        self._lock = threading.Lock()
        # Least recently used first: (value, weight, last use).
        self._values: OrderedDict[Hashable, tuple[T, int, float]] = OrderedDict()
        self._total = 0
        self._timer: threading.Timer | None = None

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> T | None:
        now = time.monotonic()
        with self._lock:
            self._drop_idle(now)
            found = self._values.pop(key, None)
            if found is None:
                return None
            self._values[key] = (found[0], found[1], now)
            return found[0]

    def put(self, key: Hashable, value: T) -> None:
        """Keep `value`, unless it alone exceeds the capacity."""
        weight = self._weigh(value)
        with self._lock:
            self._drop(key)
            if weight > self._capacity:
                return
            self._values[key] = (value, weight, time.monotonic())
            self._total += weight
            while self._total > self._capacity:
                self._drop(next(iter(self._values)))
            # A fork does not copy the timer's thread. A timer that has fired may live for a moment; evict_idle()
            # cleared `_timer` before, so it does not count.
            if self._values and not (self._timer and self._timer.is_alive()):
                self._schedule(self._idle_seconds)

    def evict_idle(self) -> None:
        """Evict idle values, and run again when the oldest of the others becomes idle."""
        now = time.monotonic()
        with self._lock:
            self._timer = None
            self._drop_idle(now)
            if self._values:
                _, _, used = next(iter(self._values.values()))
                self._schedule(max(1.0, self._idle_seconds - (now - used)))

    def _schedule(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self.evict_idle)
        self._timer.daemon = True
        self._timer.start()

    def _drop_idle(self, now: float) -> None:
        while self._values:
            key, (_, _, used) = next(iter(self._values.items()))
            if now - used < self._idle_seconds:
                return
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        found = self._values.pop(key, None)
        self._total -= found[1] if found else 0


class Patience(NamedTuple):
    """How long a thread waits for another that makes a value, and with how many others; None: without a limit."""

    seconds: float | None = None
    waiting: int | None = None


FOR_EVER = Patience()


class StampedCache(Generic[T]):
    """A cache of indexes: facts, turns and episodes have one each. A value is valid while its rows have its stamp."""

    def __init__(
        self, name: str, *, capacity: int, weigh: Callable[[T], int], idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._name = name
        self._cache: LRUCache[tuple[Any, T]] = LRUCache(
            capacity=capacity, idle_seconds=idle_seconds, weigh=lambda kept: weigh(kept[1])
        )

        self._lock = threading.Lock()
        # By key: the lock of the thread that makes its value, and how many threads hold or want it.
        self._makers: dict[Hashable, tuple[threading.Lock, int]] = {}

    def get_or_make(
        self,
        key: Hashable,
        stamp: S,
        make: Callable[[T | None, S], T],
        *,
        again: Callable[[], S] | None = None,
        patience: Patience = FOR_EVER,
    ) -> T:
        """The value of this key and stamp. The caller read `stamp` before what `make` reads.

        `make` is given the value of another stamp, if there is one, and may take over parts of it. One thread at a time
        makes the value of a key; the others wait for it, and then read the stamp `again`, as that value may be newer.
        HubBusy for who has no `patience` left.
        """
        found = self._of(key, stamp)
        if found is None:
            with self._only_maker(key, patience) as waited:
                stamp = again() if waited and again else stamp
                found = self._of(key, stamp)
                if found is None:
                    INDEX.count(self._name, "miss")
                    kept = self._cache.get(key)
                    found = (stamp, make(kept[1] if kept else None, stamp))
                    self._cache.put(key, found)
                    return found[1]
        INDEX.count(self._name, "hit")
        return found[1]

    def stamp(self, key: Hashable) -> Any:
        """The stamp of the value that is kept for this key; None if there is none."""
        kept = self._cache.get(key)
        return kept[0] if kept else None

    def kept(self, key: Hashable) -> T | None:
        """The value that is kept for this key, whatever its stamp."""
        found = self._cache.get(key)
        return found[1] if found else None

    def _of(self, key: Hashable, stamp: Any) -> tuple[Any, T] | None:
        kept = self._cache.get(key)
        return kept if kept and kept[0] == stamp else None

    @contextmanager
    def _only_maker(self, key: Hashable, patience: Patience) -> Iterator[bool]:
        """Lets in one thread at a time; whether it had to wait for another."""
        with self._lock:
            lock, wanted = self._makers.get(key) or (threading.Lock(), 0)
            if patience.waiting is not None and wanted > patience.waiting:
                raise HubBusy
            self._makers[key] = (lock, wanted + 1)
        try:
            waited = not lock.acquire(blocking=False)
            if waited and not lock.acquire(timeout=-1 if patience.seconds is None else patience.seconds):
                raise HubBusy
            try:
                yield waited
            finally:
                lock.release()
        finally:
            with self._lock:
                lock, wanted = self._makers.pop(key)
                if wanted > 1:
                    self._makers[key] = (lock, wanted - 1)
