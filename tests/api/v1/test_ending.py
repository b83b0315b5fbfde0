"""What a key that writes as an agent may end: nothing that it may not change. A key of the user may."""

import pytest

from memories.curation.access.keys import Binding
from memories.models import EndUser, Session
from tests import factories
from tests.api.conftest import Hub, hub_of

DENIED = 409, "review_needed"


@pytest.fixture
def agent(hub: Hub) -> Hub:
    return hub_of(hub.tenant, binding=Binding(writes_as="agent"))


@pytest.fixture
def session(hub: Hub) -> Session:
    person: EndUser = factories.end_user(hub.tenant, external_id="u1")
    return factories.session(person, [("user", "I live in Utrecht."), ("assistant", "Noted.")], session_id="s1")


def stated(hub: Hub, content: str = "Lives in Utrecht") -> str:
    answer = hub.client.post("/facts", {"user_id": "u1", "content": content, "category": "knowledge"})
    return str(answer.json()["id"])


@pytest.mark.parametrize("query", ["", "?hard=true"])
def test_a_fact_of_the_user_is_not_an_agents_to_end(hub: Hub, agent: Hub, query: str) -> None:
    fact = stated(hub)
    refused = agent.client.call("DELETE", f"/facts/{fact}{query}")
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.get(f"/facts/{fact}").json()["status"] == "active"
    assert hub.client.call("DELETE", f"/facts/{fact}{query}").status_code == 204


def test_an_agent_ends_what_it_stated_itself(agent: Hub) -> None:
    assert agent.client.call("DELETE", f"/facts/{stated(agent)}").status_code == 204


def test_many_facts_of_the_user_are_kept_from_an_agent(hub: Hub, agent: Hub) -> None:
    stated(hub)
    seen = agent.client.post("/facts/delete", {"user_id": "u1", "dry_run": True}).json()
    assert (seen["facts"], seen["kept"]) == (0, 1)
    seen = hub.client.post("/facts/delete", {"user_id": "u1", "dry_run": True}).json()
    assert (seen["facts"], seen["kept"]) == (1, 0)


def test_the_memory_is_not_an_agents_to_clear(hub: Hub, agent: Hub) -> None:
    stated(hub)
    refused = agent.client.call("DELETE", "/memory?user_id=u1")
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.call("DELETE", "/memory?user_id=u1").status_code == 200


def test_turns_of_the_user_are_not_an_agents_to_end(hub: Hub, agent: Hub, session: Session) -> None:
    said, answered = session.turns.order_by("number").values_list("pk", flat=True)
    for refused in (
        agent.client.call("DELETE", f"/turns/{said}"),
        agent.client.post(f"/turns/{said}/redact", {"texts": ["Utrecht"]}),
        agent.client.call("DELETE", f"/sessions/{session.pk}"),
    ):
        assert (refused.status_code, refused.json()["code"]) == DENIED
    assert agent.client.call("DELETE", f"/turns/{answered}").status_code == 204
    assert hub.client.call("DELETE", f"/turns/{said}").status_code == 204
    assert hub.client.call("DELETE", f"/sessions/{session.pk}").status_code == 204


def test_an_entry_of_the_user_is_not_an_agents_to_delete(hub: Hub, agent: Hub) -> None:
    entry = hub.client.post("/diary", {"user_id": "u1", "agent_id": "a1", "content": "Went well"}).json()["id"]
    refused = agent.client.call("DELETE", f"/diary/{entry}")
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.call("DELETE", f"/diary/{entry}").status_code == 204


def test_an_episode_that_is_served_is_not_an_agents_to_end(hub: Hub, agent: Hub, session: Session) -> None:
    episode = factories.episode(session)
    refused = agent.client.call("DELETE", f"/episodes/{episode.pk}")
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.call("DELETE", f"/episodes/{episode.pk}").status_code == 204
