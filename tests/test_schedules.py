"""The broker's sweep: due sessions are woken, once, in time, and an outage does not end it."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import InterfaceError, OperationalError, ProgrammingError
from django.db.models.functions import Now
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from memories import conf
from memories.conf import shared_keys
from memories.jobs import broker as broker_module
from memories.jobs.broker import COMPACT_TASK, EXTRACT_TASK, SweepingBroker
from memories.jobs.pulse import ClusterPulse
from memories.jobs.roll_call import TASK as ROLL_CALL
from memories.jobs.roll_call import RollCall
from memories.models import EndUser, IdempotencyRecord, Session, SessionQueue, WorkerHeartbeat, WorkingMemory
from memories.queue import queue_rows, session_queue
from tests import factories
from tests.model import install

DAY = timedelta(days=1)

SAID = (("user", "I live in Leiden"), ("assistant", "Noted"))


@pytest.fixture
def person(db: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> EndUser:
    install(settings, monkeypatch)
    return factories.end_user()


@pytest.fixture
def broker(db: None, monkeypatch: pytest.MonkeyPatch) -> SweepingBroker:
    monkeypatch.setattr(ClusterPulse, "start", lambda self: None)
    monkeypatch.setattr(broker_module, "OUTAGE_PAUSE_SECONDS", 0)
    monkeypatch.setattr(Conf, "POLL", 0)
    broker = SweepingBroker(list_key=Conf.CLUSTER_NAME)
    broker._next_call = float("inf")
    return broker


def due(person: EndUser) -> Session:
    return factories.session(person, SAID, flush=True)


def woken(func: str = EXTRACT_TASK) -> list[uuid.UUID]:
    tasks = [SignedPackage.loads(payload) for payload in OrmQ.objects.order_by("pk").values_list("payload", flat=True)]
    assert {task["func"] for task in tasks} <= {EXTRACT_TASK, COMPACT_TASK}
    return [uuid.UUID(task["args"][0]) for task in tasks if task["func"] == func]


def test_due_sessions_are_woken_oldest_first(broker: SweepingBroker, person: EndUser) -> None:
    second, first = due(person), due(person)
    SessionQueue.objects.filter(pk=first.pk).update(due_at=Now() - timedelta(minutes=1))
    broker.sweep()
    assert woken() == [first.pk, second.pk]


def test_wake_up_holds_an_id_and_nothing_else(broker: SweepingBroker, person: EndUser) -> None:
    session = due(person)
    broker.sweep()
    task = SignedPackage.loads(OrmQ.objects.get().payload)
    assert (task["func"], task["args"], task["kwargs"]) == (EXTRACT_TASK, (str(session.pk),), {})


def test_session_is_woken_once(broker: SweepingBroker, person: EndUser) -> None:
    due(person)
    broker.sweep()
    broker.sweep()
    assert len(woken()) == 1


def test_wake_up_that_got_lost_is_sent_again(broker: SweepingBroker, person: EndUser) -> None:
    due(person)
    broker.sweep()
    OrmQ.objects.all().delete()
    SessionQueue.objects.update(woken_at=Now() - queue_rows.REWAKE)
    broker.sweep()
    assert len(woken()) == 1


def test_what_is_not_due_sleeps_on(broker: SweepingBroker, person: EndUser) -> None:
    factories.session(person, SAID)
    claimed, parked = due(person), due(person)
    assert session_queue.claim(claimed.pk)
    SessionQueue.objects.filter(pk=parked.pk).update(parked_at=Now())
    awake = due(person)
    broker.sweep()
    assert woken() == [awake.pk]


def test_backlog_of_wake_ups_stays_small(broker: SweepingBroker, person: EndUser) -> None:
    room = broker_module.WAKE_UPS_PER_WORKER * Conf.WORKERS
    for _ in range(room + 2):
        due(person)
    assert broker.sweep()
    assert len(woken()) == room
    assert broker.sweep()
    assert len(woken()) == room
    OrmQ.objects.all().delete()
    assert not broker.sweep()
    assert len(woken()) == 2


def test_due_windows_are_woken_beside_the_sessions(broker: SweepingBroker, person: EndUser) -> None:
    room = broker_module.WAKE_UPS_PER_WORKER * Conf.WORKERS
    windows = [factories.session(person, SAID) for _ in range(room)]
    WorkingMemory.objects.update(due_at=Now() - timedelta(minutes=1))
    sessions = [due(person) for _ in range(room)]
    # However many sessions are due, some windows are looked at; and more than these when no session is.
    assert broker.sweep()
    few = len(woken(COMPACT_TASK))
    assert 0 < few < room
    assert woken() == [session.pk for session in sessions[: room - few]]
    SessionQueue.objects.update(due_at=None)
    OrmQ.objects.all().delete()
    assert broker.sweep(), "more windows are due"
    assert set(woken(COMPACT_TASK)) < {window.pk for window in windows}


def test_a_windows_wake_up_holds_an_id_and_nothing_else(broker: SweepingBroker, person: EndUser) -> None:
    session = factories.session(person, SAID)
    WorkingMemory.objects.update(due_at=Now())
    broker.sweep()
    task = SignedPackage.loads(OrmQ.objects.get().payload)
    assert (task["func"], task["args"], task["kwargs"]) == (COMPACT_TASK, (str(session.pk),), {})


def test_without_a_model_nobody_is_woken(broker: SweepingBroker, person: EndUser, settings: LazySettings) -> None:
    due(person)
    settings.MEMORYHUB_LLM = conf.LLM_OFF
    broker.sweep()
    assert woken() == []


def test_mark_and_wake_up_are_one_transaction(
    broker: SweepingBroker, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = due(person)
    with monkeypatch.context() as patch:
        patch.setattr(broker_module, "async_task", failing(OperationalError))
        with pytest.raises(OperationalError):
            broker.sweep()
    assert SessionQueue.objects.get(pk=session.pk).woken_at is None
    broker.sweep()
    assert woken() == [session.pk]


def test_dequeue_sweeps_first(broker: SweepingBroker, person: EndUser) -> None:
    session = due(person)
    ((_, payload),) = broker.dequeue() or []
    assert SignedPackage.loads(payload)["args"] == (str(session.pk),)


def test_dequeue_sweeps_while_the_queue_is_not_empty(broker: SweepingBroker, person: EndUser) -> None:
    for _ in range(3):
        due(person)
    broker.sweep()
    late = due(person)
    taken = broker.dequeue() or []
    assert len(taken) == 1
    assert late.pk in woken()


def test_dequeue_does_not_sweep_all_the_time(
    broker: SweepingBroker, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, sweeps = [100.0], []
    monkeypatch.setattr("memories.jobs.broker.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(broker, "sweep", lambda: sweeps.append(clock[0]))
    for moment in (100.0, 100.1, 100.4, 100.6, 100.7, 101.2):
        clock[0] = moment
        broker.dequeue()
    assert sweeps == [100.0, 100.6, 101.2]


@pytest.mark.parametrize("error", [OperationalError, InterfaceError, ProgrammingError])
def test_outage_does_not_end_the_pusher(
    broker: SweepingBroker, person: EndUser, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    due(person)
    # The real one would close the connection that holds the test's transaction.
    monkeypatch.setattr("memories.jobs.broker.connections.close_all", lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(broker, "sweep", failing(error))
        assert broker.dequeue() is None
    assert len(broker.dequeue() or []) == 1


def test_sign_of_life(db: None) -> None:
    pulse = ClusterPulse()
    pulse.beat()
    first = WorkerHeartbeat.objects.get()
    pulse.beat()
    again = WorkerHeartbeat.objects.get()
    assert again.started_at == first.started_at
    assert again.beat_at > first.beat_at
    assert timezone.now() - again.beat_at < timedelta(seconds=5)
    assert again.keys == shared_keys.fingerprints()


def test_a_host_whose_clock_is_an_hour_ahead_works_with_the_others(
    broker: SweepingBroker, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the one stamps is not in the future, nor long gone, for the other."""
    ahead = timezone.now() + timedelta(hours=1)
    behind = ahead - timedelta(hours=2)
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: behind)
        ClusterPulse().beat()
        patch.setattr(timezone, "now", lambda: ahead)
        due(person)
        broker.sweep()
        ClusterPulse().beat()
    assert WorkerHeartbeat.objects.filter(beat_at__lte=Now(), beat_at__gt=Now() - timedelta(seconds=15)).exists()
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: behind)
        assert len(broker._take() or []) == 1, "it is not to wait for an hour"
        patch.setattr(timezone, "now", lambda: ahead)
        assert not broker._take(), "another one has it"


def test_signs_of_clusters_long_gone_are_dropped(db: None) -> None:
    for name, age in (("old:1", timedelta(hours=2)), ("other:2", timedelta(minutes=1))):
        then = timezone.now() - age
        WorkerHeartbeat.objects.create(name=name, started_at=then, beat_at=then)
    ClusterPulse().beat()
    assert WorkerHeartbeat.objects.filter(name="other:2").exists()
    assert not WorkerHeartbeat.objects.filter(name="old:1").exists()


def failing(error: type[Exception]) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def test_the_pool_is_called_by_a_task_of_the_clusters_own(broker: SweepingBroker) -> None:
    broker._next_call = 0.0
    [(row, payload)] = broker.dequeue() or []
    assert (row, SignedPackage.loads(payload)["func"]) == (0, ROLL_CALL)
    assert not OrmQ.objects.exists(), "another cluster would answer it"
    # Its turn is over: work comes next.
    assert not broker.dequeue()


class TestRollCall:
    def test_somebody_idle_must_answer(self) -> None:
        call = RollCall()
        call.judge(anyone_idle=True, now=100.0)
        assert call.is_well(now=101.0)
        call.judge(anyone_idle=True, now=107.0)
        assert call.is_well(now=107.5)
        for now in (109.0, 112.0):
            call.judge(anyone_idle=True, now=now)
        assert not call.is_well(now=112.0)
        call.answer(now=113.0)
        call.judge(anyone_idle=True, now=113.5)
        assert call.is_well(now=114.0)

    def test_who_is_busy_need_not(self) -> None:
        call = RollCall()
        for now in (100.0, 200.0, 300.0):
            call.judge(anyone_idle=False, now=now)
            assert call.is_well(now=now)
        # Idle since now, not since the last answer.
        call.judge(anyone_idle=True, now=301.0)
        assert call.is_well(now=301.0)

    def test_a_sentinel_that_judges_no_more_is_not_well(self) -> None:
        call = RollCall()
        assert not call.is_well(now=100.0)
        call.judge(anyone_idle=False, now=100.0)
        assert call.is_well(now=102.0)
        assert not call.is_well(now=104.0)


@pytest.mark.django_db
def test_each_beat_takes_away_answers_kept_for_a_day() -> None:
    person = factories.end_user()
    young, old = (factories.idempotency_record(person, created_at=timezone.now() - age) for age in (DAY / 2, DAY))
    ClusterPulse().beat()
    assert IdempotencyRecord.objects.get() == young
    assert old != young
