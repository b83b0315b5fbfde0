"""GET /sessions."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memories.models import Session
from tests import factories
from tests.api.conftest import Hub


def test_lists_a_persons_sessions_newest_first(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="小明")
    old, new = (factories.session(person, agent_id="support") for _ in range(2))
    Session.objects.filter(pk=new.pk).update(created_at=old.created_at + timedelta(seconds=1))
    factories.session(factories.end_user(hub.tenant))
    answer = hub.client.get("/sessions", user_id="小明")
    assert [row["id"] for row in answer.json()["results"]] == [str(new.pk), str(old.pk)]
    row = answer.json()["results"][0]
    assert (row["session_id"], row["user_id"], row["agent_id"]) == (new.external_id, "小明", "support")
    assert (row["turn_count"], row["extraction"]["status"]) == (1, "off")


@pytest.mark.usefixtures("with_model")
def test_shows_where_extraction_stands(hub: Hub) -> None:
    person = factories.end_user(hub.tenant)
    session = factories.session(person)
    queue = session.queue
    rows = {}
    changes: dict[str, dict[str, Any]] = {
        "pending": {},
        "running": {"lease_until": session.last_turn_at + timedelta(days=9)},
        "parked": {"parked_at": session.last_turn_at},
        "idle": {"due_at": None, "parked_at": None},
    }
    for status, change in changes.items():
        for name, value in change.items():
            setattr(queue, name, value)
        queue.save()
        rows[status] = hub.client.get("/sessions", user_id=person.external_id).json()["results"][0]["extraction"][
            "status"
        ]
    assert rows == {status: status for status in rows}


def test_agents_are_told_apart(hub: Hub) -> None:
    person = factories.end_user(hub.tenant)
    factories.session(person)
    of_agent = factories.session(person, agent_id="support")
    answer = hub.client.get("/sessions", user_id=person.external_id, agent_id="SUPPORT")
    assert [row["id"] for row in answer.json()["results"]] == [str(of_agent.pk)]


def test_one_is_found_by_what_the_caller_calls_it(hub: Hub) -> None:
    person = factories.end_user(hub.tenant)
    factories.session(person)
    named = [factories.session(person, session_id="s-1", agent_id=agent) for agent in ("", "support")]
    factories.session(factories.end_user(hub.tenant), session_id="s-1")
    answer = hub.client.get("/sessions", user_id=person.external_id, session_id="s-1")
    assert {row["id"] for row in answer.json()["results"]} == {str(one.pk) for one in named}
    answer = hub.client.get("/sessions", user_id=person.external_id, session_id="S-1")
    assert answer.json()["results"] == []


def test_an_unknown_person_has_none(hub: Hub) -> None:
    answer = hub.client.get("/sessions", user_id="nobody")
    assert (answer.status_code, answer.json()) == (200, {"next": None, "previous": None, "results": []})


def test_the_person_must_be_named(hub: Hub) -> None:
    answer = hub.client.get("/sessions")
    assert answer.status_code == 400
    assert answer.json()["errors"][0] | {"detail": ""} == {"pointer": "user_id", "code": "required", "detail": ""}


@pytest.mark.usefixtures("with_model")
def test_costs_two_queries_however_long(hub: Hub, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    person = factories.end_user(hub.tenant)
    for _ in range(3):
        factories.session(person)
    hub.client.get("/sessions", user_id=person.external_id)
    with django_assert_num_queries(2):
        assert len(hub.client.get("/sessions", user_id=person.external_id).json()["results"]) == 3
