"""An endpoint that is down as a whole: who may ask, and when."""

import uuid
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now

from memories.models import EndpointState
from memories.queue import circuit_breaker
from tests.database import at_once
from tests.each import each

LEASE = timedelta(seconds=60)


def fail(times: int, session: uuid.UUID | None = None, *, retry_after: float | None = None) -> list[bool]:
    return [circuit_breaker.count_failure(session or uuid.uuid4(), retry_after=retry_after) for _ in range(times)]


def pass_pause() -> None:
    past = Now() - timedelta(seconds=1)
    EndpointState.objects.exclude(until=None).update(until=past)
    EndpointState.objects.exclude(stated_until=None).update(stated_until=past)


def admit(_: int = 0) -> bool:
    with transaction.atomic():
        return circuit_breaker.admit(lease=LEASE)


@each(("failures", "seconds"), [(0, 0), (2, 0), (3, 1), (4, 2), (7, 16), (8, 30), (5_000, 30)])
def test_pause_after(failures: int, seconds: float) -> None:
    assert circuit_breaker.pause_after(failures) == seconds


@pytest.mark.django_db
class TestAlone:
    def test_all_may_ask_at_first(self) -> None:
        assert circuit_breaker.free_calls() is None
        assert [admit() for _ in range(3)] == [True] * 3

    def test_one_batch_alone_does_not_close_it(self) -> None:
        assert not any(fail(10, uuid.uuid4()))
        assert circuit_breaker.free_calls() is None

    def test_different_sessions_in_a_row_do(self) -> None:
        assert fail(4) == [False, False, True, True]
        assert (circuit_breaker.free_calls(), admit()) == (0, False)

    def test_an_answer_in_between_starts_the_count_anew(self) -> None:
        fail(2)
        circuit_breaker.close()
        assert fail(2) == [False, False]

    def test_after_the_pause_one_asks_and_its_answer_lets_in_all(self) -> None:
        fail(3)
        pass_pause()
        assert circuit_breaker.free_calls() == 1
        assert [admit(), admit()] == [True, False]
        assert circuit_breaker.free_calls() == 0
        circuit_breaker.close()
        assert [admit(), admit()] == [True, True]

    def test_after_the_pause_a_failure_of_whomever_makes_it_longer(self) -> None:
        session = uuid.uuid4()
        fail(3)
        pass_pause()
        assert admit()
        assert fail(1, session) == [True]
        assert fail(1, session) == [True]
        state = EndpointState.objects.with_clock().get()
        assert state.until
        assert 3 < (state.until - state.clock).total_seconds() <= 4

    def test_one_who_did_not_ask_gives_the_turn_back(self) -> None:
        fail(3)
        pass_pause()
        assert admit()
        circuit_breaker.release_probe()
        assert admit()

    def test_retry_after_holds_for_all_at_once_and_an_answer_does_not_end_it(self) -> None:
        assert fail(1, retry_after=20.0) == [False]
        assert (circuit_breaker.free_calls(), admit()) == (0, False)
        # A call that had been on its way.
        circuit_breaker.close()
        fail(1)
        assert (circuit_breaker.free_calls(), admit()) == (0, False)
        pass_pause()
        assert admit()

    def test_a_senseless_wait_is_cut(self) -> None:
        fail(1, retry_after=86_400.0)
        state = EndpointState.objects.with_clock().get()
        assert state.stated_until
        assert (state.stated_until - state.clock).total_seconds() <= 300


@pytest.mark.django_db(transaction=True)
def test_of_many_that_come_at_once_one_may_ask() -> None:
    fail(3)
    pass_pause()
    assert sorted(map(bool, at_once(8, admit))) == [False] * 7 + [True]
