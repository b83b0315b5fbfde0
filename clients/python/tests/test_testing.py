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
