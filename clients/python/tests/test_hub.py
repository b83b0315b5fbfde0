"""What an application does, with a fresh hub and with the fake one: the same scenario, the same answers."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import RunningHub, wait_until

from memoryhub_client import (
    AsyncMemoryHub,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    IdempotencyKeyReusedError,
    MemoryHub,
    NotFoundError,
    UnauthorizedError,
    VersionMismatchError,
)
from memoryhub_client.models import HeldSection, NewMessage, Pending, Profile
from memoryhub_client.testing import FakeMemoryHub

SAID: list[NewMessage] = [
    {"role": "user", "content": "I moved to Leiden last month.", "external_id": "m1"},
    {"role": "assistant", "content": "Leiden, noted.", "external_id": "m2"},
]


@pytest.fixture(params=["hub", "fake"])
def either(request: pytest.FixtureRequest) -> Iterator[MemoryHub]:
    """A hub and the fake one."""
    if request.param == "fake":
        yield FakeMemoryHub().client()
    else:
        yield request.getfixturevalue("hub")


def test_turns_are_stored_once_and_told(either: MemoryHub, user_id: str) -> None:
    first = either.post_turns(user_id=user_id, session_id="s1", messages=SAID)
    again = either.post_turns(user_id=user_id, session_id="s1", messages=[*SAID, {"role": "user", "content": "是的。"}])
    assert (first.accepted, again.accepted, again.duplicates) == (2, 1, 2)
    assert [one.number for one in again.turns] == [1, 2, 3]
    assert first.session
    assert [one.content for one in either.list_turns(first.session.id)][2] == "是的。"
    wait_until(lambda: either.get_user(user_id=user_id).pending == Pending(extraction=0, embedding=0))
    context = either.get_context(user_id=user_id, query="Where do I live?")
    assert "Leiden" in context.memory
    assert context.memory.startswith("<memory>")
    assert either.get_context(user_id=user_id, query="Where do I live?", if_revision=context.revision).unchanged
    with_window = either.get_context(user_id=user_id, session_id="s1", include=["working_memory"])
    assert [one["role"] for one in with_window.messages][-3:] == ["user", "assistant", "user"]
    assert any("Leiden" in one.text for one in either.search(user_id=user_id, query="Leiden").results)
    assert [one.session_id for one in either.list_sessions(user_id=user_id)] == ["s1"]
    assert either.get_session(first.session.id).window.max_rounds == 10
    assert either.end_session(user_id=user_id, session_id="s1").session.turn_count == 3
    assert either.get_user(user_id=user_id).counts.turns == 3


def test_files_are_written_changed_and_restored(either: MemoryHub, user_id: str) -> None:
    path = "/notes/trip.md"
    whose: dict[str, Any] = {"user_id": user_id, "agent_id": "writer"}
    written = either.write_file(path, "Leaves on Friday\nBy train\n", **whose)
    assert (written.version, written.created) == (1, True)
    with pytest.raises(VersionMismatchError):
        either.write_file(path, "x", **whose, if_match=0)
    edited = either.edit_file(path, "Friday", "Sunday", **whose)
    assert (edited.version, edited.occurrences) == (2, 1)
    with pytest.raises(NotFoundError) as absent:
        either.edit_file(path, "By train\n\n", "", **whose)
    assert (absent.value.code, absent.value.document["newline_only"]) == ("text_not_found", True)
    with pytest.raises(ConflictError) as twice:
        either.edit_file(path, "a", "b", **whose)
    assert (twice.value.code, twice.value.document["occurrences"]) == ("text_not_unique", 3)
    with pytest.raises(BadRequestError, match="slash"):
        either.write_file("notes.md", "x", **whose)
    read = either.read_file(path, **whose, offset=1, limit=1)
    assert (read.content, read.start_line, read.total_lines, read.next_offset) == ("By train\n", 2, 2, None)
    assert [one.path for one in either.list_files(**whose, path="/notes")] == [path]
    assert [one.path for one in either.glob_files("*.md", **whose, path="/notes").results] == [path]
    assert [one.line for one in either.grep_files("Sunday", **whose).results] == [1]
    assert either.delete_file("/notes", **whose).deleted == 1
    with pytest.raises(NotFoundError):
        either.read_file(path, **whose)
    assert either.restore_file(path, version=1, **whose).version == 4
    assert "Friday" in either.read_file(path, **whose).content
    assert [one.verb for one in either.list_file_history(path, **whose)] == ["restore", "delete", "edit", "write"]


def test_items_of_the_store_are_put_found_and_deleted(either: MemoryHub, user_id: str) -> None:
    space = ["memories", user_id]
    for key, text, count in (("tea", "Drinks green tea", 3), ("bike", "Her bicycle is red", 5)):
        either.put_store_item(namespace=space, key=key, value={"text": text, "count": count})
    best, *_ = either.search_store_items(namespace_prefix=space, query="green tea").items
    assert best.key == "tea"
    assert best.score
    found = either.search_store_items(namespace_prefix=space, filter={"count": {"$gt": 3}}).items
    assert [(one.key, one.score) for one in found] == [("bike", None)]
    item = either.get_store_item(namespace=f"memories.{user_id}", key="tea")
    assert item
    assert (item.namespace, item.value["count"]) == (space, 3)
    got, listed, _ = either.batch_store(operations=[
        {"op": "get", "namespace": space, "key": "tea"},
        {"op": "list_namespaces", "match_conditions": [{"match_type": "prefix", "path": ["memories", user_id]}]},
        {"op": "put", "namespace": space, "key": "tea", "value": {"text": "Drinks coffee"}, "ttl": 60},
    ]).results  # fmt: skip
    assert got.item
    assert (got.item.value["text"], listed.namespaces) == ("Drinks green tea", [space])
    changed = either.get_store_item(namespace=f"memories.{user_id}", key="tea")
    assert changed
    assert changed.value == {"text": "Drinks coffee"}
    assert (changed.created_at, changed.updated_at > item.updated_at) == (item.created_at, True)
    either.delete_store_item(namespace=f"memories.{user_id}", key="tea")
    assert either.get_store_item(namespace=f"memories.{user_id}", key="tea") is None


def test_facts_live_and_go(either: MemoryHub, user_id: str) -> None:
    fact = either.add_fact(user_id=user_id, content="Allergic to peanuts", category="constraint", tags=["health"])
    assert (fact.status, fact.version) == ("active", 1)
    with pytest.raises(ConflictError) as found:
        either.add_fact(user_id=user_id, content="allergic to PEANUTS", category="constraint")
    assert (found.value.code, found.value.existing_id) == ("duplicate", fact.id)
    assert either.change_fact(fact.id, importance=0.9, if_match=1).version == 2
    with pytest.raises(VersionMismatchError):
        either.change_fact(fact.id, importance=0.3, if_match=1)
    assert [one.id for one in either.list_facts(user_id=user_id, tag="health")] == [fact.id]
    assert [one.id for one in either.list_facts(user_id=user_id, type="semantic")] == [fact.id]
    assert list(either.list_facts(user_id=user_id, type="preference")) == []
    assert either.change_fact(fact.id, category="preference").type == "preference"
    assert "peanuts" in either.get_context(user_id=user_id).memory
    either.delete_fact(fact.id)
    assert list(either.list_facts(user_id=user_id)) == []
    assert either.get_fact(fact.id).status == "trashed"
    with pytest.raises(NotFoundError):
        either.get_fact(str(uuid.uuid4()))


def test_a_profile_is_written(either: MemoryHub, user_id: str) -> None:
    written = either.write_profile_section("top_of_mind", user_id=user_id, summary="Trains for a marathon.")
    assert isinstance(written, Profile)
    assert not isinstance(written, HeldSection)
    section = either.get_profile(user_id=user_id).sections.top_of_mind
    assert section
    assert section.summary == "Trains for a marathon."
    assert either.change_user(user_id=user_id, display_name="Ann").display_name == "Ann"
    assert [one.user_id for one in either.list_users(q=user_id)] == [user_id]


def test_an_idempotency_key_is_for_one_request(either: MemoryHub, user_id: str) -> None:
    def post(text: str) -> str:
        messages: list[NewMessage] = [{"role": "user", "content": text}]
        return either.post_turns(user_id=user_id, session_id="s", messages=messages, idempotency_key=key).turns[0].id

    key = f"k-{user_id}"
    assert post("one") == post("one")
    with pytest.raises(IdempotencyKeyReusedError):
        post("two")


# What only a real hub can show.


def test_the_rest_of_the_api(hub: MemoryHub, user_id: str) -> None:
    stored = hub.post_turns_bulk(conversations=[{"user_id": user_id, "session_id": "s", "messages": SAID}]).results[0]
    hub.redact_turn(stored.turns[0].id, texts=["Leiden"])
    hub.delete_turn(stored.turns[1].id)
    document = hub.put_memory({"facts": [{"content": "Sings", "confidence": 0.9}]}, user_id=user_id)
    assert [one["content"] for one in document["facts"]] == ["Sings"]
    [fact] = hub.list_facts(user_id=user_id)
    assert hub.give_fact_feedback(fact.id, useful=True).importance > fact.importance
    assert [one.version for one in hub.list_fact_history(fact.id)]
    seen = hub.delete_facts(user_id=user_id, dry_run=True)
    assert hub.delete_facts(user_id=user_id, token=seen.token).facts == seen.facts == 1
    assert hub.restore_fact(fact.id).status == "active"
    assert hub.clear_memory(user_id=user_id)["facts"] == []
    assert list(hub.list_episodes(user_id=user_id, status="all")) == []
    hub.post_turns(user_id=user_id, session_id="a", agent_id="planner", messages=SAID)
    [agent] = hub.list_agents(agent_id="planner")
    assert hub.change_agent(agent.id, recall=True, guidance=f"Remember {user_id}.").guidance == f"Remember {user_id}."
    assert hub.get_agent(agent.id).recall
    case = hub.create_privacy_request(user_id=user_id, type="access", reference="T-1")
    assert hub.get_privacy_request(case.id).state == "received"
    wait_until(lambda: list(hub.list_extractions(user_id=user_id)))
    run = next(iter(hub.list_extractions(user_id=user_id)))
    assert hub.get_extraction(run.id).range.first >= 1
    assert stored.session
    hub.delete_session(stored.session.id)
    with pytest.raises(NotFoundError):
        hub.get_session(stored.session.id)


def test_lists_go_on_to_the_end(hub: MemoryHub, user_id: str) -> None:
    for number in range(5):
        hub.add_fact(user_id=user_id, content=f"Owns bicycle number {number}{number}", category="other")
    listed = hub.list_facts(user_id=user_id, page_size=2)
    assert [len(page.results) for page in listed.pages()] == [2, 2, 1]
    assert len({one.id for one in listed}) == 5
    second = hub.list_facts(user_id=user_id, page_size=2, cursor=listed.page().next_cursor).page()
    # By their ids: their embeddings are written meanwhile.
    assert [one.id for one in second.results] == [one.id for one in listed][2:4]


def test_refusals_say_why(running: RunningHub, hub: MemoryHub, user_id: str) -> None:
    with pytest.raises(BadRequestError) as found:
        hub.add_fact(user_id=user_id, content="x", category="no such")  # type: ignore[arg-type]
    assert [one.pointer for one in found.value.errors] == ["/category"]
    assert found.value.request_id
    with pytest.raises(UnauthorizedError):
        MemoryHub("mh_no_such", base_url=running.base_url).get_profile(user_id=user_id)


def test_a_key_for_one_person_needs_no_user_id(running: RunningHub, user_id: str) -> None:
    bound = MemoryHub(running.key("--user", user_id), base_url=running.base_url)
    bound.post_turns(user_id=None, session_id="s", messages=SAID)
    assert "Leiden" in bound.get_context(user_id=None).memory
    assert bound.get_profile(user_id=None).user_id == user_id
    with pytest.raises(ForbiddenError):
        bound.get_profile(user_id="somebody else")


async def test_the_asynchronous_client_does_the_same(running: RunningHub, key: str, user_id: str) -> None:
    async with AsyncMemoryHub(key, base_url=running.base_url) as hub:
        await hub.post_turns(user_id=user_id, session_id="s", messages=SAID)
        assert "Leiden" in (await hub.get_context(user_id=user_id, query="Where do I live?")).memory
        for number in range(3):
            await hub.add_fact(user_id=user_id, content=f"Owns bicycle number {number}{number}", category="other")
        assert len([one async for one in hub.list_facts(user_id=user_id, page_size=2)]) == 3
        with pytest.raises(NotFoundError):
            await hub.get_fact(str(uuid.uuid4()))
