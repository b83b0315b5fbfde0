"""POST /turns/bulk."""

from typing import Any

import pytest

from memories.api.v1.turns import serializers
from memories.models import EndUser, Session, Turn
from tests import factories
from tests.api.client import HubClient
from tests.api.conftest import Hub
from tests.api.v1.test_turns import post


def bulk(client: HubClient, *conversations: dict[str, Any]) -> Any:
    return client.post("/turns/bulk", {"conversations": list(conversations)})


def said(*texts: str, **over: Any) -> dict[str, Any]:
    return post(messages=[{"role": "user", "content": text} for text in texts], **over)


def test_stores_all_and_answers_in_the_given_order(client: HubClient) -> None:
    answer = bulk(
        client,
        said("Zoo", user_id="z", agent_id="Support"),
        said("你好", "我对花生过敏", user_id="小明"),
        said("Ant", user_id="a", session_id="s9"),
    )
    assert answer.status_code == 202
    receipts = answer.json()["results"]
    assert [
        (one["session"]["user_id"], one["session"]["agent_id"], one["session"]["turn_count"], one["accepted"])
        for one in receipts
    ] == [("z", "support", 1, 1), ("小明", None, 2, 2), ("a", None, 1, 1)]
    stored = {str(turn.pk): turn.content for turn in Turn.objects.all()}
    texts = [[stored[turn["id"]] for turn in one["turns"]] for one in receipts]
    assert texts == [["Zoo"], ["你好", "我对花生过敏"], ["Ant"]]


def test_one_session_may_come_twice(client: HubClient) -> None:
    answer = bulk(client, said("One"), said("Other", session_id="s0"), said("Two", "Three"))
    receipts = answer.json()["results"]
    assert [[turn["number"] for turn in one["turns"]] for one in receipts] == [[1], [1], [2, 3]]
    assert [one["session"]["turn_count"] for one in receipts] == [1, 1, 3]
    assert list(Session.objects.get(external_id="s1").turns.values_list("content", flat=True)) == [
        "One",
        "Two",
        "Three",
    ]


@pytest.mark.usefixtures("with_model")
def test_each_conversation_has_its_own_flush(client: HubClient) -> None:
    receipts = bulk(client, post(flush=True), post(session_id="s2")).json()["results"]
    flushed, waiting = (one["extraction"] for one in receipts)
    assert flushed["due_at"] < waiting["due_at"]


def test_what_has_times_can_be_sent_again_from_the_middle(client: HubClient) -> None:
    times = ("2023-03-08T22:30:00Z", "2023-03-08T22:30:00Z", "2023-03-08T22:31:00Z", "2023-03-08T22:32:00Z")
    texts = ("Ha", "Ha", "Hello", "Hello")
    messages = [{"role": "user", "content": text, "timestamp": at} for text, at in zip(texts, times, strict=True)]
    [first] = bulk(client, post(messages=messages[:3])).json()["results"]
    assert (first["accepted"], first["duplicates"]) == (3, 0)
    [again] = bulk(client, post(messages=messages)).json()["results"]
    assert (again["accepted"], again["duplicates"]) == (1, 3)
    assert [turn["duplicate"] for turn in again["turns"]] == [True, True, True, False]
    assert [turn["id"] for turn in again["turns"][:3]] == [turn["id"] for turn in first["turns"]]
    [middle] = bulk(client, post(messages=messages[2:])).json()["results"]
    assert ([turn["number"] for turn in middle["turns"]], middle["accepted"]) == ([3, 4], 0)
    # The control: without a time nobody knows whether it was said again.
    said_again = [{"role": "user", "content": "Hello"}]
    assert bulk(client, post(messages=said_again)).json()["results"][0]["accepted"] == 1
    assert bulk(client, post(messages=said_again)).json()["results"][0]["accepted"] == 1


def test_a_conflict_in_one_stores_none(client: HubClient) -> None:
    first = {"role": "user", "content": "Hello", "external_id": "m1"}
    client.post("/turns", post(messages=[first], session_id="s2"))
    answer = bulk(client, said("New"), post(session_id="s2", messages=[{**first, "content": "Else"}]))
    assert (answer.status_code, answer.json()["code"]) == (409, "external_id_reused")
    assert answer.json()["errors"][0]["pointer"] == "/conversations/1"
    assert (Turn.objects.count(), Session.objects.count()) == (1, 1)


def test_whom_it_may_not_capture_it_passes_over(hub: Hub) -> None:
    factories.end_user(hub.tenant, external_id="u9", capture=False)
    receipts = bulk(hub.client, said("Not", user_id="u9"), said("Free")).json()["results"]
    assert [(one["session"] is None, one["accepted"]) for one in receipts] == [(True, 0), (False, 1)]


def test_its_limits(client: HubClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert serializers.MAX_BULK_MESSAGES == 5000
    monkeypatch.setattr(serializers, "MAX_BULK_MESSAGES", 200)
    most = [said("x", "x", session_id=f"s{number}") for number in range(100)]
    answer = bulk(client, *most)
    assert (answer.status_code, Turn.objects.count()) == (202, 200)
    for more in ([said("x", "x", "x"), *most[1:]], [*[post()] * 101]):
        refused = bulk(client, *more)
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (400, "max_length")
    assert Turn.objects.count() == 200


BAD: list[tuple[Any, str, str]] = [
    ({}, "/conversations", "required"),
    ({"conversations": {}}, "/conversations", "not_a_list"),
    ({"conversations": []}, "/conversations", "min_length"),
    ({"conversations": [said(*["x"] * 501)]}, "/conversations/0/messages", "max_length"),
    ({"conversations": [post(), "hello"]}, "/conversations/1", "invalid"),
    ({"conversations": [post(), post(messages=[{"content": "x"}])]}, "/conversations/1/messages/0/role", "required"),
    ({"conversations": [post(sesion_id="s")]}, "/conversations/0/sesion_id", "unknown_field"),
    ({"conversations": [post()], "flush": True}, "/flush", "unknown_field"),
]


def test_bad_input_is_refused_with_its_place(client: HubClient) -> None:
    for body, pointer, code in BAD:
        answer = client.post("/turns/bulk", body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), pointer
        assert (pointer, code) in [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]
    assert not EndUser.objects.exists()


def test_a_large_message_is_refused_with_its_place(client: HubClient) -> None:
    answer = bulk(client, said("small"), said("small", "x" * (1024 * 1024 + 1)))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert answer.json()["errors"][0]["pointer"] == "/conversations/1/messages/1"
    assert not EndUser.objects.exists()
