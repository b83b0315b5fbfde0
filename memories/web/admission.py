"""Who gets a thread next, and who is told to come back later: before a request takes a thread, and in the loop alone.

Each key has a queue of its own. They take turns, so that one that is long makes only its own requests wait. What would
wait longer than the bound is refused at once, with the seconds after which it is worth another try.
"""

import math
import re
from collections import OrderedDict, deque
from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from django.urls import Resolver404, resolve

from memories.exceptions import HubBusy
from memories.telemetry.families import ADMITTED_SECONDS, REFUSED

# Keys that let in before have a queue each. All others share one: whoever invents keys gets no more turns by that.
MOST_KEYS = 10_000
MOST_EXPECTATIONS = 20_000
# The weight of the newest request in the time that an operation is expected to take.
_NEWEST = 0.2
# Of an operation that nobody asked for yet.
_FIRST_SECONDS = 0.02
# One thread of so many is for what is vital; and one in four is left to others by each key.
_LEAST_FOR_VITAL, _LEFT_TO_OTHERS = 4, 4
# Never refused, and first in turn: what watches the hub, and the door for operators.
_VITAL = ("/healthz", "/readyz", "/metrics", "/admin/login")
_DOORS = {"api": "api", "v1": "gateway", "mcp": "mcp"}
# Where a door looks for the key, in its order: what it does not look at must not make another caller.
_KEY_HEADERS = (b"authorization", b"x-api-key")
_GATEWAY_HEADERS = (b"x-memory-key", *_KEY_HEADERS)
_KEY = re.compile(rb"mhm?_[A-Za-z0-9]{1,64}_\S{1,256}")

# What the threads are handed.
Job = tuple[Any, ...]


@dataclass
class Ticket:
    """A request that wants a thread. `caller` is of its key; `operation` tells what it costs."""

    caller: int | str
    operation: str = ""
    door: str = "admin"
    path: str = ""
    key: int = 0
    is_vital: bool = False
    # It had a thread already: what follows is not refused, for half of it is done.
    is_admitted: bool = False


# The request of the task that asks for a thread.
asking: ContextVar[Ticket | None] = ContextVar("asking", default=None)
NOBODY = Ticket("inside", door="inside", is_admitted=True)


@dataclass
class _Waiting:
    job: Job
    ticket: Ticket
    since: float
    refuse: Callable[[HubBusy], None]
    # How long it is expected to take, and when its thread began.
    seconds: float
    begun: float = 0.0
    timer: Any = None
    is_over: bool = False


@dataclass
class _Queue:
    """Of one caller: what waits, and how long all of that is expected to take."""

    waiting: deque[_Waiting] = field(default_factory=deque)
    seconds: float = 0.0
    running: int = 0


class Admission:
    """Hands requests to `size` threads by `start`. All methods are called in the loop."""

    def __init__(self, size: int, start: Callable[[Job], None], *, bound: float) -> None:
        """`bound`: seconds that a request may wait; 0: as long as it takes."""
        self._size, self._start, self.bound = size, start, bound
        self._free = size
        self._reserved = 1 if size >= _LEAST_FOR_VITAL else 0
        self._share = size - self._reserved - size // _LEFT_TO_OTHERS
        self._running: list[_Waiting] = []
        self._queues: OrderedDict[int | str, _Queue] = OrderedDict()
        self._vital: deque[_Waiting] = deque()
        self._known: OrderedDict[int, None] = OrderedDict()
        self._expected: OrderedDict[tuple[int | str, str], float] = OrderedDict()

    def ticket(self, scope: MutableMapping[str, Any]) -> Ticket:
        """Of a request. Nothing of it is looked up: that would take a thread."""
        path: str = scope["path"]
        door = _DOORS.get(path.split("/", 2)[1], "admin")
        if door == "admin":
            return Ticket("pages", "pages", door, is_vital=path.startswith(_VITAL))
        key = _key_in(scope["headers"], _GATEWAY_HEADERS if door == "gateway" else _KEY_HEADERS)
        is_known = key in self._known
        if is_known:
            self._known.move_to_end(key)
        return Ticket(key if is_known else "unknown", f"{scope['method']} {_shape(path)}", door, path, key=key)

    def note_known(self, ticket: Ticket) -> None:
        """The key of this request let in."""
        if ticket.key and ticket.key not in self._known:
            self._known[ticket.key] = None
            if len(self._known) > MOST_KEYS:
                self._known.popitem(last=False)

    def ask(self, ticket: Ticket, job: Job, refuse: Callable[[HubBusy], None], later: Callable[..., Any]) -> None:
        """Start the job now or in its turn. `refuse` is called instead where it waits too long; `later` is the loop's
        call_later. Errors: HubBusy, where that is certain already."""
        one = _Waiting(job, ticket, monotonic(), refuse, self._seconds(ticket))
        if self._may_start(ticket):
            self._begin(one)
            return
        is_bound = self.bound > 0 and not ticket.is_admitted and ticket.door in _DOORS.values()
        if is_bound:
            seconds = self._expected_wait(ticket)
            if seconds > self.bound:
                raise self._refused(ticket, seconds)
            one.timer = later(self.bound, self._give_up, one)
        self._enqueue(one)

    def ended(self, job: Job) -> None:
        """A job has left its thread."""
        one = next((one for one in self._running if one.job is job), None)
        if one is None:
            # The process ends: its threads were handed all that waited.
            return
        self._running.remove(one)
        self._free += 1
        ticket, seconds = one.ticket, monotonic() - one.begun
        self._queue(ticket).running -= 1
        of = ticket.caller, ticket.operation
        before = self._expected.pop(of, seconds)
        self._expected[of] = before + _NEWEST * (seconds - before)
        if len(self._expected) > MOST_EXPECTATIONS:
            self._expected.popitem(last=False)
        self._forget(ticket.caller)
        self._next()

    def waiting(self) -> list[Job]:
        """What nobody has started, in the order of the queues. They are empty then."""
        left = [*self._vital, *(one for queue in self._queues.values() for one in queue.waiting)]
        self._vital.clear()
        for queue in self._queues.values():
            queue.waiting.clear()
        return [one.job for one in left]

    def _queue(self, ticket: Ticket) -> _Queue:
        return self._queues.setdefault(ticket.caller, _Queue())

    def _forget(self, caller: int | str) -> None:
        queue = self._queues.get(caller)
        if queue is not None and not queue.waiting and not queue.running:
            del self._queues[caller]

    def _may_start(self, ticket: Ticket) -> bool:
        if ticket.is_vital:
            return self._free > 0
        # Who comes while others of the same key wait, waits behind them.
        queue = self._queues.get(ticket.caller)
        is_in_turn = queue is None or (queue.running < self._share and not queue.waiting)
        return is_in_turn and self._free > self._reserved

    def _begin(self, one: _Waiting) -> None:
        self._free -= 1
        self._queue(one.ticket).running += 1
        self._running.append(one)
        one.begun = monotonic()
        one.is_over = one.ticket.is_admitted = True
        if one.timer is not None:
            one.timer.cancel()
        ADMITTED_SECONDS.observe(one.begun - one.since, one.ticket.door)
        self._start(one.job)

    def _enqueue(self, one: _Waiting) -> None:
        if one.ticket.is_vital:
            self._vital.append(one)
            return
        queue = self._queue(one.ticket)
        queue.waiting.append(one)
        queue.seconds += one.seconds

    def _next(self) -> None:
        """Start what can be started: the vital ones, then one of each queue in turn."""
        while self._vital and self._free > 0:
            self._begin(self._vital.popleft())
        while (found := self._next_caller()) is not None:
            queue = self._queues[found]
            # It is its turn again after all others.
            self._queues.move_to_end(found)
            one = queue.waiting.popleft()
            queue.seconds -= one.seconds
            self._begin(one)

    def _next_caller(self) -> int | str | None:
        if self._free <= self._reserved:
            return None
        ready = [name for name, queue in self._queues.items() if queue.waiting and queue.running < self._share]
        # Of those that have as few, whose turn was the longest ago.
        return min(ready, key=lambda name: self._queues[name].running, default=None)

    def _seconds(self, ticket: Ticket) -> float:
        return self._expected.get((ticket.caller, ticket.operation), _FIRST_SECONDS)

    def _expected_wait(self, ticket: Ticket) -> float:
        """Seconds until this request would have its turn: until a thread is free, then what is before it in its own
        queue and as many of each other one, over the threads."""
        own = self._queues.get(ticket.caller, _Queue())
        place = 1 + len(own.waiting)
        others = sum(
            queue.seconds * min(1.0, place / len(queue.waiting))
            for queue in self._queues.values()
            if queue is not own and queue.waiting
        )
        queued = max(own.seconds / self._share, (own.seconds + others) / (self._size - self._reserved))
        now = monotonic()
        mine = own.running >= self._share
        running = [one for one in self._running if one.ticket.caller == ticket.caller or not mine]
        first = min((max(0.0, one.begun + one.seconds - now) for one in running), default=0.0)
        return first + queued

    def _give_up(self, one: _Waiting) -> None:
        """It has waited as long as it may, whatever was expected."""
        if one.is_over:
            return
        one.is_over = True
        queue = self._queue(one.ticket)
        queue.waiting.remove(one)
        queue.seconds -= one.seconds
        refused = self._refused(one.ticket, self.bound + self._expected_wait(one.ticket))
        self._forget(one.ticket.caller)
        one.refuse(refused)

    def _refused(self, ticket: Ticket, seconds: float) -> HubBusy:
        REFUSED.count(_route(ticket))
        return HubBusy(max(1, math.ceil(seconds - self.bound)))


def _key_in(headers: Any, names: tuple[bytes, ...]) -> int:
    """A number that stands for the key that a request shows, in this process; 0 for none. The key is not kept."""
    given = dict(headers)
    shown = next((given[name] for name in names if name in given), b"")
    found = _KEY.search(shown)
    return hash(found[0]) if found else 0


def _route(ticket: Ticket) -> str:
    """The operation as metrics call it: a pattern of the API, or the door."""
    if ticket.door != "api":
        return ticket.door
    try:
        return resolve(ticket.path).route
    except Resolver404:
        return "unknown"


def _shape(path: str) -> str:
    """The path without ids: what is cheap for one object is so for another."""
    steps = path.split("/")[1:7]
    return "/".join(
        "*" if len(step) > 24 or (len(step) > 3 and any(map(str.isdigit, step))) else step for step in steps
    )
