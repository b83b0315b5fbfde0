"""POST /sessions/flush."""

import pytest

from memories.models import SessionQueue
from tests import factories
from tests.api.conftest import Hub

pytestmark = pytest.mark.usefixtures("with_model")
NAMED = {"user_id": "小明", "session_id": "s1"}


def test_what_waits_is_due_at_once(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant, external_id="小明"), session_id="s1")
    before = hub.client.get(f"/sessions/{session.pk}").json()["extraction"]
    answer = hub.client.post("/sessions/flush", NAMED)
    assert answer.status_code == 202
    told = answer.json()
    assert (told["session"]["id"], told["session"]["user_id"]) == (str(session.pk), "小明")
    assert told["extraction"]["status"] == "pending"
    assert told["extraction"]["due_at"] < before["due_at"]
    assert SessionQueue.objects.due().filter(pk=session.pk).exists()
    assert hub.client.get(f"/sessions/{session.pk}").json()["ended_at"] is None


def test_with_nothing_waiting_it_stays_idle(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant, external_id="小明"), [("system", "…")], session_id="s1")
    answer = hub.client.post("/sessions/flush", NAMED)
    assert (answer.status_code, answer.json()["extraction"]["status"]) == (202, "idle")
    assert SessionQueue.objects.get(pk=session.pk).due_at is None


def test_it_revives_a_parked_batch(hub: Hub) -> None:
    factories.session(factories.end_user(hub.tenant, external_id="小明"), session_id="s1")
    SessionQueue.objects.update(parked_at=factories.NOW, due_at=None, failure="model_timeout", attempts=5)
    assert hub.client.post("/sessions/flush", NAMED).json()["extraction"]["status"] == "pending"
    assert SessionQueue.objects.get().attempts == 0


def test_a_session_of_another_agent_is_another_one(hub: Hub) -> None:
    factories.session(factories.end_user(hub.tenant, external_id="小明"), session_id="s1", agent_id="support")
    assert hub.client.post("/sessions/flush", NAMED).status_code == 404
    assert hub.client.post("/sessions/flush", {**NAMED, "agent_id": "Support"}).status_code == 202


@pytest.mark.parametrize("named", [NAMED, {**NAMED, "session_id": "s2"}])
def test_an_unknown_one_is_not_found_and_not_made(hub: Hub, named: dict[str, str]) -> None:
    factories.end_user(hub.tenant, external_id="小明")
    answer = hub.client.post("/sessions/flush", named)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert not SessionQueue.objects.exists()


@pytest.mark.parametrize("body", [{}, {"user_id": "u1"}, {**NAMED, "session_id": ""}, {**NAMED, "flush": True}])
def test_bad_input_is_refused(hub: Hub, body: dict[str, object]) -> None:
    assert hub.client.post("/sessions/flush", body).status_code == 400
