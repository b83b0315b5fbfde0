"""Who gets a thread next, and who is refused before: queues of keys take turns, and nobody waits beyond the bound."""

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial
from queue import Queue
from typing import Any

import pytest

from memories.exceptions import HubBusy
from memories.telemetry.log_fields import ANSWERED_TENANT
from memories.web import admission
from memories.web.admission import Admission, Ticket
from memories.web.threads import Threads
from tests.commands.served import said, served

PATIENCE_SECONDS = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.timers: list[Timer] = []

    def later(self, seconds: float, call: Callable[..., None], *arguments: Any) -> "Timer":
        timer = Timer(self.now + seconds, lambda: call(*arguments))
        self.timers.append(timer)
        return timer

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        for timer in [one for one in self.timers if one.at <= self.now]:
            self.timers.remove(timer)
            timer.fire()


class Timer:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self._call, self._is_off = at, call, False

    def cancel(self) -> None:
        self._is_off = True

    def fire(self) -> None:
        if not self._is_off:
            self._call()


class Desk:
    """An admission with jobs that end when the test says so; a job is a tuple with its name."""

    def __init__(self, clock: Clock, *, size: int, bound: float) -> None:
        self.clock = clock
        self.running: list[tuple[Any, ...]] = []
        self.refused: dict[str, HubBusy] = {}
        self.admission = Admission(size, self.running.append, bound=bound)

    def ask(self, name: str, caller: str, **over: Any) -> None:
        given = {"operation": "GET a", "door": "api"} | over
        job = (name,)
        ticket = Ticket(caller, **given)
        self.admission.ask(ticket, job, lambda error: self.refused.update({name: error}), self.clock.later)

    def end(self, name: str) -> None:
        [job] = [one for one in self.running if one[0] == name]
        self.running.remove(job)
        self.admission.ended(job)

    @property
    def names(self) -> list[str]:
        return [name for (name,) in self.running]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(admission, "monotonic", lambda: clock.now)
    return clock


def test_keys_take_turns_and_leave_threads_to_others(clock: Clock) -> None:
    desk = Desk(clock, size=8, bound=100.0)
    for number in range(20):
        desk.ask(f"a{number}", "a")
    assert desk.names == [f"a{number}" for number in range(5)]
    desk.ask("b0", "b")
    desk.ask("b1", "b")
    assert desk.names[5:] == ["b0", "b1"]
    # No thread is left but the one for what watches the hub.
    desk.ask("b2", "b")
    desk.ask("c0", "c")
    assert len(desk.names) == 7
    desk.ask("health", "pages", door="admin", is_vital=True)
    assert desk.names[7:] == ["health"]
    for ended in ("b0", "b1", "a0"):
        desk.end(ended)
    # One of each queue that waits, though a's requests were there long before.
    assert set(desk.names[5:]) >= {"b2", "c0"}
    for ended in [*desk.names]:
        desk.end(ended)
    while desk.names:
        desk.end(desk.names[0])
    assert desk.admission._queues == {}
    assert desk.admission._free == 8


def test_what_would_wait_too_long_is_refused_at_once_and_other_keys_are_not(clock: Clock) -> None:
    desk = Desk(clock, size=8, bound=5.0)
    desk.ask("known", "a")
    clock.pass_by(4.0)
    desk.end("known")
    # Each takes four seconds, as far as anybody knows: five at once, some after them, and then it is too long.
    most = 0
    with suppress(HubBusy):
        for most in range(100):
            desk.ask(f"a{most}", "a")
    assert 5 < most < 15
    with pytest.raises(HubBusy) as caught:
        desk.ask("one more", "a")
    assert 1 <= caught.value.seconds <= 5
    desk.ask("b0", "b")
    assert "b0" in desk.names
    # A quick operation of the same key waits in the same queue.
    with pytest.raises(HubBusy):
        desk.ask("quick", "a", operation="GET quick")
    # What was begun already is not refused: half of it is done.
    desk.ask("second", "a", is_admitted=True)
    assert "second" not in desk.names


def test_nobody_waits_beyond_the_bound_whatever_was_expected(clock: Clock) -> None:
    desk = Desk(clock, size=2, bound=5.0)
    for name in ("one", "two", "three", "four"):
        desk.ask(name, "a")
    assert (desk.names, desk.refused) == (["one", "two"], {})
    clock.pass_by(4.9)
    desk.end("one")
    assert desk.names == ["two", "three"]
    clock.pass_by(0.2)
    assert list(desk.refused) == ["four"]
    assert desk.refused["four"].seconds >= 1
    desk.end("two")
    desk.end("three")
    assert (desk.names, desk.admission._queues) == ([], {})


def test_without_a_bound_everybody_waits(clock: Clock) -> None:
    desk = Desk(clock, size=1, bound=0.0)
    desk.ask("known", "a")
    clock.pass_by(1_000.0)
    desk.end("known")
    for number in range(50):
        desk.ask(f"a{number}", "a")
    clock.pass_by(10_000.0)
    assert desk.refused == {}


def scope(path: str, **headers: str) -> dict[str, Any]:
    shown = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"path": path, "method": "GET", "headers": shown}


def test_a_caller_is_its_key_once_that_let_in(clock: Clock) -> None:
    desk = Desk(clock, size=8, bound=5.0).admission
    first = desk.ticket(scope("/api/v1/users", authorization="Bearer mh_abc_secret"))
    assert first.caller == "unknown" == desk.ticket(scope("/api/v1/users", authorization="Bearer mh_x_made")).caller
    desk.note_known(first)
    again = desk.ticket(scope("/api/v1/users", x_api_key="mh_abc_secret"))
    assert again.caller == first.key
    # What the API does not look at makes no other caller, and the gateway looks at its own header first.
    both = {"authorization": "Bearer mh_abc_secret", "x_memory_key": "mh_other_key"}
    assert desk.ticket(scope("/api/v1/users", **both)).caller == first.key
    assert desk.ticket(scope("/v1/chat/completions", **both)).caller == "unknown"
    assert desk.ticket(scope("/mcp", authorization="bearer mh_abc_secret")).caller == first.key
    for path in ("/healthz", "/readyz", "/metrics", "/admin/login/"):
        assert desk.ticket(scope(path)).is_vital
    assert not desk.ticket(scope("/admin/memories/")).is_vital
    # Nobody is known who showed no key.
    desk.note_known(desk.ticket(scope("/api/v1/users")))
    assert desk.ticket(scope("/api/v1/users")).caller == "unknown"


def test_objects_of_one_kind_are_one_operation(clock: Clock) -> None:
    desk = Desk(clock, size=8, bound=5.0).admission
    one, two = (
        desk.ticket(scope(f"/api/v1/facts/{pk}/history"))
        for pk in ("0190a5c4-0000-7000-8000-000000000001", "0190a5c4-0000-7000-8000-000000000002")
    )
    assert one.operation == two.operation == "GET api/v1/facts/*/history"
    assert desk.ticket(scope("/api/v1/facts")).operation != one.operation


def ask(port: int, path: str, key: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    response = connection.getresponse()
    found = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    connection.close()
    return found


class Slow:
    """An application one of whose addresses hangs until it may go on."""

    def __init__(self) -> None:
        self.go_on, self.hanging = threading.Event(), threading.Semaphore(0)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        environ[ANSWERED_TENANT] = "acme"
        if environ["PATH_INFO"] == "/api/v1/slow":
            self.hanging.release()
            assert self.go_on.wait(PATIENCE_SECONDS)
        return said(b"yes")(environ, start_response)


def test_a_key_with_a_deep_queue_keeps_nobody_else_waiting() -> None:
    """Over real connections: one key's requests hang, another's are answered, and so is what watches the hub."""
    slow, found = Slow(), Queue[Any]()
    bad, good = "mh_bad_key", "mh_good_key"
    with served(slow, threads=8, wait_seconds=0.5) as server:
        assert ask(server.port, "/api/v1/quick", bad)[0] == ask(server.port, "/api/v1/quick", good)[0] == 200
        for _ in range(12):
            threading.Thread(target=lambda: found.put(ask(server.port, "/api/v1/slow", bad)), daemon=True).start()
        for _ in range(5):
            assert slow.hanging.acquire(timeout=PATIENCE_SECONDS)
        assert ask(server.port, "/api/v1/quick", good)[0] == 200
        assert ask(server.port, "/healthz", "")[0] == 200
        refused = [found.get(timeout=PATIENCE_SECONDS) for _ in range(7)]
        slow.go_on.set()
        served_later = [found.get(timeout=PATIENCE_SECONDS)[0] for _ in range(5)]
    assert served_later == [200] * 5
    for status, headers, body in refused:
        problem = json.loads(body)
        assert (status, problem["code"], headers["content-type"]) == (503, "busy", "application/problem+json")
        assert int(headers["retry-after"]) >= 1
        assert problem["request_id"] == headers["x-request-id"]


class TestRelease:
    """A thread is free again however its request ends: the next one of the same key gets it."""

    @pytest.fixture
    def threads(self) -> Iterator[Threads]:
        threads = Threads(1, bound=PATIENCE_SECONDS)
        yield threads
        threads.end(PATIENCE_SECONDS)

    def run(self, scenario: Callable[[], Coroutine[Any, Any, None]], threads: Threads) -> None:
        async def asked() -> None:
            # Of a request; whatever it asks for afterwards is not refused any more.
            admission.asking.set(Ticket("a", "GET a", "api"))
            await asyncio.wait_for(scenario(), PATIENCE_SECONDS)

        asyncio.run(asked())
        assert threads.admission._free == 1
        assert threads.admission._running == []
        assert threads.admission._queues == {}

    def test_when_its_call_raises(self, threads: Threads) -> None:
        async def scenario() -> None:
            for error in (ZeroDivisionError, SystemExit, HubBusy):

                def fails(error: Any = error) -> None:
                    raise error(1)

                with pytest.raises(error):
                    await threads.run(fails)
                assert await threads.run(lambda: "next") == "next"

        self.run(scenario, threads)

    def test_when_its_client_goes_away(self, threads: Threads) -> None:
        begun, gate = threading.Event(), threading.Event()
        ran: list[str] = []

        def hangs() -> None:
            begun.set()
            assert gate.wait(PATIENCE_SECONDS)

        async def scenario() -> None:
            runs = asyncio.ensure_future(threads.run(hangs))
            assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
            gone = asyncio.ensure_future(threads.run(partial(ran.append, "gone")))
            stays = asyncio.ensure_future(threads.run(partial(ran.append, "stays")))
            # Both wait in the queue by now.
            await asyncio.sleep(0)
            assert len(threads.admission._queues["a"].waiting) == 2
            for one in (runs, gone):
                one.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await one
            # The call goes on in its thread, which is nobody else's before it ends.
            assert threads.admission._free == 0
            assert not stays.done()
            gate.set()
            await stays
            # What nobody waits for any more is not done.
            assert ran == ["stays"]

        self.run(scenario, threads)

    def test_when_its_client_goes_away_while_the_call_raises(self, threads: Threads) -> None:
        begun, gate = threading.Event(), threading.Event()

        def fails() -> None:
            begun.set()
            assert gate.wait(PATIENCE_SECONDS)
            raise ZeroDivisionError

        async def scenario() -> None:
            runs = asyncio.ensure_future(threads.run(fails))
            assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
            runs.cancel()
            gate.set()
            with pytest.raises(asyncio.CancelledError):
                await runs
            assert await threads.run(lambda: "next") == "next"

        self.run(scenario, threads)
