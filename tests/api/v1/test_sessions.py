"""/sessions: lists, one with its window and its turns, its end, flush and deletion."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from memories.curation.access.keys import Binding
from memories.models import AuditEvent, Fact, MemoryOf, Session, SessionQueue, Turn, WorkingMemory
from tests import factories
from tests.api.conftest import Hub, hub_of
from tests.capture.test_branches import send

NAMED = {"user_id": "小明", "session_id": "s1"}
MORE = {**NAMED, "messages": [{"role": "user", "content": "One more thing", "external_id": "m2"}]}


@pytest.fixture
def session(hub: Hub, with_model: None) -> Session:
    return factories.session(factories.end_user(hub.tenant, external_id="小明"), session_id="s1")


def shown(hub: Hub) -> dict[str, Any]:
    [row] = hub.client.get("/sessions", user_id="小明").json()["results"]
    return dict(row)


def numbers(page: Any) -> list[int]:
    return [turn["number"] for turn in page["results"]]


def following(page: Any) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(page["next"]).query))


def test_a_persons_are_listed_newest_first(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="小明")
    old, new = (factories.session(person, session_id=name, agent_id="support") for name in ("s-1", "s-2"))
    Session.objects.filter(pk=new.pk).update(created_at=old.created_at + timedelta(seconds=1))
    plain = factories.session(person, session_id="s-1")
    Session.objects.filter(pk=plain.pk).update(created_at=old.created_at - timedelta(seconds=1))
    factories.session(factories.end_user(hub.tenant), session_id="s-1")

    def ids(**query: str) -> list[str]:
        return [row["id"] for row in hub.client.get("/sessions", user_id="小明", **query).json()["results"]]

    assert ids() == [str(new.pk), str(old.pk), str(plain.pk)]
    row = hub.client.get("/sessions", user_id="小明").json()["results"][0]
    assert (row["session_id"], row["user_id"], row["agent_id"]) == ("s-2", "小明", "support")
    assert (row["turn_count"], row["extraction"]["status"]) == (1, "off")
    assert not {"summary", "window", "working_memory"} & row.keys()
    assert ids(agent_id="SUPPORT") == [str(new.pk), str(old.pk)]
    assert ids(session_id="s-1") == [str(old.pk), str(plain.pk)]
    assert ids(session_id="S-1") == []
    nobodys = hub.client.get("/sessions", user_id="nobody")
    assert (nobodys.status_code, nobodys.json()) == (200, {"next": None, "previous": None, "results": []})


def test_shows_where_extraction_stands(hub: Hub, session: Session) -> None:
    changes: dict[str, dict[str, Any]] = {
        "pending": {},
        "running": {"lease_until": session.last_turn_at + timedelta(days=9)},
        "parked": {"parked_at": session.last_turn_at},
        "idle": {"due_at": None, "parked_at": None},
    }
    for status, change in changes.items():
        SessionQueue.objects.filter(pk=session.pk).update(**change)
        assert shown(hub)["extraction"]["status"] == status
    row = hub.client.get(f"/sessions/{session.pk}").json()
    assert (row["id"], row["user_id"], row["session_id"], row["agent_id"]) == (str(session.pk), "小明", "s1", None)


@pytest.mark.usefixtures("with_model")
def test_shows_the_window_and_the_running_summary(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant), [("user", "One"), ("assistant", "Two")] * 4)
    row = hub.client.get(f"/sessions/{session.pk}").json()
    assert row["extraction"]["due_at"] <= row["extraction"]["max_due_at"]
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


def test_turns_are_listed_by_number_or_the_newest_first(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant), [("user", f"你好 {number}") for number in range(1, 6)])
    address = f"/sessions/{session.pk}/turns"
    first = hub.client.get(address, page_size=3).json()
    assert (numbers(first), first["previous"]) == ([1, 2, 3], None)
    assert numbers(hub.client.get(address, **following(first)).json()) == [4, 5]
    turn = first["results"][0]
    assert (turn["role"], turn["content"], turn["external_id"], turn["metadata"]) == ("user", "你好 1", None, {})
    assert (turn["name"], turn["tool_calls"], turn["timestamp"]) == (None, None, None)
    newest = hub.client.get(address, sort="-number", page_size=3).json()
    assert numbers(newest) == [5, 4, 3]
    # What comes meanwhile is before the first page.
    more = {"session_id": session.external_id, "messages": [{"role": "user", "content": "Text 6"}]}
    assert hub.client.post("/turns", {**more, "user_id": session.end_user.external_id}).json()["accepted"] == 1
    assert numbers(hub.client.get(address, **following(newest)).json()) == [2, 1]
    refused = hub.client.get(address, **{**following(newest), "sort": "number"})
    assert refused.json()["errors"][0]["code"] == "cursor"


def test_a_branch_that_was_left_is_in_the_transcript_and_counts_for_nothing(hub: Hub) -> None:
    """Nor is it in any other answer: tests/capture/test_branches.py."""
    person = factories.end_user(hub.tenant, external_id="小明")
    send(person, "I live in Leiden", "Nice", "I like Wilhelmina", "So do I")
    send(person, "I live in Leiden", "Nice", "I like Emma", "Me too")
    session = Session.objects.get().pk
    turns = hub.client.get(f"/sessions/{session}/turns").json()["results"]
    assert [bool(turn["left_at"]) for turn in turns] == [False, False, True, True, False, False]
    window = hub.client.get(f"/sessions/{session}").json()["window"]
    tokens = sum(turn.token_count for turn in Turn.objects.current())
    assert (window["turn_count"], window["rounds"], window["token_count"]) == (4, 2, tokens)


def test_its_end_flushes_it_and_stays_until_a_new_turn(hub: Hub, session: Session) -> None:
    assert shown(hub)["ended_at"] is None
    answer = hub.client.post("/sessions/end", NAMED)
    assert (answer.status_code, answer.json()["session"]["id"]) == (202, str(session.pk))
    assert answer.json()["extraction"]["status"] == "pending"
    assert SessionQueue.objects.due().exists()
    first = shown(hub)["ended_at"]
    assert first == answer.json()["extraction"]["due_at"]
    assert hub.client.post("/sessions/end", NAMED).status_code == 202
    assert shown(hub)["ended_at"] == first
    assert hub.client.post("/turns", MORE).json()["accepted"] == 1
    assert shown(hub)["ended_at"] is None
    # A double is no new turn.
    hub.client.post("/sessions/end", NAMED)
    assert hub.client.post("/turns", MORE).json()["duplicates"] == 1
    assert shown(hub)["ended_at"]
    assert hub.client.post("/sessions/end", {**NAMED, "session_id": "s2"}).status_code == 404


def test_flushed_it_is_due_at_once(hub: Hub, session: Session) -> None:
    before = shown(hub)["extraction"]
    answer = hub.client.post("/sessions/flush", NAMED)
    told = answer.json()
    assert (answer.status_code, told["session"]["id"], told["session"]["user_id"]) == (202, str(session.pk), "小明")
    assert (told["extraction"]["status"], told["extraction"]["due_at"] < before["due_at"]) == ("pending", True)
    assert SessionQueue.objects.due().filter(pk=session.pk).exists()
    assert shown(hub)["ended_at"] is None
    # Parked it is revived.
    SessionQueue.objects.update(parked_at=factories.NOW, due_at=None, failure="model_timeout", attempts=5)
    assert hub.client.post("/sessions/flush", NAMED).json()["extraction"]["status"] == "pending"
    assert SessionQueue.objects.get().attempts == 0
    # With nothing that waits it is idle.
    other = factories.session(session.end_user, [("system", "…")], session_id="s2")
    answer = hub.client.post("/sessions/flush", {**NAMED, "session_id": "s2"})
    assert (answer.status_code, answer.json()["extraction"]["status"]) == (202, "idle")
    assert SessionQueue.objects.get(pk=other.pk).due_at is None


def test_one_of_another_agent_is_another_one_and_none_is_made(hub: Hub, session: Session) -> None:
    factories.session(session.end_user, session_id="s2", agent_id="support")
    for named in ({**NAMED, "session_id": "s2"}, {**NAMED, "session_id": "s3"}, {**NAMED, "user_id": "nobody"}):
        answer = hub.client.post("/sessions/flush", named)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert hub.client.post("/sessions/flush", {**NAMED, "session_id": "s2", "agent_id": "Support"}).status_code == 202
    assert Session.objects.count() == 2


def test_deleted_it_is_gone_with_what_rests_on_it_alone(hub: Hub, session: Session) -> None:
    other = factories.session(session.end_user)
    alone, both = factories.fact(session.end_user), factories.fact(session.end_user, "Drinks tea")
    for fact, talk in ((alone, session), (both, session), (both, other)):
        factories.evidence(fact, talk.turns.get())
    answer = hub.client.call("DELETE", f"/sessions/{session.pk}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (list(Session.objects.all()), list(Fact.objects.all()), Turn.objects.count()) == ([other], [both], 1)
    assert [one["session_id"] for one in hub.client.get(f"/facts/{both.pk}").json()["evidence"]] == [other.external_id]
    event = AuditEvent.objects.get(object_id=session.pk)
    assert (event.actor_id, event.counts) == (str(hub.key.pk), {"turns": 1, "facts": 1})
    assert hub.client.call("DELETE", f"/sessions/{session.pk}").status_code == 404
    # One of that name begins anew.
    receipt = hub.client.post("/turns", MORE).json()
    assert (receipt["turns"][0]["number"], receipt["session"]["id"] != str(session.pk)) == (1, True)


@pytest.mark.parametrize("address", ["/turns", "/turns/bulk"])
def test_whose_memory_it_becomes_is_its_keys_choice(hub: Hub, address: str) -> None:
    own = hub_of(hub.tenant, binding=Binding(memory_of=MemoryOf.AGENT))
    for one, name in ((own, "s1"), (hub, "s2")):
        talk = {"user_id": "u1", "session_id": name, "messages": [{"role": "user", "content": "Hello"}]}
        body = {"conversations": [talk]} if address.endswith("bulk") else talk
        assert one.client.post(address, body).status_code == 202
    assert dict(Session.objects.values_list("external_id", "memory_of")) == {"s1": "agent", "s2": ""}
