"""The fake hub's own: what it was asked, what it is told to answer."""

import pytest

from memoryhub_client import ConflictError, MemoryHub, Retries, UnavailableError
from memoryhub_client.testing import FakeMemoryHub


def test_it_says_what_it_was_asked() -> None:
    fake = FakeMemoryHub()
    fake.client().get_context(user_id="u1", query="Who?")
    fake.client().list_facts(user_id="u1", status="all").page()
    assert [one.operation for one in fake.asked] == ["get_context", "list_facts"]
    assert fake.asked[0].given == {"user_id": "u1", "query": "Who?"}
    assert fake.asked[1].given == {"user_id": "u1", "status": "all"}


def test_it_refuses_when_told_to() -> None:
    fake = FakeMemoryHub()
    fake.refuse(503, "unavailable", times=2)
    with pytest.raises(UnavailableError):
        fake.client().get_profile(user_id="u1")
    assert fake.client(Retries(times=1, longest_wait=2)).get_profile(user_id="u1").user_id == "u1"
    fake.refuse(409, "operator_word")
    with pytest.raises(ConflictError, match="operator_word"):
        fake.client().get_profile(user_id="u1")


def test_it_answers_what_it_is_told_to() -> None:
    fake = FakeMemoryHub()
    hub = fake.client()
    with pytest.raises(NotImplementedError, match="get_extraction"):
        hub.get_extraction("1")
    fake.answer("take_privacy_export", b"PK")
    assert hub.take_privacy_export("1") == b"PK"
    fake.answer("get_context", {"memory": "<memory>Told</memory>", "revision": "1"})
    assert hub.get_context(user_id="u1").memory == "<memory>Told</memory>"


async def test_both_clients_see_the_same_hub() -> None:
    fake = FakeMemoryHub()
    fake.client().add_fact(user_id="u1", content="Lives in Leiden", category="identity")
    assert "Leiden" in (await fake.async_client().get_context(user_id="u1")).memory


def test_it_stands_in_for_a_hub_anywhere() -> None:
    fake = FakeMemoryHub()
    assert MemoryHub("any", transport=fake.transport).list_users().page().results == []


def test_each_agent_has_a_diary_of_its_own() -> None:
    hub = FakeMemoryHub().client()
    hub.write_diary_entry("Likes short answers", user_id="u1", agent_id="Coach", topic="Style")
    mine = hub.write_diary_entry("Begin with the garden", user_id="u1", agent_id="coach")
    hub.write_diary_entry("Sold a garden hose", user_id="u1", agent_id="sales")
    assert [one.content for one in hub.list_diary(user_id="u1", agent_id="coach").page().results] == [
        "Begin with the garden",
        "Likes short answers",
    ]
    assert [one.topic for one in hub.list_diary(user_id="u1", agent_id="coach", q="style").page().results] == ["Style"]
    found = hub.search(query="the garden", user_id="u1", kinds=["diary"], filters={"agent_id": "coach"}).results
    assert (found[0].kind, found[0].id) == ("diary", mine.id)
    assert len(found) == 2
    hub.delete_diary_entry(mine.id)
    assert len(hub.list_diary(user_id="u1", agent_id="coach", last=5).page().results) == 1


def test_members_are_told_what_their_groups_know() -> None:
    hub = FakeMemoryHub().client()
    group = hub.add_group("Bakery")
    for user_id in ("ann", "bob"):
        hub.set_group_member(group.id, user_id=user_id)
    with pytest.raises(ConflictError, match="not_a_member"):
        hub.add_group_fact(group.id, "The oven is hot", user_id="carl")
    fact = hub.add_group_fact(group.id, "The oven is hot", user_id="ann")
    assert hub.add_group_fact(group.id, "the OVEN is hot", user_id="bob").said_by == ["ann", "bob"]
    (found,) = hub.search(query="How hot is the oven?", user_id="bob").results
    assert (found.kind, found.id, found.group and found.group.name) == ("group_fact", fact.id, "Bakery")
    assert hub.search(query="How hot is the oven?", user_id="carl").results == []
    hub.delete_group_fact(group.id, fact.id, user_id="ann")
    assert hub.list_group_facts(group.id).page().results[0].said_by == ["bob"]
    hub.remove_group_member(group.id, user_id="bob")
    assert hub.search(query="How hot is the oven?", user_id="bob").results == []
    assert [one.name for one in hub.list_groups(user_id="ann").page().results] == ["Bakery"]
    hub.delete_group(group.id)
    assert hub.list_groups().page().results == []
