"""Messages with the fields that SDKs add, sent back through the gateway in each of its protocols."""

import json
from typing import Any

import pytest

from memories.models import Turn
from tests.api.v1.test_message_fields import FIELDS
from tests.gateway.conftest import Client, stored
from tests.llm.endpoint import Endpoint, says, sends

ASKED, TOLD, THANKED = "What time is it in Leiden?", "It is nine o'clock.", "Thanks, I live in Leiden."
# What a conversation goes on with; of the answer of a tool and a call there are tests beside.
OTHERS = {name: value for name, value in FIELDS.items() if name not in ("type", "context")}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


def whole(path: str) -> bytes:
    text = {"type": "text", "text": "You are welcome."}
    item = {"type": "message", "role": "assistant", "status": "completed", "content": [{**text, "type": "output_text"}]}
    answers = {"/messages": {"id": "a1", "content": [text]}, "/responses": {"id": "r1", "output": [item]}}
    return json.dumps(answers[path]).encode()


@pytest.mark.parametrize(
    ("path", "name", "given", "taken"),
    [
        ("/chat/completions", "messages", "text", "text"),
        ("/responses", "input", "input_text", "output_text"),
        ("/messages", "messages", "text", "text"),
    ],
)
def test_they_are_passed_on_and_no_part_of_what_was_said(
    client: Client, endpoint: Endpoint, path: str, name: str, given: str, taken: str
) -> None:
    chat = path == "/chat/completions"
    endpoint.responds(says("You are welcome.", **OTHERS) if chat else sends(whole(path)))
    answered: list[Any] = [{"type": taken, "text": TOLD, "annotations": [], "citations": None}]
    if path == "/messages":
        answered = [THOUGHT, {"type": "redacted_thinking", "data": "x"}, *answered]
    reasoning = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}]
    messages: list[Any] = [
        {"role": "user", "content": [{"type": given, "text": ASKED, "cache_control": {"type": "ephemeral"}}]},
        *(reasoning if path == "/responses" else []),
        {"role": "assistant", "content": answered, **OTHERS},
        {"role": "user", "content": THANKED, "id": "msg_3", "provider_specific_fields": None, "parsed": None},
    ]
    body = {"model": "m", name: messages, **({"max_tokens": 9} if path == "/messages" else {})}
    assert client.post(body, path=path, user="u1").status_code == 200
    assert [text for _, text in stored()] == [ASKED, TOLD, THANKED, "You are welcome."]
    assert "asks for the time" not in str(list(Turn.objects.values()))
    # The endpoint gets them as they came.
    passed = endpoint.requests[0][name]
    assert [one for one in passed if one.get("role") == "assistant"] == [{**messages[-2]}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/chat/completions", {"messages": [{"role": "narrator", "content": ASKED}]}),
        ("/responses", {"input": [{"role": "narrator", "content": ASKED}]}),
        ("/messages", {"messages": [{"role": "narrator", "content": ASKED}]}),
    ],
)
def test_what_nobody_can_read_is_kept_by_nobody(
    client: Client, endpoint: Endpoint, path: str, body: dict[str, Any]
) -> None:
    endpoint.responds(says("Hm.") if path == "/chat/completions" else sends(whole(path)))
    client.post({"model": "m", **body}, path=path, user="u1")
    assert not Turn.objects.exists()
