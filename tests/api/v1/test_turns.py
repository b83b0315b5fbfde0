"""POST /turns."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memories.models import EndUser, Session, Turn
from tests import factories
from tests.api.client import HubClient
from tests.api.conftest import Hub


def post(**over: Any) -> dict[str, Any]:
    message = {"role": "user", "content": "Hello"}
    return {"user_id": "u1", "session_id": "s1", "messages": [message], **over}


def message(**over: Any) -> dict[str, Any]:
    return post(messages=[{"role": "user", "content": "Hello", **over}])


def test_stores_turns_and_answers_with_the_receipt(client: HubClient) -> None:
    messages = [
        {"role": "user", "content": "Hello", "external_id": "m1", "timestamp": "2026-11-03T09:12:00Z"},
        {"role": "assistant", "content": "Hi", "name": "bot", "metadata": {"model": "x"}},
    ]
    answer = client.post("/turns", post(agent_id="Support", messages=messages))
    assert answer.status_code == 202
    receipt = answer.json()
    session = Session.objects.get()
    assert receipt["session"] == {
        "id": str(session.pk), "session_id": "s1", "user_id": "u1", "agent_id": "support",
        "turn_count": 2, "token_count": 2,
    }  # fmt: skip
    assert [(turn["number"], turn["external_id"], turn["duplicate"]) for turn in receipt["turns"]] == [
        (1, "m1", False),
        (2, None, False),
    ]
    assert {name: receipt[name] for name in ("accepted", "duplicates", "redactions", "signals")} == {
        "accepted": 2, "duplicates": 0, "redactions": 0, "signals": [],
    }  # fmt: skip
    stored = list(Turn.objects.order_by("number"))
    assert [str(turn.pk) for turn in stored] == [turn["id"] for turn in receipt["turns"]]
    assert (stored[0].content, stored[1].name, stored[1].metadata) == ("Hello", "bot", {"model": "x"})


def test_a_developer_is_the_system(client: HubClient) -> None:
    messages = [{"role": role, "content": f"Be brief, {role}."} for role in ("developer", "system")]
    assert client.post("/turns", post(messages=messages)).status_code == 202
    assert set(Turn.objects.values_list("role", flat=True)) == {"system"}


@pytest.mark.usefixtures("with_model")
def test_says_when_extraction_is_due(client: HubClient) -> None:
    extraction = client.post("/turns", post()).json()["extraction"]
    assert extraction["status"] == "pending"
    assert extraction["due_at"].endswith("Z")
    flushed = client.post("/turns", post(flush=True)).json()["extraction"]
    assert flushed["due_at"] < extraction["due_at"] <= extraction["max_due_at"]


def test_without_a_model_extraction_is_off(client: HubClient) -> None:
    assert client.post("/turns", post()).json()["extraction"] == {"status": "off", "due_at": None, "max_due_at": None}


def test_the_same_external_id_is_stored_once(client: HubClient) -> None:
    first = client.post("/turns", message(external_id="m1")).json()
    again = client.post("/turns", message(external_id="m1")).json()
    assert (again["accepted"], again["duplicates"]) == (0, 1)
    assert again["turns"][0] == {**first["turns"][0], "duplicate": True}
    answer = client.post("/turns", message(external_id="m1", content="Goodbye"))
    assert (answer.status_code, answer.json()["code"]) == (409, "external_id_reused")
    assert Turn.objects.count() == 1


def test_list_content_keeps_its_parts(client: HubClient) -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "text", "text": "a cat"},
    ]
    answer = client.post("/turns", message(content=parts))
    turn = Turn.objects.get()
    assert (turn.content, turn.parts) == ("Look:\n\na cat", parts)
    listed = client.get(f"/sessions/{answer.json()['session']['id']}/turns").json()["results"]
    assert listed[0]["content"] == parts


def test_a_message_may_come_as_a_chat_completion_gave_it(client: HubClient) -> None:
    given = [
        {"role": "user", "content": "What is on today?"},
        {"role": "tool", "content": "Nothing.", "tool_call_id": "call_1"},
        {"role": "assistant", "content": "Nothing is on.", "refusal": None, "annotations": []},
    ]
    assert client.post("/turns", post(messages=given)).status_code == 202
    stored = Turn.objects.order_by("number").values_list("role", "tool_call_id")
    assert list(stored) == [("user", ""), ("tool", "call_1"), ("assistant", "")]


def test_tool_calls_may_come_without_content(client: HubClient) -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    messages = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "content": ""},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
    ]
    assert client.post("/turns", post(messages=messages)).status_code == 202
    assert Turn.objects.get(number=1).tool_calls == calls


def test_text_comes_back_as_it_was_sent(client: HubClient) -> None:
    texts = ["我对花生过敏，请记住。", "naïve café ﷽ 👩‍👩‍👧", "line\nbreak\ttab\u202ebidi\u200b", "<|endoftext|>"]
    messages = [{"role": "user", "content": text} for text in texts]
    answer = client.post("/turns", {"messages": messages, "user_id": "用户一", "session_id": "会话 1"}).json()
    assert answer["session"]["user_id"] == "用户一"
    listed = client.get(f"/sessions/{answer['session']['id']}/turns").json()["results"]
    assert [turn["content"] for turn in listed] == texts


def test_capture_switched_off_stores_nothing(hub: Hub) -> None:
    factories.end_user(hub.tenant, external_id="u1", capture=False)
    answer = hub.client.post("/turns", post())
    assert answer.status_code == 202
    assert (answer.json()["accepted"], answer.json()["session"], answer.json()["turns"]) == (0, None, [])
    assert not Turn.objects.exists()


def test_the_most_that_is_taken(client: HubClient) -> None:
    answer = client.post("/turns", post(messages=[{"role": "user", "content": "x"}] * 500))
    assert answer.json()["accepted"] == 500
    assert client.post("/turns", message(content="x" * 1024 * 1024)).status_code == 202
    call = {"n": "x" * (1024 * 1024 - 10)}
    answer = client.post("/turns", post(messages=[{"role": "assistant", "content": None, "tool_calls": [call]}]))
    assert answer.status_code == 202
    assert Turn.objects.get(role="assistant").tool_calls == [call]


@pytest.mark.parametrize("silent", [None, "", []])
def test_an_assistant_may_say_nothing(client: HubClient, silent: Any) -> None:
    answer = client.post(
        "/turns", post(messages=[{"role": "assistant", "content": silent, "tool_calls": [{"id": "c"}]}])
    )
    assert answer.status_code == 202
    turn = Turn.objects.get()
    assert (turn.content, turn.parts) == ("", None)


LARGE: list[dict[str, Any]] = [
    {"content": "x" * (1024 * 1024 + 1)},
    {"content": "界" * 350_000},
    {"content": [{"type": "text", "text": "x" * 1024 * 1024}]},
    {"role": "assistant", "content": "", "tool_calls": [{"n": "x" * 60_000}] * 18},
    {"role": "assistant", "content": "", "tool_calls": [{"n": "x" * 1024 * 1024}]},
]


def test_a_larger_message_is_refused(client: HubClient) -> None:
    for over in LARGE:
        answer = client.post("/turns", post(messages=[{"role": "user", "content": "small"}, {"role": "user", **over}]))
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert answer.json()["errors"][0]["pointer"] == "/messages/1"
    assert not EndUser.objects.exists()


LONG = "x" * 256
BAD = [
    ({}, "/user_id", "required"),
    (post(user_id=None), "/user_id", "null"),
    (post(user_id=""), "/user_id", "blank"),
    (post(user_id=" \u3000"), "/user_id", "blank"),
    (post(user_id=7), "/user_id", "invalid"),
    (post(user_id=LONG), "/user_id", "max_length"),
    (post(user_id="a\nb"), "/user_id", "control"),
    (post(session_id=""), "/session_id", "blank"),
    (post(agent_id=""), "/agent_id", "blank"),
    (post(agent_id="İ" * 200), "/agent_id", "max_length"),
    (post(flush="true"), "/flush", "invalid"),
    (post(flush=None), "/flush", "null"),
    (post(sesion_id="s1"), "/sesion_id", "unknown_field"),
    (post(messages=None), "/messages", "null"),
    (post(messages={}), "/messages", "not_a_list"),
    (post(messages=[]), "/messages", "min_length"),
    (post(messages=[{"role": "user", "content": "x"}] * 501), "/messages", "max_length"),
    (post(messages=["hello"]), "/messages/0", "invalid"),
    (post(messages=[None]), "/messages/0", "null"),
    (post(messages=[{"role": "user", "content": "x"}, {"content": "x"}]), "/messages/1/role", "required"),
    (message(role="bot"), "/messages/0/role", "invalid_choice"),
    (message(content=" \n"), "/messages/0/content", "blank"),
    (message(content=None), "/messages/0/content", "blank"),
    (message(role="system", content=""), "/messages/0/content", "blank"),
    (message(content=5), "/messages/0/content", "invalid"),
    (message(content=[]), "/messages/0/content", "blank"),
    (message(content=[{"type": "x"}] * 1001), "/messages/0/content", "parts"),
    (message(content=["x"]), "/messages/0/content/0", "part"),
    (message(content=[{"type": "text", "text": "x"}, {"type": "text"}]), "/messages/0/content/1", "part"),
    (message(content=[{"type": "text", "text": " "}]), "/messages/0/content", "blank"),
    (message(text="x"), "/messages/0/text", "unknown_field"),
    (message(external_id=""), "/messages/0/external_id", "blank"),
    (message(external_id=LONG), "/messages/0/external_id", "max_length"),
    (message(name=LONG), "/messages/0/name", "max_length"),
    (message(metadata=[]), "/messages/0/metadata", "invalid"),
    (message(metadata={"x": "y" * 65_536}), "/messages/0/metadata", "max_size"),
    (message(tool_calls={}), "/messages/0/tool_calls", "not_a_list"),
    (message(tool_calls=["x"]), "/messages/0/tool_calls/0", "invalid"),
    (message(timestamp=1_700_000_000), "/messages/0/timestamp", "invalid"),
    (message(timestamp="2026-13-03T09:12:00Z"), "/messages/0/timestamp", "invalid"),
    (message(timestamp="1969-12-31T23:59:59Z"), "/messages/0/timestamp", "year"),
    (message(timestamp="2100-01-01T00:00:00Z"), "/messages/0/timestamp", "year"),
    (message(timestamp="0001-01-01T00:00:00+14:00"), "/messages/0/timestamp", "year"),
    (message(timestamp="9999-12-31T23:59:59-14:00"), "/messages/0/timestamp", "year"),
]


def test_bad_input_is_refused_with_its_place(client: HubClient) -> None:
    for body, pointer, code in BAD:
        answer = client.post("/turns", body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), pointer
        assert (pointer, code) in [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]
    assert not EndUser.objects.exists()


def test_times_are_kept_in_utc(client: HubClient) -> None:
    times = {
        "1970-01-01T00:00:00Z": "1970-01-01T00:00:00+00:00",
        "2099-12-31T23:59:59+00:00": "2099-12-31T23:59:59+00:00",
        "2026-11-03T17:12:00+08:00": "2026-11-03T09:12:00+00:00",
        "2026-11-03T09:12:00": "2026-11-03T09:12:00+00:00",
    }
    client.post("/turns", post(messages=[{"role": "user", "content": sent, "timestamp": sent} for sent in times]))
    stored = {turn.content: turn.timestamp.isoformat() for turn in Turn.objects.all() if turn.timestamp}
    assert stored == times


def test_a_post_to_a_known_session_costs_few_queries(
    client: HubClient, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client.post("/turns", post())
    # Key; savepoint, queue row, turns, session with queue row, release.
    with django_assert_max_num_queries(6):
        assert client.post("/turns", post()).status_code == 202
