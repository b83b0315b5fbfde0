"""Parts of `manage.py up` killed while turns come in, round after round: nothing is lost, doubled or left to a hand."""

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from memoryhub.embedded_postgres import locks
from memoryhub.embedded_postgres.place import locate
from tests.commands.hub import Hub
from tests.faults.conftest import Note
from tests.faults.evidence import wrong
from tests.faults.hubs import SHORT, assert_sound, hub_asking
from tests.faults.parrot import Gate, Parrot
from tests.faults.test_whole_hub import HEALED_SECONDS, Talk, kill_database
from tests.faults.workers import children, wait_until
from tests.scratch import connect

pytestmark = pytest.mark.soak

POOL = 2
DEBOUNCE = int(SHORT["MEMORYHUB_DEBOUNCE_SECONDS"])
DATABASE_AWAY_SECONDS = 5.0
# Until a cluster that wedged is noticed, replaced, and its successor has begun.
PATIENCE = 90.0
# By sentinel, as they were when the cluster was new.
_monitor_and_pusher: dict[int, list[int]] = {}


@pytest.fixture(scope="module")
def parrot() -> Parrot:
    return Parrot()


@pytest.fixture(scope="module")
def hub(parrot: Parrot) -> Iterator[Hub]:
    with hub_asking(parrot, MEMORYHUB_LLM_CONCURRENCY=str(POOL)) as hub:
        yield hub


@pytest.fixture
def talk(hub: Hub, request: pytest.FixtureRequest) -> Iterator[Talk]:
    """A person who talks all the time until `end()`, once the hub is well."""
    talk = Talk(hub, request.node.name)
    wait_until(lambda: ready(talk), within=PATIENCE)
    # Nobody has killed any of its parts yet.
    sentinel(hub)
    yield talk
    if talk.is_alive():
        talk.end()


def ready(talk: Talk) -> bool:
    return bool(talk.read("/readyz")[0] == 200)


def unready(talk: Talk) -> bool:
    """Told as an outage: neither 200 nor silence."""
    return bool(talk.read("/readyz")[0] == 503)


def is_drained(talk: Talk) -> bool:
    status, detail = talk.read("/api/v1/users/detail")
    return bool(status == 200 and detail["pending"]["extraction"] == 0)


def sentinel(hub: Hub) -> int:
    """The cluster's first process; waits for one with all its parts."""
    found: list[int] = []

    def look() -> bool:
        found[:] = children(hub.pid("worker"))
        return bool(found) and len(children(found[0])) >= POOL + 2

    wait_until(look, within=PATIENCE)
    _monitor_and_pusher.setdefault(found[0], children(found[0])[POOL : POOL + 2])
    return found[0]


def parts(first: int) -> list[int]:
    """Of the cluster with this sentinel: its pool, then its monitor and its pusher, at whose end the cluster ends.

    django-q makes them in this order, but a pool process that replaced another one is younger than the two.
    """
    two = _monitor_and_pusher[first]
    return [process for process in children(first) if process not in two] + two


def told(hub: Hub, talk: Talk, fault: str, ended_at: float, note: Note, text: str = "") -> None:
    """After the fault, which ended at this monotonic second: all is there, once, in time, and the hub is well."""
    talk.end()
    wait_until(lambda: is_drained(talk), within=HEALED_SECONDS + DEBOUNCE)
    seconds = time.monotonic() - ended_at
    note(fault, seconds, f"until all of {2 * talk.rounds} turns were extracted {text}".strip())
    assert seconds < HEALED_SECONDS + DEBOUNCE
    assert set(talk.statuses) <= {202, 503}, "an outage is told as one"
    assert talk.read("/api/v1/users/detail")[1]["counts"]["turns"] == 2 * talk.rounds
    with connect(hub.home) as database:
        assert wrong(database, "I keep cat") == {}
    wait_until(lambda: ready(talk), within=HEALED_SECONDS)
    assert_sound(hub)


def goes_on(talk: Talk, rounds: int = 20) -> None:
    before = talk.rounds
    wait_until(lambda: talk.rounds > before + rounds, within=PATIENCE)


def test_killed_at_work(hub: Hub, talk: Talk, parrot: Parrot, note: Note, round_number: int) -> None:
    gate = Gate("cat 1 ")
    parrot.first = gate
    talk.start()
    assert gate.asked.wait(PATIENCE)
    os.kill(gate.asker, signal.SIGKILL)
    ended_at = time.monotonic()
    assert gate.gone.wait(5), "the wrong process was killed"
    goes_on(talk)
    told(hub, talk, "a worker killed in the middle of a call", ended_at, note)


@pytest.mark.parametrize("place", range(POOL + 2), ids=[*(f"pool-{n}" for n in range(POOL)), "monitor", "pusher"])
def test_killed_while_idle(hub: Hub, talk: Talk, place: int, note: Note, round_number: int) -> None:
    first = sentinel(hub)
    os.kill(parts(first)[place], signal.SIGKILL)
    ended_at = time.monotonic()
    talk.start()
    goes_on(talk)
    talk.end()
    wait_until(lambda: is_drained(talk), within=HEALED_SECONDS)
    replaced = "by another cluster" if sentinel(hub) != first else "by the same cluster"
    told(hub, talk, f"an idle process killed: place {place}", ended_at, note, replaced)


def test_wedged_while_idle(hub: Hub, talk: Talk, note: Note, round_number: int) -> None:
    """All that take work, so one of them with the queue's lock in hand; no work tells of it, /readyz does."""
    first = sentinel(hub)
    for process in parts(first)[:POOL]:
        os.kill(process, signal.SIGKILL)
    killed_at = time.monotonic()
    wait_until(lambda: unready(talk), within=HEALED_SECONDS)
    noticed = time.monotonic() - killed_at
    wait_until(lambda: ready(talk), within=HEALED_SECONDS)
    healed = time.monotonic() - killed_at
    assert healed < HEALED_SECONDS
    assert sentinel(hub) != first
    talk.start()
    goes_on(talk)
    told(
        hub,
        talk,
        "all idle workers killed: wedged",
        time.monotonic(),
        note,
        f"503 at {noticed:.0f}, 200 at {healed:.0f}",
    )


def test_the_whole_worker_is_killed(hub: Hub, talk: Talk, note: Note, round_number: int) -> None:
    """The command itself, as often as it comes back, until /readyz tells that nobody does the work."""
    talk.start()
    goes_on(talk)
    begun = time.monotonic()
    killed: set[int] = set()

    def kill() -> bool:
        worker = hub.pid("worker")
        if worker not in killed:
            os.kill(worker, signal.SIGKILL)
            killed.add(worker)
        return unready(talk)

    wait_until(kill, within=HEALED_SECONDS)
    ended_at = time.monotonic()
    text = f"after {len(killed)} kills in {ended_at - begun:.0f} s"
    wait_until(lambda: ready(talk), within=HEALED_SECONDS)
    told(hub, talk, "the whole worker killed until 503", ended_at, note, text)


def test_the_database_is_killed_and_away(hub: Hub, talk: Talk, note: Note, round_number: int) -> None:
    """Back after 5 seconds: the test holds the lock that whoever starts the server takes."""
    talk.start()
    goes_on(talk)
    with locks.exclusive(locate(hub.home).start_lock):
        kill_database(hub)
        away_at = time.monotonic()
        wait_until(lambda: unready(talk), within=DATABASE_AWAY_SECONDS)
        threading.Event().wait(away_at + DATABASE_AWAY_SECONDS - time.monotonic())
        assert unready(talk)
        assert 503 in talk.statuses
    ended_at = time.monotonic()
    wait_until(lambda: ready(talk), within=HEALED_SECONDS)
    ready_after = time.monotonic() - ended_at
    goes_on(talk)
    told(hub, talk, "the database killed, back after 5 s", ended_at, note, f"ready after {ready_after:.1f} s")
