"""A shelf of things that are dear to make: the least recently used go first, and what lies idle goes too."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shelf(Generic[T]):
    """Keeps values by key up to `capacity` (in the unit of `weigh`); safe under threads.

    Values are shared: nobody may change one that lies here.
    """

    def __init__(self, *, capacity: int, idle_seconds: float, weigh: Callable[[T], int]) -> None:
        self._capacity, self._idle_seconds, self._weigh = capacity, idle_seconds, weigh
        self._lock = threading.Lock()
        # Least recently used first: (value, weight, last use).
        self._values: OrderedDict[Hashable, tuple[T, int, float]] = OrderedDict()
        self._total = 0

    def get(self, key: Hashable) -> T | None:
        """The value last put under `key`, if it is still here."""
        now = time.monotonic()
        with self._lock:
            self._drop_idle(now)
            found = self._values.pop(key, None)
            if found is None:
                return None
            self._values[key] = (found[0], found[1], now)
            return found[0]

    def put(self, key: Hashable, value: T) -> None:
        """Keep `value`; one heavier than the whole shelf is not kept."""
        weight = self._weigh(value)
        with self._lock:
            self._take(key)
            if weight > self._capacity:
                return
            self._values[key] = (value, weight, time.monotonic())
            self._total += weight
            while self._total > self._capacity:
                self._take(next(iter(self._values)))

    def _drop_idle(self, now: float) -> None:
        while self._values:
            key, (_, _, used) = next(iter(self._values.items()))
            if now - used < self._idle_seconds:
                return
            self._take(key)

    def _take(self, key: Hashable) -> None:
        found = self._values.pop(key, None)
        self._total -= found[1] if found else 0
