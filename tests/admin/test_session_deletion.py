"""Deleting a session in the admin: what the page says goes, what goes, and who may."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from memories.models import AuditEvent, Fact, Operator, Session
from tests import factories
from tests.admin.pages import list_of, page_of, queries_of, text_of

SAID = [("user", "最近在准备马拉松"), ("assistant", "太好了"), ("user", "See you")]
MAY = ("view_session", "change_session", "delete_session")


@pytest.fixture
def session(db: None) -> Session:
    return factories.session(factories.end_user(display_name="华桂珍"), SAID, session_id="周末计划")


def resting(content: str, *sessions: Session, **over: Any) -> Fact:
    fact = factories.fact(sessions[0].end_user, content, **over)
    for session in sessions:
        factories.evidence(fact, session.turns.earliest("number"))
    return fact


def delete(client: Client, session: Session, **over: Any) -> Any:
    return client.post(page_of(session, "delete"), {"turns": session.turn_count, **over})


def test_the_page_says_what_goes_and_nothing_goes_yet(admin: Client, session: Session) -> None:
    other = factories.session(session.end_user, SAID)
    resting("Runs marathons", session)
    resting("Lives in Leiden", session, other)
    resting("Allergic to peanuts", session, binding=True)
    factories.episode(session)
    assert page_of(session, "delete") in text_of(admin.get(page_of(session)))
    page = text_of(admin.get(page_of(session, "delete")))
    assert '<dd id="turns-going">3</dd>' in page
    assert '<dd id="facts-going">1</dd>' in page
    assert '<dd id="episodes-going">1</dd>' in page
    assert "2 more facts are based on these turns and stay" in page
    assert "Runs marathons" in page
    assert "Lives in Leiden" not in page
    assert (Session.objects.count(), Fact.objects.count()) == (2, 3)


def test_it_goes_with_its_turns_and_facts_and_is_audited(
    admin: Client, administrator: Operator, session: Session
) -> None:
    kept = factories.session(session.end_user, SAID)
    resting("Runs marathons", session)
    resting("Lives in Leiden", session, kept)
    answer = delete(admin, session)
    assert (answer.status_code, answer.url) == (302, list_of(Session))
    assert (Session.objects.get(), Fact.objects.get().content) == (kept, "Lives in Leiden")
    event = AuditEvent.objects.get()
    assert (event.verb, event.object_id, event.actor_id) == ("delete", session.pk, str(administrator.pk))
    page = text_of(admin.get(list_of(Session)))
    assert f"Session {session.pk} is deleted" in page
    assert "周末计划" not in page


@pytest.mark.parametrize("turns", ["2", "", "x"])
def test_a_turn_that_came_since_must_be_seen_first(admin: Client, session: Session, turns: str) -> None:
    answer = delete(admin, session, turns=turns)
    assert answer.status_code == (412 if turns == "2" else 400)
    assert Session.objects.exists()
    assert '<dd id="turns-going">3</dd>' in text_of(answer)
    # What the page names now is taken.
    assert 'name="turns" value="3"' in text_of(answer)
    assert delete(admin, session).status_code == 302


@pytest.mark.parametrize("missing", [None, *MAY])
def test_who_may(staff_who_may: Callable[..., Client], session: Session, missing: str | None) -> None:
    client = staff_who_may(*(name for name in MAY if name != missing))
    if missing != "view_session":
        assert (page_of(session, "delete") in text_of(client.get(page_of(session)))) == (missing is None)
    # Django lets whoever may change a record see it.
    allowed = missing in (None, "view_session")
    assert client.get(page_of(session, "delete")).status_code == (200 if allowed else 403)
    assert delete(client, session).status_code == (302 if allowed else 403)
    assert Session.objects.exists() != allowed


def test_facts_are_named_to_those_who_may_see_them(staff_who_may: Callable[..., Client], session: Session) -> None:
    resting("Runs marathons", session)
    assert "Runs marathons" not in text_of(staff_who_may(*MAY).get(page_of(session, "delete")))
    assert "Runs marathons" in text_of(staff_who_may(*MAY, "view_fact").get(page_of(session, "delete")))


def test_one_that_is_gone_is_not_found(admin: Client, session: Session) -> None:
    delete(admin, session)
    assert delete(admin, session).status_code == 404
    assert admin.get(page_of(session, "delete")).status_code == 404


def test_the_page_takes_few_queries(admin: Client, session: Session) -> None:
    few = queries_of(admin, page_of(session, "delete"))
    for number in range(12):
        resting(f"Fact {number}", session)
    assert queries_of(admin, page_of(session, "delete")) <= few + 1
    assert "the newest 10 of 12" in text_of(admin.get(page_of(session, "delete")))


def test_when_it_ended_is_shown(admin: Client, session: Session) -> None:
    assert "<dt>Ended</dt><dd>–</dd>" in text_of(admin.get(page_of(session)))
    Session.objects.update(ended_at=factories.NOW)
    assert '<dt>Ended</dt><dd><time datetime="2026-11-03' in text_of(admin.get(page_of(session)))
    assert "2026-11-03T09:12" in text_of(admin.get(list_of(Session)))
