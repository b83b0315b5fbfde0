"""Retention beside posts, extractions in flight, restriction, legal holds, erasure and itself: on connections of their
own."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from memories.curation.sessions import delete_session
from memories.exceptions import RetentionRunning
from memories.extraction import consolidation
from memories.models import (
    CaseState,
    DecayPass,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    FactEvidence,
    RetentionPass,
    Session,
    SessionQueue,
    Tenant,
    Turn,
)
from memories.privacy import retention
from memories.privacy.expiry import passes as retention_passes
from memories.privacy.expiry import turns
from tests import factories
from tests.database import PATIENCE, Gate, at_once, blocked, elsewhere, held
from tests.factories import COMMAND
from tests.model import Model, candidate
from tests.privacy.retained import age, numbers_of, passes, post, retain, sound, talk

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("ledger_apart")]


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(factories.tenant(keep_turns_days=30, keep_episodes_days=30))


@pytest.fixture
def session(model: Model, person: EndUser) -> Session:
    session = talk(model, person)
    age(session, 31)
    return session


Meanwhile = Callable[[Tenant, Callable[[], Any]], dict[str, int]]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """What a pass did, with something done after it has found a session, and before it locks any of it."""
    gate, plain = Gate(), turns._next_sessions

    def gated(*args: Any) -> list[Any]:
        ids = plain(*args)
        gate.stop()
        return ids

    monkeypatch.setattr(turns, "_next_sessions", gated)
    return lambda tenant, act: gate.meanwhile(lambda: retain(tenant), act)


def restrict(person: EndUser) -> None:
    EndUser.objects.filter(pk=person.pk).update(restricted_at=timezone.now())


def put_on_hold(person: EndUser) -> None:
    held = {"held_from": "received", "held_at": timezone.now(), "hold_review_on": timezone.now().date()}
    factories.privacy_case(person, state=CaseState.ON_HOLD, **held)


def erase(person: EndUser) -> None:
    EndUser.objects.filter(pk=person.pk).delete()


@pytest.mark.parametrize("act", [restrict, put_on_hold])
def test_who_is_passed_over_meanwhile_loses_nothing(
    session: Session, meanwhile: Meanwhile, act: Callable[[EndUser], None]
) -> None:
    assert meanwhile(session.tenant, lambda: act(session.end_user)) == {}
    assert len(numbers_of(session)) == 8
    assert Episode.objects.exists()


def test_without_any_of_it_it_goes(session: Session, meanwhile: Meanwhile) -> None:
    assert meanwhile(session.tenant, lambda: None) == {"turns": 8, "episodes": 1}


def test_somebody_erased_meanwhile_is_no_trouble(session: Session, meanwhile: Meanwhile) -> None:
    assert meanwhile(session.tenant, lambda: erase(session.end_user)) == {}


def test_a_session_that_goes_on_meanwhile_keeps_what_its_window_shows(session: Session, meanwhile: Meanwhile) -> None:
    done = meanwhile(session.tenant, lambda: post(session, "back again"))
    assert done == {"episodes": 1}
    assert numbers_of(session) == list(range(1, 10))
    sound()


def test_a_post_waits_for_the_step_and_goes_on_counting(session: Session) -> None:
    now = timezone.now()
    row = retention_passes.begin(tenant=session.tenant, trigger=DecayPass.Trigger.COMMAND, as_of=now, now=now)
    work = retention_passes.claim(row)
    assert work
    cutoff = retention_passes.cutoff(work.rules, "turns", as_of=now)
    assert cutoff
    with held(lambda: list(turns.delete(work, cutoff))):
        waiting = blocked(lambda: post(session, "back again"))
    waiting.result(PATIENCE)
    assert numbers_of(session) == [9]
    sound()


def test_a_post_finds_the_session_gone_and_begins_another(session: Session) -> None:
    for model in (Fact, Episode, ExtractionRun):
        model._default_manager.all().delete()
    with held(lambda: retain(session.tenant)):
        waiting = blocked(lambda: post(session, "back again"))
    waiting.result(PATIENCE)
    again = Session.objects.get()
    assert (again.pk == session.pk, again.external_id, numbers_of(again)) == (False, session.external_id, [1])
    sound()


@pytest.mark.parametrize("table", [SessionQueue, Session, EndUser])
def test_what_somebody_holds_is_left_to_the_next_pass(session: Session, table: Any) -> None:
    key = session.end_user_id if table is EndUser else session.pk
    with held(lambda: table.objects.select_for_update(no_key=True).get(pk=key)):
        done = elsewhere(lambda: retain(session.tenant))
    assert "turns" not in done
    assert retain(session.tenant)["turns"] == 8


def test_an_extraction_in_flight_commits_what_it_read(model: Model, session: Session) -> None:
    """Its turns are younger than the watermark, so none of them is deleted below it."""
    post(session, "I moved to Delft")
    age(session, 40)
    SessionQueue.objects.filter(pk=session.pk).update(due_at=Now())
    gate = Gate()

    def think() -> dict[str, Any]:
        gate.stop()
        return {"new_facts": [candidate("Lives in Delft", evidence=[9], quote="I moved to Delft")]}

    def delete() -> None:
        retain(session.tenant)
        assert 9 in numbers_of(session)

    model.answers.append(think)
    gate.meanwhile(lambda: consolidation.consolidate(session_id=session.pk, now=timezone.now()), delete)
    assert FactEvidence.objects.filter(turn__number=9, quote="I moved to Delft").exists()
    sound()


def test_a_deletion_of_the_session_and_a_pass_are_one_after_the_other(session: Session) -> None:
    def act(index: int) -> None:
        if index:
            retain(session.tenant)
        else:
            delete_session(session_id=session.pk, tenant=None, actor=COMMAND, now=timezone.now())

    assert at_once(2, act) == [None, None]
    assert not Session.objects.exists()
    assert not Turn.objects.exists()


def test_workers_at_once_delete_each_once(model: Model, person: EndUser) -> None:
    for _ in range(4):
        age(talk(model, person), 31)
    retention.run(tenant=person.tenant, actor=COMMAND, now=timezone.now())
    assert set(at_once(4, lambda _: retention.run_slice(now=timezone.now(), seconds=60.0))) == {False}
    [done] = passes()
    assert (done.counts["turns"], done.counts["episodes"]) == (32, 4)
    assert done.finished_at
    sound()


def test_passes_at_once_are_one(person: EndUser) -> None:
    def begin(_: int) -> RetentionPass:
        return retention.run(tenant=person.tenant, actor=COMMAND, now=timezone.now())

    outcomes = at_once(5, begin)
    assert sum(isinstance(one, RetentionPass) for one in outcomes) == 1
    assert sum(isinstance(one, RetentionRunning) for one in outcomes) == 4


def test_a_hold_waits_for_the_step(session: Session) -> None:
    """Whoever puts a case on hold locks the person: it is on hold before the step, or after."""

    def hold() -> None:
        with transaction.atomic():
            EndUser.objects.select_for_update(no_key=True).get(pk=session.end_user_id)
            put_on_hold(session.end_user)

    with held(lambda: retention_passes.lock_people([session.end_user_id])) as locked:
        assert locked == [session.end_user_id]
        waiting = blocked(hold)
    waiting.result(PATIENCE)
    assert list(retention_passes.people().filter(pk=session.end_user_id)) == []
