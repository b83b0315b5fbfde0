"""POST /sessions/end."""

from typing import Any

import pytest

from memories.models import Session, SessionQueue
from tests import factories
from tests.api.conftest import Hub

pytestmark = pytest.mark.usefixtures("with_model")
NAMED = {"user_id": "u1", "session_id": "s1"}
MORE = {**NAMED, "messages": [{"role": "user", "content": "One more thing", "external_id": "m2"}]}


@pytest.fixture
def session(hub: Hub) -> Session:
    return factories.session(factories.end_user(hub.tenant, external_id="u1"), session_id="s1")


def shown(hub: Hub) -> dict[str, Any]:
    [row] = hub.client.get("/sessions", user_id="u1").json()["results"]
    return dict(row)


def test_marks_the_session_and_flushes_it(hub: Hub, session: Session) -> None:
    assert shown(hub)["ended_at"] is None
    answer = hub.client.post("/sessions/end", NAMED)
    assert (answer.status_code, answer.json()["session"]["id"]) == (202, str(session.pk))
    assert answer.json()["extraction"]["status"] == "pending"
    assert SessionQueue.objects.due().exists()
    assert shown(hub)["ended_at"] == answer.json()["extraction"]["due_at"]


def test_ended_twice_it_keeps_its_first_end(hub: Hub, session: Session) -> None:
    hub.client.post("/sessions/end", NAMED)
    first = shown(hub)["ended_at"]
    assert hub.client.post("/sessions/end", NAMED).status_code == 202
    assert shown(hub)["ended_at"] == first


def test_a_new_turn_reopens_it_and_a_double_does_not(hub: Hub, session: Session) -> None:
    assert hub.client.post("/turns", MORE).json()["accepted"] == 1
    hub.client.post("/sessions/end", NAMED)
    assert hub.client.post("/turns", MORE).json()["duplicates"] == 1
    assert shown(hub)["ended_at"]
    hub.client.post("/turns", {**NAMED, "messages": [{"role": "user", "content": "还有一件事"}]})
    assert shown(hub)["ended_at"] is None


def test_an_unknown_one_is_not_found(hub: Hub, session: Session) -> None:
    assert hub.client.post("/sessions/end", {**NAMED, "session_id": "s2"}).status_code == 404
    assert shown(hub)["ended_at"] is None
