"""DELETE /turns/{id} and POST /turns/{id}/redact."""

from typing import Any

import pytest

from memories.curation.access.keys import Binding
from memories.models import Session
from tests import factories
from tests.api.conftest import Hub, hub_of

SECRET = "My neighbour is called Wilhelmina"
MESSAGES = [{"role": "user", "content": SECRET, "external_id": "m1"}, {"role": "user", "content": "I drink tea"}]


@pytest.fixture
def turns(hub: Hub) -> list[str]:
    body = {"user_id": "u1", "session_id": "s1", "messages": MESSAGES}
    return [turn["id"] for turn in hub.client.post("/turns", body).json()["turns"]]


def everything(hub: Hub) -> str:
    """What any answer tells of the person."""
    session = Session.objects.get().pk
    asked = {"user_id": "u1", "query": "Who is Wilhelmina?"}
    include = {"include": ["profile", "facts", "episodes", "turns", "unextracted", "working_memory"]}
    answers = [
        hub.client.post("/context", {**asked, "session_id": "s1", **include}),
        hub.client.post("/search", {**asked, "kinds": ["fact", "turn", "episode", "session"]}),
        hub.client.get(f"/sessions/{session}/turns"),
        hub.client.get(f"/sessions/{session}"),
    ]
    assert [answer.status_code for answer in answers] == [200] * 4
    return "".join(str(answer.json()) for answer in answers)


@pytest.mark.parametrize("body", [None, {"texts": None}, {"texts": ["Wilhelmina"]}], ids=str)
def test_it_is_gone_from_every_answer(hub: Hub, turns: list[str], body: Any) -> None:
    assert "called Wilhelmina" in everything(hub)
    answers = [
        hub.client.call("DELETE", f"/turns/{turns[0]}")
        if body is None
        else hub.client.post(f"/turns/{turns[0]}/redact", body)
        for _ in range(2)
    ]
    assert [(answer.status_code, answer.content) for answer in answers] == [(204, b"")] * 2
    assert "called Wilhelmina" not in everything(hub)
    assert "tea" in everything(hub)
    shown = hub.client.get(f"/sessions/{Session.objects.get().pk}/turns").json()["results"]
    assert [turn["number"] for turn in shown] == [1, 2]
    assert [bool(turn["redacted_at"]) for turn in shown] == [True, False]
    again = hub.client.post("/turns", {"user_id": "u1", "session_id": "s1", "messages": MESSAGES[:1]}).json()
    assert (again["accepted"], again["turns"][0]["duplicate"]) == (0, True)
    assert "called Wilhelmina" not in everything(hub)


@pytest.mark.parametrize("body", [{}, {"texts": ["Wilhelmina", "neighbour"]}], ids=str)
def test_who_deletes_it_once_is_told_that_another_did(hub: Hub, turns: list[str], body: Any) -> None:
    once = {**body, "once": True}
    first = hub.client.post(f"/turns/{turns[0]}/redact", once, **{"Idempotency-Key": "k1"})
    second = hub.client.post(f"/turns/{turns[0]}/redact", once)
    assert (first.status_code, second.status_code, second.json()["code"]) == (204, 409, "already_redacted")
    # Whoever did not hear the first answer hears it again.
    assert hub.client.post(f"/turns/{turns[0]}/redact", once, **{"Idempotency-Key": "k1"}).status_code == 204
    assert hub.client.post(f"/turns/{turns[0]}/redact", body).status_code == 204
    assert "called Wilhelmina" not in everything(hub)
    if body:
        # What is left of it can still be deleted, once.
        answers = [hub.client.post(f"/turns/{turns[0]}/redact", {"once": True}).status_code for _ in range(2)]
        assert answers == [204, 409]


def test_a_key_for_another_agent_does_not_find_it(hub: Hub, turns: list[str]) -> None:
    others = hub_of(hub.tenant, binding=Binding(agent_id="b", writes_as="user"))
    assert others.client.call("DELETE", f"/turns/{turns[0]}").status_code == 404
    own = factories.session(factories.end_user(hub.tenant), agent_id="b")
    assert others.client.call("DELETE", f"/turns/{own.turns.get().pk}").status_code == 204
