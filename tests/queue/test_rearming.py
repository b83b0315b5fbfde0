"""What came while extraction was switched off goes on by itself once it is switched on."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from memories import conf, invariants
from memories.extraction import consolidation
from memories.jobs import pulse
from memories.models import EndUser, Session, SessionQueue
from memories.queue import backlog, rearming
from tests import factories
from tests.database import elsewhere, held, statements
from tests.factories import NOW
from tests.model import Model

pytestmark = pytest.mark.django_db
SAID = (("user", "I live in Leiden"), ("assistant", "Noted"))
HOUR = timedelta(hours=1)


def stored_while_off(settings: Any, person: EndUser, *said: tuple[str, str], ago: timedelta = HOUR) -> Session:
    """A session whose turns came `ago`, while extraction was switched off."""
    mode, settings.MEMORYHUB_LLM = settings.MEMORYHUB_LLM, conf.LLM_OFF
    session = factories.session(person, said or SAID)
    settings.MEMORYHUB_LLM = mode
    SessionQueue.objects.filter(pk=session.pk).update(first_pending_at=Now() - ago)
    Session.objects.filter(pk=session.pk).update(last_turn_at=Now() - ago)
    return session


def armed() -> list[Any]:
    return list(SessionQueue.objects.exclude(due_at=None).order_by("due_at").values_list("pk", flat=True))


def broken() -> list[str]:
    return [found.name for found in invariants.check()]


def test_they_are_armed_and_extracted(
    settings: Any, model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real one would close the connection that holds the test's transaction.
    monkeypatch.setattr(pulse, "close_old_connections", lambda: None)
    session = stored_while_off(settings, person)
    assert (armed(), broken()) == ([], ["armed"])
    pulse.ClusterPulse().once()
    assert (armed(), broken()) == ([session.pk], [])
    run = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert run
    assert (run.status, run.last_number) == ("committed", 2)


def test_rules_do_as_well(settings: Any, person: EndUser) -> None:
    settings.MEMORYHUB_LLM = conf.LLM_RULES
    session = stored_while_off(settings, person)
    assert rearming.rearm() == 1
    assert armed() == [session.pk]


def test_while_it_is_off_nothing_is_armed(settings: Any, model: Model, person: EndUser) -> None:
    stored_while_off(settings, person)
    settings.MEMORYHUB_LLM = conf.LLM_OFF
    assert statements(rearming.rearm) == []
    assert (armed(), broken()) == ([], [])
    settings.MEMORYHUB_LLM = "scripted"
    assert rearming.rearm() == 1


def test_twice_changes_nothing_more(settings: Any, model: Model, person: EndUser) -> None:
    stored_while_off(settings, person)
    assert rearming.rearm() == 1
    before = list(SessionQueue.objects.values())
    assert rearming.rearm() == 0
    assert list(SessionQueue.objects.values()) == before


def test_nothing_to_do_is_one_look_at_an_index(settings: Any, model: Model, person: EndUser) -> None:
    factories.session(person, SAID)
    [look] = statements(rearming.rearm)
    with connection.cursor() as cursor:
        # With few rows any plan will do, by the statistics that other tests leave. What is left is the way to the rows.
        for one in ("seqscan", "nestloop", "mergejoin"):
            cursor.execute(f"SET LOCAL enable_{one} = off")
        cursor.execute(f"EXPLAIN {look}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "session_queue_unarmed_idx" in plan


def test_what_is_parked_extracted_or_no_persons_stays(settings: Any, model: Model, person: EndUser) -> None:
    parked, done = (stored_while_off(settings, person) for _ in range(2))
    stored_while_off(settings, person, ("assistant", "Hello?"), ("tool", "42"))
    SessionQueue.objects.filter(pk=parked.pk).update(parked_at=Now())
    SessionQueue.objects.filter(pk=done.pk).update(pending_user=False, extracted_number=2)
    control = stored_while_off(settings, person)
    assert rearming.rearm() == 1
    assert armed() == [control.pk]


def test_the_due_time_is_that_of_the_rules_and_never_past(settings: Any, model: Model, person: EndUser) -> None:
    settings.MEMORYHUB_DEBOUNCE_SECONDS = 30
    stored_while_off(settings, person, ago=HOUR)
    fresh = stored_while_off(settings, person, ago=timedelta(0))
    assert rearming.rearm() == 2
    assert backlog.overdue_seconds() < 5
    waits = dict(SessionQueue.objects.values_list("pk", Now() - SessionQueue._meta.get_field("due_at").cached_col))
    assert timedelta(seconds=-31) < waits.pop(fresh.pk) < timedelta(seconds=-20)
    assert all(timedelta(0) <= waited < timedelta(seconds=5) for waited in waits.values())


def test_as_many_as_may_be_due_at_once_longest_waiting_first(
    settings: Any, model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rearming, "MOST_DUE", 3)
    busy = factories.session(person, SAID, flush=True)
    sessions = [stored_while_off(settings, person, ago=HOUR * age) for age in (1, 4, 2, 3)]
    assert (rearming.rearm(), rearming.rearm()) == (2, 0)
    assert {*armed()} == {busy.pk, sessions[1].pk, sessions[3].pk}
    for session_id in armed():
        consolidation.consolidate(session_id=session_id, now=NOW)
    assert (rearming.rearm(), broken()) == (2, [])


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_two_workers_share_the_work(
        self, settings: Any, model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rearming, "MOST_DUE", 2)
        sessions = [stored_while_off(settings, person, ago=HOUR * age) for age in (4, 3, 2, 1)]
        with held(rearming.rearm) as theirs:
            # What they hold is passed over, not waited for.
            assert (theirs, elsewhere(rearming.rearm)) == (2, 2)
        assert {*armed()} == {session.pk for session in sessions}

    def test_one_who_stores_a_turn_is_not_waited_for(self, settings: Any, model: Model, person: EndUser) -> None:
        session = stored_while_off(settings, person)

        def post() -> None:
            factories.session(person, [("user", "More")], session_id=session.external_id)

        with held(post):
            assert rearming.rearm() == 0
        assert armed() == [session.pk]
