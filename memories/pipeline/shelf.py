"""A shelf of things that are dear to make: the least recently used go first, and what lies idle goes too."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Shelf(Generic[T]):
    """Keeps values by key up to `capacity` (in the unit of `weigh`); safe under threads.

    Values are shared: nobody may change one that lies here. What was not used for `idle_seconds` goes by itself, also
    where nobody asks any more: it may be of somebody who was erased.
    """

    def __init__(self, *, capacity: int, idle_seconds: float, weigh: Callable[[T], int]) -> None:
        self._capacity, self._idle_seconds, self._weigh = capacity, idle_seconds, weigh
        self._lock = threading.Lock()
        # Least recently used first: (value, weight, last use).
        self._values: OrderedDict[Hashable, tuple[T, int, float]] = OrderedDict()
        self._total = 0
        self._timer: threading.Timer | None = None

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
            # A thread does not come along with a fork.
            if self._values and not (self._timer and self._timer.is_alive()):
                self._look_after(self._idle_seconds)

    def look(self) -> None:
        """Drop what lies idle; what is left is looked at again when the oldest of it will do so."""
        now = time.monotonic()
        with self._lock:
            self._drop_idle(now)
            if self._values:
                _, _, used = next(iter(self._values.values()))
                self._look_after(max(1.0, self._idle_seconds - (now - used)))

    def _look_after(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self.look)
        self._timer.daemon = True
        self._timer.start()

    def __len__(self) -> int:
        return len(self._values)

    def _drop_idle(self, now: float) -> None:
        while self._values:
            key, (_, _, used) = next(iter(self._values.items()))
            if now - used < self._idle_seconds:
                return
            self._take(key)

    def _take(self, key: Hashable) -> None:
        found = self._values.pop(key, None)
        self._total -= found[1] if found else 0


class StampedShelf(Generic[T]):
    """A shelf whose values are good as long as what they were made of is as it was."""

    def __init__(self, *, capacity: int, idle_seconds: float, weigh: Callable[[T], int]) -> None:
        self._shelf: Shelf[tuple[Any, T]] = Shelf(
            capacity=capacity, idle_seconds=idle_seconds, weigh=lambda kept: weigh(kept[1])
        )

    def get_or_make(self, key: Hashable, stamp: Any, make: Callable[[], T]) -> T:
        """The value of this key and stamp; made when it is not here. `stamp` was read before what `make` reads."""
        kept = self._shelf.get(key)
        if kept and kept[0] == stamp:
            return kept[1]
        made = make()
        self._shelf.put(key, (stamp, made))
        return made
