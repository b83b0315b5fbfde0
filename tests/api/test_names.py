"""An id that leads to somebody is theirs in every operation that takes one."""

from typing import Any

import pytest

from memories.models import EndUser
from tests import factories
from tests.api.conftest import Hub


@pytest.fixture
def person(hub: Hub) -> EndUser:
    """Called app-1, and chat-9 as well; another tenant has a chat-9 of its own."""
    person = factories.end_user(hub.tenant, external_id="app-1")
    factories.end_user(hub.tenant, external_id="chat-9", merged_into=person)
    stranger = factories.end_user(external_id="chat-9")
    for someone in (person, stranger):
        factories.fact(someone, "Bakes bread")
        factories.profile_section(someone)
        factories.episode(factories.session(someone))
        factories.run(someone.sessions.get())
    return person


def test_reads_answer_alike(hub: Hub, person: EndUser) -> None:
    for path in ("/facts", "/episodes", "/sessions", "/extractions", "/profile", "/memory", "/users/detail"):
        first, second = (hub.client.get(path, user_id=name).json() for name in ("app-1", "chat-9"))
        told = second | {"user_id": first.get("user_id")} if "user_id" in second else second
        assert first == told, path
        assert "app-1" in str(first) or path == "/memory", path
    for path in ("/context", "/search"):
        bodies = ({"user_id": name, "query": "bread"} for name in ("app-1", "chat-9"))
        first, second = (hub.client.post(path, body).json() for body in bodies)
        assert "Bakes bread" in str(first), path
        assert "Bakes bread" in str(second), path


def test_writes_reach_the_person(hub: Hub, person: EndUser) -> None:
    said = {"user_id": "chat-9", "session_id": "s1", "messages": [{"role": "user", "content": "Hello"}]}
    assert hub.client.post("/turns", said).status_code == 202
    stated = {"user_id": "chat-9", "content": "Sails", "category": "other"}
    assert hub.client.post("/facts", stated).json()["user_id"] == "app-1"
    assert hub.client.call("PUT", "/profile/top_of_mind", {"user_id": "chat-9", "summary": "Boats"}).status_code == 200
    ended = hub.client.post("/sessions/end", {"user_id": "chat-9", "session_id": "s1"})
    assert ended.status_code == 202
    assert (person.facts.count(), person.profile.count(), person.sessions.count()) == (2, 2, 2)


def test_people_are_listed_once_by_their_own_id(hub: Hub, person: EndUser) -> None:
    listed: list[dict[str, Any]] = hub.client.get("/users").json()["results"]
    assert [one["user_id"] for one in listed] == ["app-1"]
