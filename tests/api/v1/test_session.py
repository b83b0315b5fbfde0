"""GET /sessions/{id}."""

import uuid

import pytest

from tests import factories
from tests.api.conftest import Hub


@pytest.mark.usefixtures("with_model")
def test_shows_the_session_with_its_extraction(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant, external_id="u1"), session_id="s1")
    row = hub.client.get(f"/sessions/{session.pk}").json()
    assert (row["id"], row["user_id"], row["session_id"], row["agent_id"]) == (str(session.pk), "u1", "s1", None)
    assert row["extraction"]["status"] == "pending"
    assert row["extraction"]["due_at"] <= row["extraction"]["max_due_at"]


def test_an_unknown_one_is_not_found(hub: Hub) -> None:
    assert hub.client.get(f"/sessions/{uuid.uuid4()}").json()["code"] == "not_found"
