"""Nothing is extracted for a person under restriction; once it is lifted extraction goes on by itself."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from memories.exceptions import PersonRestricted
from memories.extraction import consolidation, gathering
from memories.models import EndUser, ExtractionRun, Fact, Session, SessionQueue
from memories.queue import backlog, circuit_breaker, queue_rows, rearming, session_queue
from tests import factories
from tests.database import PATIENCE, Gate, blocked, held, impatient
from tests.factories import NOW
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db
SAID = (("user", "I live in Leiden"), ("assistant", "Noted"))


def due(person: EndUser, *, ago: timedelta = timedelta(minutes=5)) -> Session:
    session = factories.session(person, SAID, flush=True)
    SessionQueue.objects.filter(pk=session.pk).update(due_at=Now() - ago)
    return session


def restrict(person: EndUser, *, lift: bool = False) -> None:
    EndUser.objects.filter(pk=person.pk).update(restricted_at=None if lift else NOW)


def consolidate(session: Session) -> ExtractionRun | None:
    return consolidation.consolidate(session_id=session.pk, now=NOW)


def swept(limit: int = 5) -> list[Any]:
    with transaction.atomic():
        return session_queue.due_sessions(limit)


def test_it_is_not_claimed_until_it_is_lifted(model: Model, person: EndUser) -> None:
    session = due(person)
    restrict(person)
    before = SessionQueue.objects.values().get()
    assert session_queue.claim(session.pk) is None
    assert SessionQueue.objects.values().get() == before
    restrict(person, lift=True)
    run = consolidate(session)
    assert run
    assert run.status == "committed"


def test_nobody_is_woken_for_it_and_others_are_not_kept(model: Model, person: EndUser) -> None:
    for _ in range(3):
        due(person)
    restrict(person)
    other = due(factories.end_user(person.tenant), ago=timedelta(seconds=1))
    assert swept(1) == [other.pk]
    restrict(person, lift=True)
    assert len(swept()) == 3


def test_it_is_not_overdue(model: Model, person: EndUser) -> None:
    session = due(person)
    assert backlog.overdue_seconds() > 290
    assert backlog.look(cluster="").first == (session.pk, 0)
    restrict(person)
    assert backlog.overdue_seconds() == 0
    assert backlog.look(cluster="").first is None
    other = due(factories.end_user(person.tenant), ago=timedelta(seconds=90))
    assert 89 < backlog.overdue_seconds() < 120
    assert backlog.look(cluster="").first == (other.pk, 0)


def test_what_came_while_off_takes_no_room(
    model: Model, person: EndUser, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rearming, "MOST_DUE", 1)
    due(person)
    restrict(person)
    session = factories.session(factories.end_user(person.tenant), SAID)
    SessionQueue.objects.filter(pk=session.pk).update(due_at=None)
    assert rearming.rearm() == 1


def test_restricted_before_the_call_the_model_is_not_asked(
    model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = due(person)
    gather = gathering.gather

    def meanwhile(**given: Any) -> Any:
        restrict(person)
        return gather(**given)

    with monkeypatch.context() as patch:
        patch.setattr(gathering, "gather", meanwhile)
        assert consolidate(session) is None
    assert model.prompts == []
    restrict(person, lift=True)
    assert consolidate(session)
    assert len(model.prompts) == 1


@pytest.mark.parametrize("restricted", [True, False])
def test_restricted_between_two_calls_the_second_is_not_made(model: Model, person: EndUser, restricted: bool) -> None:
    session = due(person)

    def answer() -> dict[str, Any]:
        if restricted:
            restrict(person)
        model.call_again()
        return {"new_facts": [candidate()]}

    model.answers.append(answer)
    run = consolidate(session)
    assert run
    assert (run.status, run.calls) == (("discarded", 1) if restricted else ("committed", 2))
    assert Fact.objects.count() == (0 if restricted else 1)


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.mark.parametrize("restricted", [True, False])
    def test_restricted_while_the_model_is_asked_nothing_is_written(
        self, person: EndUser, model: Model, restricted: bool
    ) -> None:
        session = due(person)
        gate = Gate()

        def answer() -> dict[str, Any]:
            gate.stop()
            return {"new_facts": [candidate()]}

        def act() -> None:
            if restricted:
                restrict(person)

        model.answers.append(answer)
        run = gate.meanwhile(lambda: consolidate(session), act)
        assert run
        queue = SessionQueue.objects.get()
        if not restricted:
            # The positive control.
            assert (run.status, Fact.objects.count(), queue.extracted_number) == ("committed", 1, 2)
            return
        assert (run.status, run.failure, Fact.objects.count()) == ("discarded", "restricted", 0)
        assert (queue.attempts, queue.lease_token, queue.parked_at, queue.extracted_number) == (0, None, None, 0)
        assert (swept(), circuit_breaker.free_calls()) == ([], None)
        restrict(person, lift=True)
        model.say(candidate())
        again = consolidate(session)
        assert again
        assert (again.status, again.attempt, Fact.objects.count()) == ("committed", 1, 1)

    def test_a_commit_waits_for_a_restriction_and_is_refused(self, person: EndUser, model: Model) -> None:
        claim = session_queue.claim(due(person).pk)
        assert claim

        def commit() -> None:
            with transaction.atomic():
                queue_rows.fence(claim)

        with held(lambda: restrict(person)), impatient():
            commits = blocked(commit)
        with pytest.raises(PersonRestricted):
            commits.result(PATIENCE)

    def test_a_restriction_waits_for_a_commit(self, person: EndUser, model: Model) -> None:
        claim = session_queue.claim(due(person).pk)
        assert claim
        with held(lambda: queue_rows.fence(claim)), impatient():
            restriction = blocked(lambda: restrict(person))
        restriction.result(PATIENCE)
        assert EndUser.objects.get().restricted_at == NOW
