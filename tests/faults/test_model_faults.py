"""A model endpoint that misbehaves, over real sockets and through the whole of an attempt.

Of each kind of fault one goes through here; tests/llm/test_openai_backend.py has what else is of that kind.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db.models.functions import Now

from memories import conf
from memories.extraction import consolidation
from memories.llm import client
from memories.llm.backends import openai as openai_backend
from memories.models import EndpointState, ExtractionRun, Fact, Session, SessionQueue
from memories.queue import circuit_breaker, session_queue
from tests import factories
from tests.factories import NOW
from tests.llm import endpoint as at
from tests.llm.endpoint import Endpoint, Handler, Response
from tests.llm.endpoint import running as endpoint_running
from tests.model import candidate

GOOD = at.says(json.dumps({"new_facts": [candidate("我住在莱顿")]}, ensure_ascii=False))
ROUND = (("user", "我住在莱顿"), ("assistant", "Noted"))
UNAVAILABLE, RATE_LIMITED, SLOW = at.fails(503), at.fails(429), at.hangs
INVALID = at.says('{"new_facts": "many"}')
REFUSED = {
    "refusal": (at.says(None, refusal="I cannot"), "model_refused"),
    "400": (at.fails(400), "model_misconfigured"),
}
# Only a slow endpoint is waited for to the end; with the others a busy machine has time to answer.
PATIENCE, IMPATIENCE = 10.0, 0.4
MISCONFIGURED = {"401": at.fails(401), "400": at.fails(400)}


@pytest.fixture
def endpoint(db: None, settings: LazySettings, request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    openai_backend._first_form.clear()
    with endpoint_running() as endpoint:
        settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "openai", endpoint.url, "key"
        settings.MEMORYHUB_LLM_TIMEOUT = IMPATIENCE if _is_slow(request.node) else PATIENCE
        # Else loading the library is part of the first call's time.
        client.preload()
        yield endpoint


def _is_slow(test: pytest.Function) -> bool:
    return hasattr(test, "callspec") and test.callspec.params.get("response") is SLOW


def a_session(rounds: int = 1) -> Session:
    return factories.session(factories.end_user(), ROUND * rounds, flush=True)


def attempt(session: Session) -> ExtractionRun:
    """The next attempt, as if its back-off had passed."""
    SessionQueue.objects.filter(pk=session.pk).update(due_at=Now() - timedelta(seconds=1))
    run = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert run
    run.refresh_from_db()
    return run


def row(session: Session) -> SessionQueue:
    return SessionQueue.objects.with_clock().get(pk=session.pk)


def wait_of(session: Session) -> float:
    """Seconds until the next attempt."""
    queue = row(session)
    assert queue.due_at
    return (queue.due_at - queue.clock).total_seconds()


def nothing_applied(session: Session) -> bool:
    return not Fact.objects.exists() and row(session).extracted_number == 0


@pytest.mark.parametrize(
    ("response", "code"),
    [(UNAVAILABLE, "model_unavailable"), (SLOW, "model_timeout"), (INVALID, "model_answer_invalid")],
    ids=["unavailable", "slow", "invalid"],
)
def test_a_fault_backs_off_and_then_the_batch_is_done_once(endpoint: Endpoint, response: Response, code: str) -> None:
    endpoint.responds(response, GOOD)
    session = a_session()
    run = attempt(session)
    assert (run.status, run.failure, run.calls) == ("failed", code, 1)
    assert nothing_applied(session)
    assert 2.5 < wait_of(session) <= 5
    assert attempt(session).status == "committed"
    assert Fact.objects.get().mentions == 1


def at_batches(response: Response) -> Response:
    """To a batch; a question without anybody's words is answered."""

    def respond(handler: Handler) -> None:
        (response if is_batch(handler.endpoint.requests[-1]) else at.says("OK"))(handler)

    return respond


def is_batch(request: dict[str, Any]) -> bool:
    return "<turn " in request["messages"][-1]["content"]


@pytest.mark.parametrize(
    "response", [UNAVAILABLE, INVALID, SLOW, RATE_LIMITED], ids=["unavailable", "invalid", "slow", "rate"]
)
def test_a_batch_that_fails_each_time_is_parked_with_its_reason(endpoint: Endpoint, response: Response) -> None:
    endpoint.responds(at_batches(response))
    session = a_session()
    runs = [attempt(session) for _ in range(conf.hub_rules().max_attempts)]
    assert [run.status for run in runs] == ["failed"] * 4 + ["parked"]
    assert row(session).failure == runs[-1].failure
    assert len(list(filter(is_batch, endpoint.requests))) == 5
    assert len(endpoint.requests) == sum(run.calls for run in runs) <= 6
    assert not circuit_breaker.to_probe(lease=timedelta(seconds=60))
    assert not circuit_breaker.is_open()
    assert nothing_applied(session)
    # By a person's word it starts over.
    endpoint.responds(GOOD)
    assert session_queue.revive(session_id=session.pk, range_end=2)
    assert attempt(session).status == "committed"


@pytest.mark.parametrize(("response", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_asking_again_cannot_change_is_parked_at_once(endpoint: Endpoint, response: Response, code: str) -> None:
    endpoint.responds(at_batches(response))
    session = a_session()
    run = attempt(session)
    assert (run.status, run.failure) == ("parked", code)
    assert run.calls == len(endpoint.requests) <= 4
    assert row(session).parked_at
    assert nothing_applied(session)


@pytest.mark.parametrize("response", [UNAVAILABLE, SLOW, RATE_LIMITED], ids=["unavailable", "slow", "rate"])
def test_what_an_outage_parked_goes_on_by_itself(endpoint: Endpoint, response: Response) -> None:
    endpoint.responds(response)
    session = a_session()
    runs = [attempt(session) for _ in range(conf.hub_rules().max_attempts)]
    # Its attempts are bounded; before the last one parks it, the endpoint is asked without anybody's words.
    assert [run.status for run in runs] == ["failed"] * 4 + ["parked"]
    assert [run.calls for run in runs] == [1, 1, 1, 1, 2]
    assert circuit_breaker.is_open()
    for _ in range(3):
        assert ask_in_time() is False
    assert len(list(filter(is_batch, endpoint.requests))) == 5
    assert row(session).parked_at
    endpoint.responds(GOOD)
    assert ask_in_time() is True
    assert not circuit_breaker.is_open()
    assert attempt(session).status == "committed"
    assert Fact.objects.get().mentions == 1


def ask_in_time() -> bool:
    """As the pulse does when the pause is over."""
    assert not circuit_breaker.to_probe(lease=timedelta(seconds=60))
    EndpointState.objects.update(until=Now(), stated_until=Now())
    assert circuit_breaker.to_probe(lease=timedelta(seconds=60))
    return circuit_breaker.probe()


@pytest.mark.parametrize("response", MISCONFIGURED.values(), ids=MISCONFIGURED.keys())
def test_a_wrong_key_name_or_address_parks_one_and_pauses_all(endpoint: Endpoint, response: Response) -> None:
    endpoint.responds(response)
    sessions = [a_session() for _ in range(3)]
    run = attempt(sessions[0])
    assert (run.status, run.failure) == ("parked", "model_misconfigured")
    assert run.calls == len(endpoint.requests) <= 4
    assert row(sessions[0]).failure == "model_misconfigured"
    assert session_queue.due_sessions(5) == []
    assert consolidation.consolidate(session_id=sessions[1].pk, now=NOW) is None
    # The settings are mended.
    endpoint.responds(GOOD)
    assert ask_in_time()
    assert row(sessions[0]).parked_at is None
    assert [attempt(session).status for session in sessions] == ["committed"] * 3


def test_batches_that_fail_by_themselves_do_not_hold_the_endpoint_closed(endpoint: Endpoint) -> None:
    endpoint.responds(at_batches(UNAVAILABLE))
    sessions = [a_session() for _ in range(3)]
    for session in sessions:
        attempt(session)
    assert circuit_breaker.is_open()
    for _ in range(5 * len(sessions)):
        EndpointState.objects.update(until=Now())
        for session in sessions:
            if not row(session).parked_at:
                attempt(session)
    assert all(row(session).parked_at for session in sessions)
    circuit_breaker.close()
    assert all(row(session).parked_at for session in sessions), "an answer brought them back, to fail for ever"
    # At most two attempts of each more than may be.
    assert ExtractionRun.objects.count() <= 7 * len(sessions)


def test_retry_after_is_waited_for_by_all(endpoint: Endpoint) -> None:
    endpoint.responds(at.fails(429, Retry_After="40"), GOOD)
    session, other = a_session(), a_session()
    assert attempt(session).failure == "model_rate_limited"
    assert 39 < wait_of(session) <= 40
    assert session_queue.due_sessions(5) == []
    assert consolidation.consolidate(session_id=other.pk, now=NOW) is None
    assert len(endpoint.requests) == 1
    EndpointState.objects.update(until=Now(), stated_until=Now())
    assert session_queue.due_sessions(5) == [other.pk]
    assert attempt(other).status == "committed"


def too_long_beyond(turns: int) -> Response:
    def respond(handler: Handler) -> None:
        told = handler.endpoint.requests[-1]["messages"][-1]["content"].count("<turn ")
        (at.says('{"new_facts": [', "length") if told > turns else GOOD)(handler)

    return respond


def test_a_batch_that_is_too_long_is_halved_until_it_fits(endpoint: Endpoint) -> None:
    endpoint.responds(too_long_beyond(2))
    session = a_session(rounds=6)
    runs = [attempt(session) for _ in range(3)]
    assert [(run.status, run.fed_turns) for run in runs] == [("failed", 12), ("failed", 6), ("committed", 2)]
    assert {run.attempt for run in runs} == {1}
    assert (row(session).batch_limit, row(session).extracted_number) == (None, 2)
    while row(session).extracted_number < 12:
        attempt(session)
    committed = ExtractionRun.objects.filter(session=session, status="committed").order_by("first_number")
    ranges = list(committed.values_list("first_number", "last_number"))
    assert [number for first, last in ranges for number in range(first, last + 1)] == list(range(1, 13))


@pytest.mark.parametrize("others_fail", [False, True])
def test_the_limit_of_a_halved_batch_outlives_other_failures(endpoint: Endpoint, others_fail: bool) -> None:
    endpoint.responds(too_long_beyond(2))
    session = a_session(rounds=6)
    attempt(session)
    endpoint.responds(UNAVAILABLE)
    for other in [a_session(), a_session()] if others_fail else ():
        attempt(other)
    assert attempt(session).failure == "model_unavailable"
    assert (row(session).batch_limit, row(session).attempts) == (6, 0 if others_fail else 1)


def test_a_single_turn_that_is_too_long_is_parked(endpoint: Endpoint) -> None:
    endpoint.responds(at.fails(400, "maximum context length exceeded"))
    session = a_session()
    assert [attempt(session).status, attempt(session).status] == ["failed", "parked"]
    assert (row(session).failure, row(session).batch_limit) == ("model_answer_truncated", 1)


@pytest.mark.parametrize("response", [UNAVAILABLE, SLOW, at.fails(401)], ids=["503", "hang", "401"])
def test_an_outage_parks_nobody_and_is_asked_by_one_at_a_time(endpoint: Endpoint, response: Response) -> None:
    endpoint.responds(response)
    sessions = [a_session() for _ in range(6)]
    for session in sessions:
        consolidation.consolidate(session_id=session.pk, now=NOW)
    begun = len(endpoint.requests)
    assert begun in (2, 3)
    for _ in range(6):
        # The pause is over: one of those that are due may ask, and fails.
        EndpointState.objects.update(until=Now())
        assert len(session_queue.due_sessions(8)) == 1
        for other in sessions:
            consolidation.consolidate(session_id=other.pk, now=NOW)
        SessionQueue.objects.update(woken_at=None)
    assert len(endpoint.requests) == begun + 6
    assert not SessionQueue.objects.filter(attempts__gt=1).exists()
    # A wrong key shows at the first batch; nobody else is parked for it.
    assert SessionQueue.objects.exclude(parked_at=None).count() == (begun == 2)
    endpoint.responds(GOOD)
    EndpointState.objects.update(until=Now())
    assert circuit_breaker.probe()
    for session in sessions:
        assert attempt(session).status == "committed"
