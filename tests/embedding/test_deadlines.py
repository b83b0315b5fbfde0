"""A time for each call to something outside, and a pause after one that failed."""

import threading

import pytest

from memories.embedding import deadlines
from memories.embedding.deadlines import Pause


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pause(clock: Clock) -> Pause:
    return Pause(clock)


def enter(pause: Pause) -> int:
    ticket = pause.enter()
    assert ticket is not None
    return ticket


def test_all_may_ask_while_it_works(pause: Pause) -> None:
    tickets = [enter(pause) for _ in range(3)]
    for ticket in tickets:
        pause.answered(ticket)
    assert enter(pause) == 0


def test_those_who_asked_together_count_once(pause: Pause, clock: Clock) -> None:
    for ticket in [enter(pause) for _ in range(8)]:
        pause.failed(ticket)
    clock.now = 0.99
    assert pause.enter() is None
    clock.now = 1.0
    assert enter(pause) == 1


def test_after_the_pause_one_asks_and_the_others_do_without(pause: Pause, clock: Clock) -> None:
    waits = []
    for _ in range(7):
        pause.failed(enter(pause))
        began = clock.now
        while pause.enter() is None:
            clock.now += 0.5
        waits.append(clock.now - began)
        assert pause.enter() is None
        # That one never tells: another may ask a pause later.
        while (again := pause.enter()) is None:
            clock.now += 0.5
        pause.failed(again)
        clock.now += 60
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (1, 30)


def test_an_answer_ends_it_but_not_one_from_before(pause: Pause, clock: Clock) -> None:
    slow, quick = enter(pause), enter(pause)
    pause.failed(quick)
    pause.answered(slow)
    assert pause.enter() is None
    clock.now = 1.0
    pause.answered(enter(pause))
    assert [enter(pause), enter(pause)] == [0, 0]


@pytest.mark.parametrize(("stated", "wait"), [(0.5, 1), (20, 20), (9_999, 300)])
def test_a_stated_wait_is_kept_within_reason(pause: Pause, clock: Clock, stated: float, wait: float) -> None:
    pause.failed(enter(pause), stated=stated)
    clock.now = wait - 0.1
    assert pause.enter() is None
    clock.now = wait
    assert enter(pause) == 1


def test_a_call_that_never_ends_is_given_up() -> None:
    gate = threading.Event()
    with pytest.raises(TimeoutError):
        deadlines.run(gate.wait, seconds=0.05)
    gate.set()
    assert deadlines.run(lambda: 7, seconds=10).result() == 7


def test_with_all_threads_taken_a_call_is_not_even_begun() -> None:
    gate, begun = threading.Event(), threading.Event()
    taken: list[None] = []

    def hold() -> None:
        taken.append(None)
        gate.wait()

    # On a busy machine a thread may start too late: then its call never begins, and is made again.
    while len(taken) < deadlines.CALLS_AT_ONCE:
        with pytest.raises(TimeoutError):
            deadlines.run(hold, seconds=0.01)
    with pytest.raises(TimeoutError):
        deadlines.run(begun.set, seconds=0.05)
    gate.set()
    assert deadlines.run(begun.is_set, seconds=10).result() is False


def test_what_a_call_raises_is_its_outcome() -> None:
    def fail() -> None:
        raise TimeoutError("its own")

    error = deadlines.run(fail, seconds=10).exception()
    assert str(error) == "its own"
