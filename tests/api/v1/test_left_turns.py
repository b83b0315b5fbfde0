"""Turns of a branch that the client left: in the transcript with their time, in no other answer."""

from memories.models import Session, Turn
from tests.api.conftest import Hub
from tests.capture.test_branches import send


def test_only_the_transcript_shows_them(hub: Hub) -> None:
    message = {"role": "user", "content": "I live in Leiden"}
    body = {"user_id": "u1", "session_id": "s1", "messages": [message, {"role": "assistant", "content": "Nice"}]}
    hub.client.post("/turns", body)
    person = Session.objects.get().end_user
    asked = {"user_id": "u1", "session_id": "s1", "include": ["turns", "unextracted", "working_memory"]}
    send(person, "I live in Leiden", "Nice", "I like Wilhelmina", "So do I")
    before = hub.client.post("/context", asked).json()
    assert "Wilhelmina" in str(before)
    send(person, "I live in Leiden", "Nice", "I like Emma")
    session = Session.objects.get().pk
    shown = hub.client.get(f"/sessions/{session}/turns").json()["results"]
    assert [bool(turn["left_at"]) for turn in shown] == [False, False, True, True, False]
    window = hub.client.get(f"/sessions/{session}").json()["window"]
    tokens = sum(turn.token_count for turn in Turn.objects.current())
    assert (window["turn_count"], window["rounds"], window["token_count"]) == (3, 2, tokens)
    after = hub.client.post("/context", {**asked, "if_revision": before["revision"]}).json()
    assert "Emma" in str(after)
    found = hub.client.post("/search", {"user_id": "u1", "query": "Wilhelmina", "kinds": ["turn", "session"]}).json()
    assert "Wilhelmina" not in str(after) + str(found)
