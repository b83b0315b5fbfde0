"""Cases are run by whoever comes first: the task, the look for abandoned ones, and what a dead task leaves behind."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.models import OrmQ, Task
from django_q.tasks import async_task

from memories import tasks
from memories.exceptions import LeaseLost
from memories.forgetting import decay
from memories.jobs.pulse import ClusterPulse
from memories.models import AuditEvent, CaseState, EndpointState, EndUser, PrivacyCase
from memories.privacy import case_leases, erasing, exporting, registry, running
from memories.privacy.stores import unlinked
from memories.queue import leases
from tests import factories
from tests.factories import NOW
from tests.privacy.erased_world import Neighbours, erasure, stand_in

# No slice ends on a busy machine before its work.
AMPLE = 600.0


@pytest.fixture
def neighbours(monkeypatch: pytest.MonkeyPatch) -> Neighbours:
    return stand_in(monkeypatch)


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(external_id="anneke-7")


def queued() -> list[tuple[str, Any]]:
    return [(row.task["func"], row.task["args"]) for row in OrmQ.objects.order_by("pk")]


@pytest.mark.django_db(transaction=True)
class TestTheTask:
    def test_it_runs_the_case_and_others_that_wait(
        self, person: EndUser, neighbours: Neighbours, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(tasks, "SLICE_SECONDS", AMPLE)
        case, other = erasure(person), erasure(factories.end_user(person.tenant))
        assert tasks.run_case(str(case.pk)) == 1
        assert set(PrivacyCase.objects.values_list("state", flat=True)) == {CaseState.COMPLETED}
        assert (queued(), other.type) == ([], "erasure")

    def test_what_a_slice_leaves_is_another_task(
        self, person: EndUser, neighbours: Neighbours, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(tasks, "SLICE_SECONDS", 0)
        case = erasure(person)
        assert tasks.run_case(str(case.pk)) == 0
        assert queued() == [(case_leases.RUN_TASK, (str(case.pk),))]

    def test_an_error_says_its_place_and_nobodys_words(
        self, person: EndUser, neighbours: Neighbours, monkeypatch: Any, caplog: Any
    ) -> None:
        def full(*_: Any, **__: Any) -> None:
            raise OSError(28, "about anneke-7")

        monkeypatch.setattr(neighbours, "append", full)
        case = erasure(person)
        assert tasks.run_case(str(case.pk)) == 0
        case.refresh_from_db()
        assert (case.state, case.failure, case.lease_token) == ("running", "files", None)
        assert "OSError" in caplog.text
        assert "anneke" not in caplog.text
        # Not at once again.
        assert case_leases.claim(case.pk) is None

    def test_exports_are_made_by_their_own_module(self, person: EndUser, monkeypatch: Any) -> None:
        made: list[Any] = []

        def make(work: case_leases.ClaimedCase) -> None:
            case_leases.finish(work, now=NOW, verb="export")
            made.append(work.case.pk)

        monkeypatch.setattr(exporting, "make", make)
        case = factories.privacy_case(person, type="access", state="running")
        done = running.carry_out(case_id=case.pk, now=NOW)
        assert (done.state, done.completed_at, made) == (CaseState.COMPLETED, NOW, [case.pk])
        assert AuditEvent.objects.get(case_uuid=case.pk).verb == "export"


@pytest.mark.django_db
class TestTheLease:
    def test_an_export_that_is_being_made_of_somebody_erased_writes_nothing(self, person: EndUser) -> None:
        export = case_leases.claim(factories.privacy_case(person, type="access", state="running").pk)
        erasure_of_them = case_leases.claim(erasure(person).pk)
        assert export
        assert erasure_of_them
        leases.renew(export)
        next(erasing.steps(erasure_of_them, now=NOW))
        with pytest.raises(LeaseLost):
            leases.renew(export)
        leases.renew(erasure_of_them)

    def test_a_pass_puts_off_nobody_who_holds_it(self, person: EndUser) -> None:
        work = case_leases.claim(erasure(person).pk)
        assert work
        assert running.waiting() == []
        leases.release(work, attempts=0)
        assert running.waiting() == [work.case.pk]

    def test_who_waits_too_long_gets_the_case_as_it_is(self, person: EndUser) -> None:
        case = erasure(person)
        assert case_leases.claim(case.pk)
        assert running.carry_out(case_id=case.pk, now=NOW, wait_seconds=0).state == CaseState.RUNNING


@pytest.mark.django_db
class TestTheLook:
    def test_it_wakes_a_worker_for_what_nobody_works_on(self, person: EndUser) -> None:
        waiting, taken = erasure(person), erasure(factories.end_user(person.tenant))
        factories.privacy_case(person, state="scoped")
        assert case_leases.claim(taken.pk)
        pulse = ClusterPulse()
        pulse.wake_cases()
        assert queued() == [(case_leases.RUN_TASK, (str(waiting.pk),))]
        pulse.wake_cases()
        assert len(queued()) == 1

    def test_results_about_sessions_that_are_gone_go(self, person: EndUser) -> None:
        session = factories.session(person)
        given = {"name": "t", "started": NOW, "stopped": timezone.now(), "success": False}
        for key, function, arguments in (
            ("a", unlinked.SESSION_TASKS[0], (str(session.pk),)),
            ("b", unlinked.SESSION_TASKS[0], (str(person.pk),)),
            ("c", unlinked.SESSION_TASKS[1], ()),
            ("d", "memories.tasks.replan_decay", (str(person.pk),)),
        ):
            Task.objects.create(id=key, func=function, args=arguments, **given)
        assert unlinked.sweep_leftovers() == 1
        assert sorted(Task.objects.values_list("pk", flat=True)) == ["a", "c", "d"]

    @pytest.mark.parametrize("there", [True, False])
    def test_the_last_failure_of_a_session_that_is_gone_is_somebodys(self, person: EndUser, there: bool) -> None:
        for one in (factories.session(person).pk, person.pk):
            EndpointState.objects.all().delete()
            EndpointState.objects.create(last_session=one if there else person.tenant_id)
            unlinked.sweep_leftovers()
            assert EndpointState.objects.get().last_session == (one if there else unlinked.SOME_SESSION)

    def test_planning_that_stands_at_the_person_begins_anew(self, person: EndUser) -> None:
        tenant = person.tenant_id
        async_task(decay.REPLAN_TASK, str(tenant), str(person.pk), broker=ORM())
        [store] = [one for one in registry.all_stores() if one.model == "django_q.OrmQ"]
        assert store.erase(person) == 1
        assert queued() == [(decay.REPLAN_TASK, (str(tenant),))]
        assert store.verify(person) == 0


@pytest.mark.django_db
def test_a_pause_grows_with_the_failures(person: EndUser) -> None:
    case, pauses = erasure(person), []
    for _ in range(3):
        PrivacyCase.objects.filter(pk=case.pk).update(lease_until=None)
        work = case_leases.claim(case.pk)
        assert work
        assert not case_leases.retry_or_fail(work, "database")
        case.refresh_from_db()
        assert case.lease_until
        pauses.append(case.lease_until - timezone.now())
    assert [round(pause / timedelta(seconds=10)) for pause in pauses] == [1, 2, 3]
