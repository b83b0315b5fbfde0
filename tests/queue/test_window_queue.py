"""The row of a working memory: when it is armed, by tables; claims, wake-ups, and what callers are told."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from memories import conf
from memories.models import EndpointState, EndUser, Session, SessionQueue, WorkingMemory
from memories.queue import backlog, circuit_breaker, queue_rows, rearming, session_queue, window_queue
from memories.queue.window_queue import WindowStatus
from tests import factories
from tests.database import blocked, elsewhere, held, impatient, statements
from tests.episodes.test_compaction import end, make_due, post, rounds, row_of
from tests.factories import NOW

pytestmark = pytest.mark.django_db
RULES = conf.Rules(debounce_seconds=30, max_wait_seconds=300, lease_seconds=120, max_attempts=5)
SECOND = timedelta(seconds=1)
IDLE = 1_800 * SECOND


@pytest.fixture(autouse=True)
def _with_a_model(settings: Any) -> None:
    settings.MEMORYHUB_LLM = "scripted"


@pytest.fixture
def session(db: None) -> Session:
    return factories.session(factories.end_user(), rounds(1))


def change(session: Session, **values: Any) -> None:
    WorkingMemory.objects.filter(pk=session.pk).update(**values)


ARMING = {
    # What the row says; the session's rounds and whether it has ended; the due time and since when it is over.
    "first turns": ({}, 1, False, IDLE, None),
    "steady": ({"due_at": NOW + 60 * SECOND}, 10, False, 60 * SECOND, None),
    "overdue, not looked at yet": ({"due_at": NOW - SECOND}, 2, False, -SECOND, None),
    "over": ({"due_at": NOW + 60 * SECOND}, 11, False, 5 * SECOND, 0 * SECOND),
    "over for a while": ({"due_at": NOW, "over_since": NOW - 30 * SECOND}, 11, False, 5 * SECOND, -30 * SECOND),
    "over for long": ({"due_at": NOW, "over_since": NOW - 118 * SECOND}, 12, False, 2 * SECOND, -118 * SECOND),
    "what left is not summed up": ({"due_at": NOW, "over_since": NOW}, 2, False, 5 * SECOND, 0 * SECOND),
    "within limits once some have left": ({"left_rounds": 5}, 15, False, IDLE, None),
    "ended": ({"due_at": NOW + 60 * SECOND}, 2, True, 0 * SECOND, None),
    "ended and over": ({}, 11, True, 0 * SECOND, 0 * SECOND),
    "backs off": ({"attempts": 1, "due_at": NOW + 60 * SECOND}, 11, True, 60 * SECOND, 0 * SECOND),
    "parked": ({"parked_at": NOW, "attempts": 5, "failure": "model_refused"}, 2, False, IDLE, None),
    "its worker died": ({"attempts": 1, "due_at": NOW, "lease_until": NOW}, 2, False, 0 * SECOND, None),
}


@pytest.mark.parametrize("case", ARMING.values(), ids=ARMING)
def test_arming(case: tuple[dict[str, Any], int, bool, timedelta, timedelta | None]) -> None:
    values, count, ended, due, over = case
    row = WorkingMemory(**values)
    talk = Session(turn_count=2 * count, round_count=count, last_turn_at=NOW, ended_at=NOW if ended else None)
    before = [getattr(row, name) for name in window_queue.ARMED]
    changed = window_queue.arm(row, talk, rules=RULES, now=NOW)
    assert (row.due_at, row.over_since) == (NOW + due, None if over is None else NOW + over)
    assert (row.parked_at, row.unarmed) == (None, False)
    assert changed is (before != [getattr(row, name) for name in window_queue.ARMED])


@pytest.mark.parametrize(
    ("values", "turns"),
    [
        # Whoever is at work looks at the session afterwards.
        ({"due_at": NOW, "attempts": 1, "lease_until": NOW + 60 * SECOND}, 30),
        # Ended again, with nothing new.
        ({"episode_number": 30}, 30),
    ],
)
def test_not_armed(values: dict[str, Any], turns: int) -> None:
    row = WorkingMemory(**values)
    talk = Session(turn_count=turns, round_count=15, last_turn_at=NOW, ended_at=NOW)
    assert not window_queue.arm(row, talk, rules=RULES, now=NOW)
    assert row.due_at == values.get("due_at")


def test_a_post_in_steady_state_writes_no_more_than_before(session: Session) -> None:
    due_at = row_of(session).due_at
    assert due_at == session.last_turn_at + IDLE
    [_, _, saved] = statements(lambda: post(session, rounds(1, first=2)))
    assert "memories_workingmemory" not in saved
    assert row_of(session).due_at == due_at
    # Over the limit each post says so, in the statement that it takes anyway.
    post(session, rounds(9, first=3))
    over_since = row_of(session).over_since
    [_, _, saved] = statements(lambda: post(session, rounds(1, first=12)))
    assert "memories_workingmemory" in saved
    row = row_of(session)
    assert over_since
    assert (row.over_since, row.due_at > over_since) == (over_since, True)  # type: ignore[operator]


def test_rounds_are_counted_in_the_posts_own_statement(session: Session) -> None:
    post(session, [("user", "One"), ("user", "Two"), ("assistant", "Three")])
    session.refresh_from_db()
    assert (session.round_count, session.turn_count) == (3, 5)


def test_what_can_be_claimed(session: Session) -> None:
    assert window_queue.claim(session.pk) is None
    end(session)
    claim = window_queue.claim(session.pk)
    assert claim
    assert (claim.row.attempts, claim.closing, claim.session) == (1, True, session)
    assert row_of(session).attempts == 1
    assert window_queue.claim(session.pk) is None
    change(session, lease_until=Now() - SECOND)
    assert window_queue.claim(session.pk)
    change(session, lease_until=None, parked_at=NOW)
    assert window_queue.claim(session.pk) is None


def test_while_the_endpoint_is_left_alone_nobody_claims(session: Session) -> None:
    for _ in range(circuit_breaker.FAILURES_TO_OPEN):
        circuit_breaker.count_failure(factories.session(factories.end_user()).pk, retry_after=None)
    # Longer than a busy machine takes.
    EndpointState.objects.update(until=Now() + 60 * SECOND)
    end(session)
    assert window_queue.due_sessions(5) == []
    assert window_queue.claim(session.pk) is None
    EndpointState.objects.update(until=Now() - SECOND)
    # One finds out, whichever kind of work it is at.
    assert window_queue.claim(session.pk)
    SessionQueue.objects.update(due_at=Now() - SECOND)
    assert session_queue.claim(session.pk) is None


def test_what_an_outage_parked_goes_on_when_the_endpoint_answers(session: Session) -> None:
    change(session, parked_at=NOW, failure="model_unavailable", attempts=5, due_at=None)
    other = factories.session(factories.end_user())
    change(other, parked_at=NOW, failure="model_refused", due_at=None)
    circuit_breaker.count_failure(session.pk, retry_after=None, is_confirmed=True)
    circuit_breaker.close()
    assert WorkingMemory.objects.due().get().pk == session.pk
    assert row_of(other).parked_at


def test_wake_ups_are_sent_once_and_again_when_they_get_lost(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_rows, "REWAKE", timedelta(minutes=1))
    end(session)
    assert window_queue.due_sessions(5) == [session.pk]
    assert window_queue.due_sessions(5) == []
    change(session, woken_at=Now() - timedelta(minutes=2))
    assert window_queue.due_sessions(5) == [session.pk]
    EndUser.objects.update(restricted_at=NOW)
    change(session, woken_at=None)
    assert window_queue.due_sessions(5) == []


def test_overdue_windows_are_seen_as_overdue_extraction_is(session: Session, settings: Any) -> None:
    SessionQueue.objects.update(due_at=None)
    assert (backlog.overdue_seconds(), backlog.look(cluster="x").first) == (0.0, None)
    change(session, due_at=Now() - 90 * SECOND)
    assert 89 < backlog.overdue_seconds() < 120
    look = backlog.look(cluster="x")
    assert (look.first, look.waited > 89, look.claimed) == ((session.pk, 0), True, 0)
    # What has waited longest is first in line, whatever it is.
    SessionQueue.objects.update(due_at=Now() - 200 * SECOND, attempts=3)
    assert backlog.look(cluster="x").first == (session.pk, 3)
    change(session, lease_until=Now() + 60 * SECOND)
    SessionQueue.objects.update(due_at=None)
    look = backlog.look(cluster="x")
    assert (look.first, look.claimed) == (None, 1)
    change(session, lease_until=None, parked_at=NOW)
    assert backlog.overdue_seconds() == 0.0
    change(session, parked_at=None)
    settings.MEMORYHUB_LLM = conf.LLM_OFF
    assert backlog.overdue_seconds() == 0.0


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({}, "idle"),
        ({"due_at": NOW + SECOND}, "idle"),
        ({"due_at": NOW}, "pending"),
        ({"due_at": NOW + SECOND, "over_since": NOW}, "pending"),
        ({"due_at": NOW + SECOND, "failure": "model_timeout"}, "pending"),
        ({"due_at": NOW, "lease_until": NOW + SECOND}, "running"),
        ({"parked_at": NOW, "failure": "model_refused"}, "parked"),
    ],
)
def test_status(values: dict[str, Any], status: str, settings: Any) -> None:
    row = WorkingMemory(**values)
    assert window_queue.status_of(row, now=NOW) == WindowStatus(status, values.get("due_at"))
    settings.MEMORYHUB_LLM = conf.LLM_OFF
    assert window_queue.status_of(row, now=NOW) == WindowStatus("off")


class TestSwitchedOff:
    @pytest.fixture
    def session(self, db: None, settings: Any) -> Session:
        settings.MEMORYHUB_LLM = conf.LLM_OFF
        session = factories.session(factories.end_user(), rounds(1))
        post(session, rounds(1, first=2))
        return session

    def test_nothing_is_armed_and_it_is_noted_once(self, session: Session) -> None:
        row = row_of(session)
        assert (row.due_at, row.unarmed) == (None, True)
        saved = statements(lambda: post(session, rounds(1, first=3)))[-1]
        assert "memories_workingmemory" not in saved

    def test_later_it_is_armed(self, session: Session, settings: Any) -> None:
        assert rearming.rearm_windows() == 0
        settings.MEMORYHUB_LLM = conf.LLM_RULES
        assert rearming.rearm_windows() == 1
        session.refresh_from_db()
        assert (row_of(session).due_at, row_of(session).unarmed) == (session.last_turn_at + IDLE, False)
        assert rearming.rearm_windows() == 0

    def test_long_ago_it_is_due_now_and_not_overdue(self, session: Session, settings: Any) -> None:
        Session.objects.update(last_turn_at=NOW)
        settings.MEMORYHUB_LLM = conf.LLM_RULES
        assert rearming.rearm_windows() == 1
        assert backlog.overdue_seconds() < 5
        assert WorkingMemory.objects.due().exists()

    def test_as_many_as_may_be_due_at_once(
        self, session: Session, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rearming, "MOST_DUE", 2)
        for _ in range(2):
            factories.session(factories.end_user(), rounds(1))
        Session.objects.update(last_turn_at=NOW)
        settings.MEMORYHUB_LLM = conf.LLM_RULES
        assert [rearming.rearm_windows() for _ in range(2)] == [2, 0]
        WorkingMemory.objects.update(due_at=None)
        assert rearming.rearm_windows() == 1

    def test_a_new_turn_arms_it_too(self, session: Session, settings: Any) -> None:
        settings.MEMORYHUB_LLM = conf.LLM_RULES
        post(session, rounds(1, first=3))
        assert row_of(session).due_at
        assert not row_of(session).unarmed


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_a_post_that_waited_for_the_commit_sees_what_it_wrote(self) -> None:
        """What was finished meanwhile is armed again by the turn that came."""
        session = factories.session(factories.end_user(), rounds(2))
        end(session)
        claim = window_queue.claim(session.pk)
        assert claim

        def finish() -> None:
            row = window_queue.lock_claimed(claim)
            done = window_queue.Compacted(None, None, "", "", 4, has_episode=False, is_all=True)
            window_queue.finish(claim, row, done, now=NOW)

        with held(finish):
            posting = blocked(lambda: post(session, rounds(1, first=3)))
        posting.result(30)
        row, talk = row_of(session), Session.objects.get()
        assert (row.due_at, row.episode_number) == (talk.last_turn_at + IDLE, 4)

    def test_a_claim_passes_over_a_session_that_is_posted_to(self) -> None:
        session = factories.session(factories.end_user(), rounds(2))
        make_due(session)
        with held(lambda: post(session, rounds(1, first=3))), impatient():
            assert window_queue.claim(session.pk) is None
        Session.objects.update(ended_at=NOW)
        assert elsewhere(lambda: window_queue.claim(session.pk))

    def test_the_sweep_passes_over_what_somebody_holds(self) -> None:
        session = factories.session(factories.end_user(), rounds(2))
        make_due(session)
        with held(lambda: WorkingMemory.objects.select_for_update().get()), transaction.atomic():
            assert window_queue.due_sessions(5) == []
        with transaction.atomic():
            assert window_queue.due_sessions(5) == [session.pk]
