"""GET /sessions/{id}."""

import pytest

from memories.models import WorkingMemory
from tests import factories
from tests.api.conftest import Hub


@pytest.mark.usefixtures("with_model")
def test_shows_the_session_with_its_extraction(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant, external_id="u1"), session_id="s1")
    row = hub.client.get(f"/sessions/{session.pk}").json()
    assert (row["id"], row["user_id"], row["session_id"], row["agent_id"]) == (str(session.pk), "u1", "s1", None)
    assert row["extraction"]["status"] == "pending"
    assert row["extraction"]["due_at"] <= row["extraction"]["max_due_at"]


@pytest.mark.usefixtures("with_model")
def test_shows_the_window_and_the_running_summary(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant), [("user", "One"), ("assistant", "Two")] * 4)
    row = hub.client.get(f"/sessions/{session.pk}").json()
    assert (row["summary"], row["working_memory"]["status"]) == ("", "idle")
    assert row["working_memory"]["due_at"] > row["last_turn_at"]
    whole = {"first_number": 1, "turn_count": 8, "token_count": row["token_count"], "rounds": 4}
    assert row["window"] == {**whole, "max_tokens": 8_000, "max_rounds": 10}
    state = {"summary": "They met.", "left_number": 2, "left_tokens": 2, "left_rounds": 1, "parked_at": factories.NOW}
    WorkingMemory.objects.update(**state, due_at=None, failure="model_refused")
    row = hub.client.get(f"/sessions/{session.pk}").json()
    assert (row["summary"], row["working_memory"]) == ("They met.", {"status": "parked", "due_at": None})
    rest = {"first_number": 3, "turn_count": 6, "token_count": row["token_count"] - 2, "rounds": 3}
    assert row["window"] == {**rest, "max_tokens": 8_000, "max_rounds": 10}


def test_a_list_shows_neither(hub: Hub) -> None:
    factories.session(factories.end_user(hub.tenant, external_id="u1"))
    [row] = hub.client.get("/sessions?user_id=u1").json()["results"]
    assert not {"summary", "window", "working_memory"} & row.keys()
