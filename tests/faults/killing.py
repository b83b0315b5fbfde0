"""`kill -9` at random moments: of any process of a hub, each moment and its victim chosen by a seed."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoryhub.embedded_postgres.place import locate
from tests.commands.hub import Hub
from tests.faults.workers import children

# For a victim that is just being started again.
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.1


def database_of(hub: Hub) -> int:
    """The server's first process."""
    return int((locate(hub.home).data / "postmaster.pid").read_text(encoding="utf-8").splitlines()[0])


def _web(hub: Hub) -> int:
    return hub.pid("web")


def _worker(hub: Hub) -> int:
    return hub.pid("worker")


def _cluster(hub: Hub) -> int:
    """The first process of django-q's."""
    return children(hub.pid("worker"))[0]


def _pool(hub: Hub) -> int:
    """One that runs tasks, as long as not all of them are younger than the monitor, which is made after them."""
    return children(_cluster(hub))[0]


def _embedder(hub: Hub) -> int:
    return hub.pid("embedder")


VICTIMS: dict[str, Callable[[Hub], int]] = {
    "a process of the pool": _pool,
    "the cluster": _cluster,
    "the worker": _worker,
    "the embedder": _embedder,
    "the web server": _web,
    "the database": database_of,
}


@dataclass(frozen=True)
class Kill:
    """What is to be killed, and when: seconds after the beginning."""

    victim: str
    at: float


def planned(count: int, *, within: float, seed: int, victims: Sequence[str] = tuple(VICTIMS)) -> list[Kill]:
    """So many at random moments `within` so many seconds, each kind of victim as often as the others."""
    dice = random.Random(seed)
    chosen = [victims[place % len(victims)] for place in range(count)]
    dice.shuffle(chosen)
    moments = sorted(dice.uniform(0, within) for _ in chosen)
    return [Kill(victim, at) for victim, at in zip(chosen, moments, strict=True)]


class Killing(threading.Thread):
    """Carries out a plan; `done` has what was killed, and when."""

    def __init__(self, hub: Hub, plan: Sequence[Kill]) -> None:
        super().__init__(daemon=True)
        self.done: list[Kill] = []
        self._hub, self._plan = hub, plan

    def run(self) -> None:
        begun = time.monotonic()
        for kill in self._plan:
            time.sleep(max(0.0, begun + kill.at - time.monotonic()))
            self._kill(VICTIMS[kill.victim])
            self.done.append(Kill(kill.victim, time.monotonic() - begun))

    def end(self) -> None:
        """Wait for the last one."""
        self.join(PATIENCE_SECONDS * len(self._plan))
        assert len(self.done) == len(self._plan), f"{len(self.done)} of {len(self._plan)} were killed"

    def _kill(self, victim: Callable[[Hub], int]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                os.kill(victim(self._hub), signal.SIGKILL)
                return
            except (LookupError, StopIteration, OSError):
                # It is dead already, and its successor not there yet.
                assert time.monotonic() < deadline
                time.sleep(LOOK_SECONDS)
