"""Caches of a process: the least recently used values are evicted first, and idle ones after a time.

All indexes, of facts, episodes and turns, are in one of them, Indexes. A Source says of each kind what it is made of.
"""

import contextvars
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from django.conf import settings
from django.db import connections

from memories.exceptions import HubBusy
from memories.telemetry.families import INDEX

T = TypeVar("T")
S = TypeVar("S")

# When an index is evicted that nobody used.
IDLE_SECONDS = 600.0
# What the indexes of all web processes of a host may take, in bytes, beside the files that they share.
CAPACITY = 1 << 30


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

    def drop(self, key: Hashable) -> bool:
        """Whether it was there."""
        with self._lock:
            was_there = key in self._values
            self._drop(key)
            return was_there

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
    """How long a request waits for others that make an index, and for how many (None: without a limit). `beside`: it
    takes longer than a request may, so a thread of its own makes it."""

    seconds: float | None = None
    waiting: int | None = None
    beside: bool = False


FOR_EVER = Patience()


class Source(ABC, Generic[S, T]):
    """What one index is made of: each kind has a class, which says which rows, texts and stamps.

    `kind`: how metrics call it. `key`: whose it is.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def key(self) -> tuple[Hashable, ...]: ...

    @abstractmethod
    def stamp(self, known: S | None) -> S:
        """What changes with the rows, read before them. `known`: of the index that is kept, if there is one."""

    @abstractmethod
    def make(self, stamp: S, kept: T | None, seconds: float | None) -> T:
        """The index of that stamp. It may take over parts of the one that is `kept` of another stamp, and wait so many
        seconds for another process (None: for as long as it takes)."""

    @abstractmethod
    def weight(self, index: T) -> int:
        """The bytes that it takes of the memory of this process alone, roughly."""

    def suffices(self, _kept: T, _stamp: S) -> bool:
        """Whether an index of another stamp is as good."""
        return False

    def patience(self, _stamp: S, _kept: T | None) -> Patience:
        return FOR_EVER


class _Kept(NamedTuple):
    stamp: Any
    index: Any
    weight: int


class Indexes:
    """The indexes of a process. An index is valid while its rows have its stamp. One thread at a time makes that of a
    key; the others wait for it, as long as their patience lasts."""

    def __init__(self, *, capacity: int, idle_seconds: float = IDLE_SECONDS) -> None:
        self._cache: LRUCache[_Kept] = LRUCache(
            capacity=capacity, idle_seconds=idle_seconds, weigh=lambda kept: kept.weight
        )
        self._lock = threading.Lock()
        # By key: the lock of the thread that makes its index, and how many threads hold or want it.
        self._makers: dict[Hashable, tuple[threading.Lock, int]] = {}

    def open(self, source: Source[S, T]) -> T:
        """The index of this source as its rows are now. HubBusy for who has no patience left."""
        key = (source.kind, *source.key)
        kept = self._cache.get(key)
        stamp = source.stamp(kept.stamp if kept else None)
        if kept and (kept.stamp == stamp or source.suffices(kept.index, stamp)):
            INDEX.count(source.kind, "hit")
            index: T = kept.index
            return index
        patience = source.patience(stamp, kept.index if kept else None)
        if patience.beside:
            return _beside(partial(self._made, source, key, stamp, kept, patience._replace(seconds=None)), patience)
        return self._made(source, key, stamp, kept, patience)

    def drop(self, source: Source[Any, Any]) -> bool:
        """Nobody needs this index any more. Whether it was kept."""
        return self._cache.drop((source.kind, *source.key))

    def _made(self, source: Source[S, T], key: Hashable, stamp: S, former: _Kept | None, patience: Patience) -> T:
        with self._only_maker(key, patience):
            kept = self._cache.get(key)
            if kept is not former:
                # Another has made it meanwhile. It may be newer than the stamp.
                stamp = source.stamp(kept.stamp if kept else None)
            is_there = kept is not None and kept.stamp == stamp
            INDEX.count(source.kind, "hit" if is_there else "miss")
            index: T
            if kept and is_there:
                index = kept.index
            else:
                index = source.make(stamp, kept.index if kept else None, patience.seconds)
                self._cache.put(key, _Kept(stamp, index, source.weight(index)))
            return index

    @contextmanager
    def _only_maker(self, key: Hashable, patience: Patience) -> Iterator[None]:
        with self._lock:
            lock, wanted = self._makers.get(key) or (threading.Lock(), 0)
            if patience.waiting is not None and wanted > patience.waiting:
                raise HubBusy
            self._makers[key] = (lock, wanted + 1)
        try:
            if not lock.acquire(timeout=-1 if patience.seconds is None else patience.seconds):
                raise HubBusy
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._lock:
                lock, wanted = self._makers.pop(key)
                if wanted > 1:
                    self._makers[key] = (lock, wanted - 1)


def _beside(work: Callable[[], T], patience: Patience) -> T:
    """What a thread of its own finds in time. HubBusy after that: it goes on for those who come later."""
    found: list[T] = []

    def run() -> None:
        try:
            # Another thread may make it already.
            with suppress(HubBusy):
                found.append(work())
        finally:
            connections.close_all()

    # The thread works for the tenant of this request.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="index", daemon=True)
    thread.start()
    thread.join(patience.seconds)
    if not found:
        raise HubBusy
    return found[0]


indexes = Indexes(capacity=CAPACITY // settings.WEB_PROCESSES)
