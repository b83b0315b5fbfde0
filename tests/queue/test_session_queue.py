"""The queue on the session's row: claims and their leases, failures, wake-ups, and what callers are told."""

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from memories.exceptions import LeaseLost
from memories.models import EndUser, Session, SessionQueue, Turn
from memories.queue import backlog, queue_rows, session_queue
from memories.queue.attempts import SessionLease
from memories.queue.retry_policy import RetryDecision, backoff
from memories.queue.session_queue import Claim, ExtractionStatus
from tests import factories
from tests.database import at_once, held
from tests.factories import NOW

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
ANSWERED = (("user", "I live in Leiden"), ("assistant", "Noted"))


@pytest.fixture(autouse=True)
def _time_enough_between_wake_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine two statements can be a second apart.
    monkeypatch.setattr(queue_rows, "REWAKE", timedelta(minutes=1))


@pytest.fixture(autouse=True)
def _with_a_model(settings: Any) -> None:
    settings.MEMORYHUB_LLM = "scripted"
    settings.MEMORYHUB_DEBOUNCE_SECONDS, settings.MEMORYHUB_MAX_WAIT_SECONDS = 30, 300
    settings.MEMORYHUB_LEASE_SECONDS, settings.MEMORYHUB_MAX_ATTEMPTS = 120, 5


def a_session(*said: tuple[str, str], due: bool = True) -> Session:
    talk = factories.session(factories.end_user(), said or ANSWERED)
    if due:
        change(talk, due_at=Now() - SECOND)
    return talk


def post(talk: Session, role: str = "user", text: str = "More", *, flush: bool = False, count: int = 1) -> None:
    named = {"session_id": talk.external_id, "agent_id": talk.agent_id, "flush": flush}
    factories.session(talk.end_user, [(role, text)] * count, **named)


def change(talk: Session, **values: Any) -> None:
    SessionQueue.objects.filter(pk=talk.pk).update(**values)


def row(talk: Session) -> SessionQueue:
    return SessionQueue.objects.with_clock().select_related("session__tenant").get(pk=talk.pk)


def waits(talk: Session) -> float:
    """Seconds from now to the due time; below zero when it is past."""
    queue = row(talk)
    assert queue.due_at
    return (queue.due_at - queue.clock).total_seconds()


def last_at(talk: Session) -> datetime:
    return talk.turns.latest("number").created_at


def claimed(talk: Session) -> Claim:
    claim = session_queue.claim(talk.pk)
    assert claim
    return claim


def finish(claim: Claim, number: int, *, now: datetime | None = None) -> None:
    with transaction.atomic():
        queue = queue_rows.fence(claim)
        session_queue.finish(claim, queue, extracted_number=number, now=now or row(claim.session).clock)


def postpone(claim: Claim, *, delay: float | None = None, failure: str = "model_timeout", park: bool = False) -> bool:
    return queue_rows.postpone(claim, RetryDecision(failure, delay=delay, park=park), now=NOW)


def end_lease(talk: Session) -> None:
    change(talk, lease_until=Now() - SECOND)


class TestClaim:
    def test_a_due_batch_is_claimed_with_its_attempt_counted(self) -> None:
        talk = a_session()
        claim = claimed(talk)
        queue = row(talk)
        assert claim.session == talk
        assert (claim.row.attempts, claim.row.extracted_number, claim.generation) == (1, 0, 1)
        assert (claim.token, claim.row.due_at) == (queue.lease_token, queue.due_at)
        assert queue.attempts == 1
        assert queue.lease_until
        assert 119 < (queue.lease_until - queue.clock).total_seconds() <= 120

    @pytest.mark.parametrize(
        "values",
        [
            {"due_at": None},
            {"due_at": Now() + SECOND * 60},
            {"lease_token": uuid.uuid4(), "lease_until": Now() + SECOND * 60},
            {"parked_at": NOW},
        ],
    )
    def test_what_is_not_due_taken_or_parked_is_not_claimed(self, values: dict[str, Any]) -> None:
        talk = a_session()
        change(talk, **values)
        before = SessionQueue.objects.values().get()
        assert session_queue.claim(talk.pk) is None
        assert SessionQueue.objects.values().get() == before

    def test_a_session_that_is_gone_is_not_claimed(self) -> None:
        assert session_queue.claim(uuid.uuid4()) is None

    def test_one_is_claimed_and_not_the_others(self) -> None:
        talk, other = a_session(), a_session()
        assert claimed(talk).session == talk
        assert row(other).lease_token is None
        assert session_queue.claim(talk.pk) is None

    def test_a_tenants_lease_counts(self) -> None:
        talk = a_session()
        factories.set_numbers(talk.tenant, lease_seconds=90)
        claim = claimed(talk)
        assert claim.rules.lease_seconds == 90
        queue = row(talk)
        assert queue.lease_until
        assert 89 < (queue.lease_until - queue.clock).total_seconds() <= 90

    def test_an_expired_lease_is_claimed_again_and_the_first_loses(self) -> None:
        talk = a_session()
        first = claimed(talk)
        end_lease(talk)
        second = claimed(talk)
        assert (first.row.attempts, second.row.attempts) == (1, 2)
        with pytest.raises(LeaseLost):
            queue_rows.renew(first)
        with pytest.raises(LeaseLost), transaction.atomic():
            queue_rows.fence(first)
        assert postpone(first) is False
        assert row(talk).lease_token == second.token
        queue_rows.renew(second)
        finish(second, 2)
        assert row(talk).extracted_number == 2

    def test_an_erasure_meanwhile_takes_the_claim_away(self) -> None:
        talk = a_session()
        claim = claimed(talk)
        EndUser.objects.update(generation=2)
        with pytest.raises(LeaseLost), transaction.atomic():
            queue_rows.fence(claim)

    def test_a_person_deleted_meanwhile_takes_the_claim_away(self) -> None:
        talk = a_session()
        claim = claimed(talk)
        talk.end_user.delete()
        with pytest.raises(LeaseLost), transaction.atomic():
            queue_rows.fence(claim)
        with pytest.raises(LeaseLost):
            queue_rows.renew(claim)
        assert postpone(claim) is False


class TestFinish:
    def test_everything_extracted_disarms_the_row(self) -> None:
        talk = a_session()
        finish(claimed(talk), 2)
        queue = row(talk)
        assert (queue.extracted_number, queue.due_at, queue.first_pending_at) == (2, None, None)
        assert (queue.attempts, queue.failure, queue.lease_token, queue.lease_until) == (0, "", None, None)
        assert (queue.pending_rounds, queue.pending_tokens, queue.pending_user) == (0, 0, False)

    def test_what_was_left_is_counted_anew_and_armed(self) -> None:
        talk = a_session(*ANSWERED, *ANSWERED)
        finish(claimed(talk), 2)
        queue = row(talk)
        assert (queue.pending_rounds, queue.pending_tokens) == (1, talk.token_count // 2)
        assert queue.first_pending_at == talk.turns.get(number=3).created_at
        assert queue.due_at == last_at(talk) + 30 * SECOND

    def test_a_turn_that_came_meanwhile_waits_for_its_reply(self) -> None:
        talk = a_session()
        claim = claimed(talk)
        post(talk, "user")
        assert session_queue.claim(talk.pk) is None
        finish(claim, 2)
        assert row(talk).due_at == last_at(talk) + 300 * SECOND
        post(talk, "assistant")
        assert row(talk).due_at == last_at(talk) + 30 * SECOND

    def test_a_turn_that_came_meanwhile_does_not_inherit_a_full_batch(self) -> None:
        talk = a_session(*(ANSWERED * 20))
        assert row(talk).pending_rounds == 20
        claim = claimed(talk)
        post(talk, "user")
        post(talk, "assistant")
        finish(claim, 40)
        queue = row(talk)
        assert (queue.pending_rounds, queue.due_at) == (1, last_at(talk) + 30 * SECOND)

    def test_of_a_long_backlog_as_much_is_read_as_fills_a_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(session_queue, "LOOKED_AT", 15)
        talk = a_session(*(ANSWERED * 60))
        claim = claimed(talk)
        with CaptureQueriesContext(connection) as seen:
            finish(claim, 40)
        # 20 rounds are 40 turns.
        assert len([one for one in seen.captured_queries if "LIMIT 15" in one["sql"]]) == 3
        assert "OFFSET" not in str(seen.captured_queries)
        assert (row(talk).extracted_number, row(talk).pending_rounds, waits(talk) <= 0) == (40, 22, True)

    def test_behind_a_long_row_of_tool_calls_the_user_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(session_queue, "LOOKED_AT", 3)
        talk = a_session()
        claim = claimed(talk)
        post(talk, "tool", count=7)
        finish(claim, 2)
        # Without anybody's words the watermark passes over them.
        assert (row(talk).extracted_number, row(talk).due_at) == (9, None)
        post(talk, "user")
        change(talk, due_at=Now() - SECOND)
        claim = claimed(talk)
        post(talk, "tool", count=7)
        post(talk, "user", "我的目标是学会中文。")
        finish(claim, 10)
        queue = row(talk)
        assert (queue.extracted_number, queue.pending_user, queue.signals) == (10, True, ["goal"])

    def test_a_flush_meanwhile_is_kept(self) -> None:
        talk = a_session()
        claim = claimed(talk)
        post(talk, "user", flush=True)
        post(talk, "user")
        finish(claim, 2)
        assert waits(talk) <= 0
        assert claimed(talk).row.attempts == 1

    def test_a_flush_from_before_the_claim_is_spent(self) -> None:
        talk = a_session(due=False)
        post(talk, "user", flush=True)
        claim = claimed(talk)
        post(talk, "user")
        finish(claim, 3)
        assert row(talk).due_at == last_at(talk) + 300 * SECOND

    def test_a_late_reply_alone_is_passed_over(self) -> None:
        talk = a_session(("user", "I live in Leiden"))
        claim = claimed(talk)
        post(talk, "assistant")
        finish(claim, 1)
        queue = row(talk)
        assert (queue.extracted_number, queue.due_at, queue.first_pending_at) == (2, None, None)
        assert not Turn.objects.filter(session=talk).after(queue.extracted_number).exists()

    @pytest.mark.parametrize("fails", [True, False])
    def test_a_wake_up_for_a_slow_worker_does_not_delay_the_next(self, fails: bool) -> None:
        talk = a_session(*ANSWERED, *ANSWERED)
        claim = claimed(talk)
        end_lease(talk)
        assert session_queue.due_sessions(5) == [talk.pk]
        if fails:
            postpone(claim)
        else:
            finish(claim, 2)
        change(talk, due_at=Now() - SECOND)
        assert session_queue.due_sessions(5) == [talk.pk]


class TestFailure:
    def test_back_off_grows_to_a_limit_with_jitter(self) -> None:
        for attempt, seconds in ((1, 4), (2, 12), (3, 36), (4, 108), (5, 120), (20, 120)):
            tries = [backoff(attempt) for _ in range(200)]
            assert seconds * 0.75 <= min(tries) < seconds * 0.9
            assert seconds * 1.1 < max(tries) <= seconds * 1.25

    def test_a_failed_batch_waits_and_is_free_again(self) -> None:
        talk = a_session()
        previous = 0.0
        for attempt in range(1, 5):
            claim = claimed(talk)
            assert claim.row.attempts == attempt
            assert postpone(claim) is False
            queue = row(talk)
            assert (queue.lease_token, queue.lease_until, queue.failure) == (None, None, "model_timeout")
            assert session_queue.claim(talk.pk) is None
            assert waits(talk) > previous
            previous = waits(talk)
            change(talk, due_at=Now() - SECOND)

    @pytest.mark.parametrize(("delay", "low", "high"), [(None, 2, 5), (0.0, 2, 5), (1.0, 2, 5), (90.0, 89, 90)])
    def test_the_endpoints_wish_to_wait_longer_is_respected(self, delay: float | None, low: float, high: float) -> None:
        talk = a_session()
        postpone(claimed(talk), delay=delay)
        assert low < waits(talk) <= high

    def test_the_last_attempt_parks(self) -> None:
        talk = a_session()
        change(talk, attempts=4)
        assert postpone(claimed(talk), failure="model_unavailable") is True
        queue = row(talk)
        assert (queue.parked_at, queue.due_at, queue.failure, queue.lease_token) == (
            NOW,
            None,
            "model_unavailable",
            None,
        )
        assert session_queue.claim(talk.pk) is None
        assert session_queue.due_sessions(5) == []

    def test_a_tenants_number_of_attempts_counts(self) -> None:
        talk = a_session()
        factories.set_numbers(talk.tenant, max_attempts=1)
        assert postpone(claimed(talk)) is True

    def test_new_turns_revive_a_parked_batch(self) -> None:
        talk = a_session()
        postpone(claimed(talk), park=True)
        post(talk, "assistant")
        queue = row(talk)
        assert (queue.parked_at, queue.attempts, queue.failure) == (None, 0, "")
        assert queue.due_at == last_at(talk) + 30 * SECOND
        change(talk, due_at=Now())
        assert claimed(talk).row.attempts == 1

    def test_new_turns_do_not_shorten_a_back_off(self) -> None:
        talk = a_session()
        postpone(claimed(talk), delay=200.0)
        due = row(talk).due_at
        post(talk, "user")
        post(talk, "assistant")
        assert row(talk).due_at == due
        assert row(talk).attempts == 1

    def test_a_flush_shortens_a_back_off(self) -> None:
        talk = a_session()
        postpone(claimed(talk), delay=200.0)
        post(talk, "user", flush=True)
        assert waits(talk) <= 0
        assert claimed(talk).row.attempts == 2

    def test_success_forgets_the_failures(self) -> None:
        talk = a_session()
        postpone(claimed(talk))
        change(talk, due_at=Now() - SECOND)
        finish(claimed(talk), 2)
        post(talk, "user")
        queue = row(talk)
        assert (queue.attempts, queue.failure) == (0, "")


class TestRevive:
    def revive(self, talk: Session, range_end: int = 2) -> bool:
        return session_queue.revive(session_id=talk.pk, range_end=range_end)

    def test_a_parked_batch_starts_over_at_once(self) -> None:
        talk = a_session()
        postpone(claimed(talk), park=True)
        assert self.revive(talk)
        assert claimed(talk).row.attempts == 1
        assert row(talk).failure == ""

    def test_a_batch_that_backs_off_need_not_wait(self) -> None:
        talk = a_session()
        postpone(claimed(talk), delay=200.0)
        change(talk, woken_at=Now())
        assert self.revive(talk)
        assert session_queue.due_sessions(5) == [talk.pk]
        assert claimed(talk).row.attempts == 1

    def test_nothing_to_revive(self) -> None:
        fresh, done, running = a_session(), a_session(), a_session()
        finish(claimed(done), 2)
        postpone(claimed(running))
        change(running, due_at=Now() - SECOND)
        claimed(running)
        before = list(SessionQueue.objects.order_by("pk").values())
        for talk in (fresh, done, running):
            assert not self.revive(talk)
        assert not session_queue.revive(session_id=uuid.uuid4(), range_end=2)
        assert list(SessionQueue.objects.order_by("pk").values()) == before

    def test_a_range_that_is_extracted_by_now_stays_so(self) -> None:
        talk = a_session(*ANSWERED, *ANSWERED)
        finish(claimed(talk), 2)
        change(talk, due_at=Now() - SECOND)
        postpone(claimed(talk), park=True)
        assert not self.revive(talk, range_end=2)
        assert self.revive(talk, range_end=4)


class TestSweep:
    def test_the_oldest_come_first_and_each_once(self) -> None:
        talks = [a_session() for _ in range(3)]
        for age, talk in enumerate(talks):
            change(talk, due_at=Now() - SECOND * (10 + age))
        newest, middle, oldest = (talk.pk for talk in talks)
        assert session_queue.due_sessions(2) == [oldest, middle]
        assert session_queue.due_sessions(2) == [newest]
        assert session_queue.due_sessions(2) == []
        assert all(row(talk).woken_at for talk in talks)

    def test_a_lost_wake_up_is_sent_again_later(self) -> None:
        talk = a_session()
        assert session_queue.due_sessions(5) == [talk.pk]
        change(talk, woken_at=Now() - queue_rows.REWAKE + SECOND * 60)
        assert session_queue.due_sessions(5) == []
        change(talk, woken_at=Now() - queue_rows.REWAKE - SECOND)
        assert session_queue.due_sessions(5) == [talk.pk]

    def test_only_what_can_be_claimed(self) -> None:
        talk, early, parked, running = (a_session() for _ in range(4))
        change(early, due_at=Now() + SECOND * 60)
        postpone(claimed(parked), park=True)
        claimed(running)
        assert session_queue.due_sessions(9) == [talk.pk]

    def test_a_claim_whose_worker_died_is_woken(self) -> None:
        talk = a_session()
        assert session_queue.due_sessions(5) == [talk.pk]
        claimed(talk)
        end_lease(talk)
        assert session_queue.due_sessions(5) == [talk.pk]

    def test_a_new_due_time_does_not_wait_for_an_old_wake_up(self) -> None:
        talk = a_session()
        assert session_queue.due_sessions(5) == [talk.pk]
        # The wake-up is on its way when a turn moves the due time; it will find nothing.
        post(talk, "user")
        assert session_queue.claim(talk.pk) is None
        post(talk, "user", flush=True)
        assert session_queue.due_sessions(5) == [talk.pk]

    def test_overdue_is_the_age_of_the_oldest_unclaimed(self) -> None:
        assert backlog.overdue_seconds() == 0
        old, older = a_session(), a_session()
        change(old, due_at=Now() - SECOND * 50)
        change(older, due_at=Now() - SECOND * 500)
        assert 500 <= backlog.overdue_seconds() < 510
        claimed(older)
        assert 50 <= backlog.overdue_seconds() < 60
        # Taken up again from the end of its lease on: since then it waits.
        end_lease(older)
        claimed(old)
        assert 0 < backlog.overdue_seconds() < 10

    def test_what_is_not_due_or_parked_is_not_overdue(self) -> None:
        early, parked, idle = a_session(), a_session(), a_session()
        change(early, due_at=Now() + SECOND * 60)
        postpone(claimed(parked), park=True)
        finish(claimed(idle), 2)
        assert backlog.overdue_seconds() == 0

    def test_switched_off_nothing_is_woken_or_overdue(self, settings: Any) -> None:
        talk = a_session()
        settings.MEMORYHUB_LLM = "off"
        assert session_queue.due_sessions(5) == []
        assert backlog.overdue_seconds() == 0
        assert row(talk).woken_at is None
        settings.MEMORYHUB_LLM = "scripted"
        assert backlog.overdue_seconds() >= 1
        assert session_queue.due_sessions(5) == [talk.pk]


class TestStatus:
    def status(self, talk: Session) -> ExtractionStatus:
        queue = row(talk)
        return session_queue.status_of(queue, now=queue.clock)

    def test_pending_tells_when_and_at_the_latest(self) -> None:
        talk = a_session(due=False)
        factories.set_numbers(talk.tenant, max_wait_seconds=60)
        queue = row(talk)
        assert queue.first_pending_at
        limit = queue.first_pending_at + 60 * SECOND
        assert self.status(talk) == ExtractionStatus("pending", due_at=queue.due_at, max_due_at=limit)

    def test_running_as_long_as_the_lease(self) -> None:
        talk = a_session()
        claimed(talk)
        assert self.status(talk).status == "running"
        end_lease(talk)
        assert self.status(talk).status == "pending"

    def test_parked_until_revived(self) -> None:
        talk = a_session()
        postpone(claimed(talk), park=True)
        assert self.status(talk) == ExtractionStatus("parked")
        post(talk, "user")
        assert self.status(talk).status == "pending"

    def test_idle_without_anything_to_do(self) -> None:
        talk = a_session()
        finish(claimed(talk), 2)
        assert self.status(talk) == ExtractionStatus("idle")
        assert session_queue.status_of(None, now=NOW) == ExtractionStatus("idle")

    def test_off_whatever_the_row_says(self, settings: Any) -> None:
        talk = a_session()
        settings.MEMORYHUB_LLM = "off"
        assert self.status(talk) == ExtractionStatus("off")
        assert session_queue.status_of(None, now=NOW) == ExtractionStatus("off")


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_of_many_claims_one_wins(self) -> None:
        talk = a_session()
        outcomes = at_once(8, lambda _: session_queue.claim(talk.pk))
        assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        [winner] = [outcome for outcome in outcomes if isinstance(outcome, SessionLease)]
        assert row(talk).lease_token == winner.token
        assert row(talk).attempts == 1

    def test_two_sweeps_share_the_work(self) -> None:
        talks = {a_session().pk for _ in range(6)}
        with held(lambda: session_queue.due_sessions(2)) as first:
            with transaction.atomic():
                second = session_queue.due_sessions(9)
            assert not set(first) & set(second)
            assert {*first, *second} == talks
        with transaction.atomic():
            assert session_queue.due_sessions(9) == []

    def test_a_sweep_that_fails_wakes_again(self) -> None:
        talk = a_session()
        with transaction.atomic():
            assert session_queue.due_sessions(9) == [talk.pk]
            transaction.set_rollback(True)
        with transaction.atomic():
            assert session_queue.due_sessions(9) == [talk.pk]

    def test_a_commit_and_a_second_claim_exclude_each_other(self) -> None:
        talk = a_session()
        first = claimed(talk)
        end_lease(talk)

        def commit() -> None:
            session_queue.finish(first, queue_rows.fence(first), extracted_number=2, now=NOW)

        with held(commit):
            # The lease is over, but its owner is writing: nobody may start the same batch.
            assert session_queue.claim(talk.pk) is None
        assert session_queue.claim(talk.pk) is None
        assert row(talk).extracted_number == 2

    def test_commits_of_one_person_come_one_after_the_other(self) -> None:
        person = factories.end_user()
        talks = [factories.session(person, ANSWERED, flush=True) for _ in range(4)]
        claims = [claimed(talk) for talk in talks]
        inside: list[int] = []
        seen: list[int] = []

        def commit(index: int) -> None:
            with transaction.atomic():
                queue = queue_rows.fence(claims[index])
                inside.append(index)
                seen.append(len(inside))
                session_queue.finish(claims[index], queue, extracted_number=2, now=NOW)
                inside.remove(index)

        assert at_once(4, commit) == [None] * 4
        assert seen == [1] * 4
        assert [row(talk).extracted_number for talk in talks] == [2] * 4
