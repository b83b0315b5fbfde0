"""The faults, and a schedule of them: which one when is drawn by the seed, each kind as often as the others."""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from memoryhub.embedded_postgres import EmbeddedPostgresError
from tests.commands.hub import Hub
from tests.faults.killing import VICTIMS
from tests.faults.workers import children
from tests.scratch import connect
from tests.soak.journal import Journal
from tests.soak.model import CHAT_FAULTS, EMBEDDING_FAULTS, Model
from tests.soak.stage import Clock, Disk

# Calm before the first fault, and between the end of one and the next.
WARM_UP_SECONDS = 30.0
CALM_SECONDS = (35.0, 50.0)
LONG_SECONDS = 10.0
PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.1
STEP = 3_600
SECOND = 1.0


@dataclass(frozen=True)
class Rig:
    """What faults are done to."""

    hub: Hub
    model: Model
    disk: Disk
    clock: Clock


@dataclass(frozen=True)
class Fault:
    """`during` holds it for so many seconds; 0: a blow that is over at once. `missing` says why it cannot be done."""

    name: str
    seconds: float
    during: Callable[[Rig], Any]
    missing: Callable[[Rig], str] = lambda rig: ""


def _server_process(hub: Hub) -> int:
    """A process that serves, under the one that starts it."""
    return children(hub.pid("web"))[0]


STOPPED: dict[str, Callable[[Hub], int]] = {
    "the process that serves": _server_process,
    **{name: VICTIMS[name] for name in ("a process of the pool", "the embedder", "the database")},
}
KILLED = {"the process that serves": _server_process, **VICTIMS}


def _signalled(hub: Hub, victim: Callable[[Hub], int], number: int) -> int:
    """Whom it reached; waits for one that is just being started again."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            process = victim(hub)
            os.kill(process, number)
        except (LookupError, StopIteration, OSError, ValueError):
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOK_SECONDS)
        else:
            return process


def killed(victim: Callable[[Hub], int]) -> Callable[[Rig], Any]:
    @contextmanager
    def during(rig: Rig) -> Iterator[None]:
        _signalled(rig.hub, victim, signal.SIGKILL)
        yield

    return during


def stopped(victim: Callable[[Hub], int]) -> Callable[[Rig], Any]:
    @contextmanager
    def during(rig: Rig) -> Iterator[None]:
        process = _signalled(rig.hub, victim, signal.SIGSTOP)
        try:
            yield
        finally:
            try:
                os.kill(process, signal.SIGCONT)
            except ProcessLookupError:
                """Its parent replaced it."""

    return during


def failing(attribute: str, response: Any) -> Callable[[Rig], Any]:
    @contextmanager
    def during(rig: Rig) -> Iterator[None]:
        setattr(rig.model, attribute, response)
        try:
            yield
        finally:
            setattr(rig.model, attribute, None)

    return during


@contextmanager
def full(rig: Rig) -> Iterator[None]:
    rig.disk.fill()
    try:
        yield
    finally:
        rig.disk.empty()


@contextmanager
def exhausted(rig: Rig) -> Iterator[None]:
    """Every connection that the server has left, the reserved ones too."""
    held: list[psycopg.Connection] = []
    try:
        # More than max_connections, so that it ends.
        for _ in range(200):
            try:
                held.append(connect(rig.hub.home))
            except psycopg.OperationalError:
                break
        yield
    finally:
        for connection in held:
            connection.close()


@contextmanager
def terminated(rig: Rig) -> Iterator[None]:
    try:
        with connect(rig.hub.home) as database:
            database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
    except (psycopg.OperationalError, EmbeddedPostgresError):
        """It went with the others."""
    yield


def stepped(seconds: int) -> Callable[[Rig], Any]:
    @contextmanager
    def during(rig: Rig) -> Iterator[None]:
        rig.clock.step(seconds)
        try:
            yield
        finally:
            rig.clock.step(0)

    return during


def _no_disk(rig: Rig) -> str:
    return "" if rig.disk.is_own else "Only root can give the hub a disk that is full."


def _no_clock(rig: Rig) -> str:
    return "" if rig.clock.is_own else "Without a C compiler, or not on Linux, the hub has the machine's clock."


FAULTS = (
    *(Fault(f"{name} is killed", 0, killed(victim)) for name, victim in KILLED.items()),
    *(Fault(f"{name} is stopped", LONG_SECONDS, stopped(victim)) for name, victim in STOPPED.items()),
    *(Fault(f"the model {what}", LONG_SECONDS, failing("chat_fault", how)) for what, how in CHAT_FAULTS.items()),
    *(
        Fault(f"embeddings {what}", LONG_SECONDS, failing("embedding_fault", how))
        for what, how in EMBEDDING_FAULTS.items()
    ),
    Fault("all connections of the database are cut", 0, terminated),
    Fault("the database's connections are exhausted", LONG_SECONDS, exhausted),
    Fault("the disk is full", LONG_SECONDS, full, _no_disk),
    Fault("the clock of web and workers is an hour ahead", LONG_SECONDS, stepped(STEP), _no_clock),
    Fault("the clock of web and workers is an hour behind", LONG_SECONDS, stepped(-STEP), _no_clock),
)


def schedule(seed: int) -> Iterator[tuple[float, Fault]]:
    """Without end: seconds of calm, then a fault. All kinds come before one comes again."""
    dice = random.Random(f"faults {seed}")
    calm = WARM_UP_SECONDS
    while True:
        for fault in dice.sample(FAULTS, len(FAULTS)):
            yield calm, fault
            calm = dice.uniform(*CALM_SECONDS)


def carry_out(rig: Rig, seed: int, *, until: float, journal: Journal) -> None:
    """Follow the schedule as long as a fault and its calm end before `until`, a second of the soak."""
    left_out: set[str] = set()
    for calm, fault in schedule(seed):
        reason = fault.missing(rig)
        if reason:
            if fault.name not in left_out:
                journal.note(do="left out", fault=fault.name, why=reason)
            left_out.add(fault.name)
            continue
        if journal.now + calm + fault.seconds + CALM_SECONDS[0] > until:
            break
        time.sleep(calm)
        began = journal.now
        with fault.during(rig):
            time.sleep(fault.seconds)
        # What the clock's processes have cached of it holds for a second.
        journal.note(do="fault", fault=fault.name, began=round(began, 3), ended=round(journal.now, 3))
    time.sleep(max(0.0, until - journal.now))
