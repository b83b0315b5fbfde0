"""Tasks of the worker: slices of long work, one schedule, and errors that quote nobody."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.scheduler import scheduler
from django_q.signing import SignedPackage

from memories import tasks
from memories.forgetting import decay, decay_passes, stored_scores, trash
from memories.jobs import pulse
from memories.jobs.pulse import ClusterPulse, ensure_schedules
from memories.models import DecayPass, Fact
from tests import factories
from tests.database import at_once


def queued() -> list[tuple[str, tuple[Any, ...]]]:
    tasks_of = [SignedPackage.loads(payload) for payload in OrmQ.objects.values_list("payload", flat=True)]
    return [(task["func"], task["args"]) for task in tasks_of]


@pytest.mark.django_db
class TestForget:
    def test_it_begins_and_ends_the_passes_that_are_due(self) -> None:
        person = factories.end_user()
        factories.fact(person, now=timezone.now() - timedelta(days=1_000))
        person.tenant.decayed_on = timezone.now().date() - timedelta(days=2)
        person.tenant.save()
        hour = timezone.now().hour
        assert tasks.forget() == int(hour >= 3)
        if hour >= 3:
            assert DecayPass.objects.get().state == "done"
            assert Fact.objects.get().status == "trashed"
        assert queued() == []

    def test_what_a_slice_leaves_is_another_task(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tasks, "SLICE_SECONDS", -1.0)
        monkeypatch.setattr(trash, "STEP", 1)
        person = factories.end_user()
        for number in range(3):
            factories.fact(person, f"Number {number}", now=timezone.now() - timedelta(days=1_000))
        now = timezone.now()
        row = decay_passes.begin(tenant=person.tenant, trigger=DecayPass.Trigger.OPERATOR, as_of=now, now=now)
        slices = 0
        while slices == 0 or queued():
            OrmQ.objects.all().delete()
            person.tenant.__class__.objects.update(decayed_on=now.date() + timedelta(days=1))
            tasks.forget()
            slices += 1
            assert queued() in ([], [("memories.tasks.forget", ())])
        row.refresh_from_db()
        assert (row.state, row.counts["facts"]) == ("done", 3)
        assert slices > 3


@pytest.mark.django_db
class TestReplan:
    def test_it_is_asked_for_by_the_tenants_id_alone(self) -> None:
        tenant = factories.tenant()
        decay.replan(tenant_id=tenant.pk)
        assert queued() == [("memories.tasks.replan_decay", (str(tenant.pk),))]

    def test_it_goes_on_where_a_slice_ended(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tasks, "SLICE_SECONDS", -1.0)
        monkeypatch.setattr(stored_scores, "STEP", 1)
        tenant = factories.tenant()
        facts = [factories.fact(factories.end_user(tenant)) for _ in range(3)]
        right = {fact.forget_at for fact in facts}
        Fact.objects.update(forget_at=None)
        decay.replan(tenant_id=tenant.pk)
        while waiting := queued():
            [(_, args)] = waiting
            OrmQ.objects.all().delete()
            tasks.replan_decay(*args)
        assert set(Fact.objects.values_list("forget_at", flat=True)) == right

    def test_a_tenant_that_is_gone_is_no_error(self) -> None:
        tenant = factories.tenant()
        pk = str(tenant.pk)
        tenant.delete()
        assert tasks.replan_decay(pk) == 0
        assert queued() == []


def test_an_error_is_logged_without_its_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(**_: Any) -> int:
        raise ValueError("Likes tea")

    monkeypatch.setattr(decay, "begin_due", fail)
    with caplog.at_level(logging.ERROR):
        assert tasks.forget() == 0
    [record] = caplog.records
    assert "ValueError at fail" in record.getMessage()
    assert "tea" not in caplog.text


@pytest.mark.django_db(transaction=True)
class TestSchedule:
    def test_many_workers_make_one_row_of_each(self) -> None:
        assert at_once(6, lambda _: ensure_schedules()) == [None] * 6
        rows = {row.name: (row.func, row.schedule_type, row.minutes, row.repeats) for row in Schedule.objects.all()}
        assert rows == {name: (func, "I", 5, -1) for name, func in pulse.SCHEDULES.items()}
        assert Schedule.objects.count() == len(pulse.SCHEDULES)
        kept = set(Schedule.objects.values_list("pk", flat=True))
        ensure_schedules()
        assert set(Schedule.objects.values_list("pk", flat=True)) == kept

    def test_doubles_and_rows_of_an_older_hub_give_way(self) -> None:
        for minutes in (5, 60):
            Schedule.objects.create(name=pulse.FORGETTING, func="memories.tasks.gone", minutes=minutes)
        other = Schedule.objects.create(name="somebody else's", func="math.sqrt")
        ensure_schedules()
        row = Schedule.objects.get(name=pulse.FORGETTING)
        assert (row.func, row.minutes) == ("memories.tasks.forget", 5)
        assert Schedule.objects.filter(pk=other.pk).exists()

    def test_django_q_takes_the_row_once_however_many_look(self) -> None:
        ensure_schedules()
        Schedule.objects.update(next_run=timezone.now() - timedelta(days=3))
        at_once(4, lambda _: scheduler())
        # A worker that was away for days looks once, not once for each time it missed.
        assert sorted(queued()) == sorted((func, ()) for func in pulse.SCHEDULES.values())
        for row in Schedule.objects.all():
            assert timezone.now() < row.next_run <= timezone.now() + timedelta(minutes=5)

    def test_the_clusters_pulse_makes_them(self) -> None:
        ClusterPulse().once()
        assert set(Schedule.objects.values_list("name", flat=True)) == set(pulse.SCHEDULES)
