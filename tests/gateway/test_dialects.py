"""The gateway in the protocols of OpenAI's responses and Anthropic's messages, and with OpenAI's own library."""

import json
from typing import Any

import openai
import pytest

from memories.models import Session, Tenant, Turn
from tests import factories
from tests.gateway.conftest import Client, stored
from tests.llm.endpoint import Endpoint, Handler, sends

WEATHER = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Leiden"}'}}


@pytest.fixture(autouse=True)
def known(tenant: Tenant) -> None:
    # It stands with the system prompt, whatever is asked.
    person = factories.end_user(tenant, external_id="u1")
    factories.fact(person, "Lives in Leiden", category="preference", key="home_city", value="Leiden")


@pytest.fixture
def library(client: Client) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=client.address, api_key=client.key, default_headers={"X-Memory-User": "u1"}, max_retries=0
    )


def sends_events(*events: dict[str, Any]) -> Any:
    body = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)

    def respond(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))

    return respond


def response(text: str, **over: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    return {**base, "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], **over}


class TestLibrary:
    """As applications call it."""

    def test_an_error_is_the_library_s_own(self, client: Client, library: openai.OpenAI) -> None:
        wrong = library.with_options(api_key="mh_wrong")
        with pytest.raises(openai.AuthenticationError) as raised:
            wrong.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
        assert raised.value.code == "invalid_api_key"

    def test_responses(self, library: openai.OpenAI, endpoint: Endpoint) -> None:
        created = {"type": "response.created", "sequence_number": 0, "response": response("", output=[])}
        delta = {"type": "response.output_text.delta", "sequence_number": 1, "item_id": "m1", "output_index": 0}
        delta |= {"content_index": 0, "delta": "It rains.", "logprobs": []}
        done = {"type": "response.completed", "sequence_number": 2, "response": response("It rains.", id="resp_2")}
        endpoint.responds(sends(json.dumps(response("In Leiden.")).encode()), sends_events(created, delta, done))
        first = library.responses.create(model="m", input="Where do I live?", instructions="Be brief.")
        assert first.output_text == "In Leiden."
        assert endpoint.requests[0]["instructions"].startswith("Be brief.\n\n")
        assert "Lives in Leiden" in endpoint.requests[0]["instructions"]
        # The endpoint keeps the conversation: the request holds what is new alone.
        stream = library.responses.create(
            model="m", input="And the weather?", previous_response_id=first.id, stream=True
        )
        assert [event.type for event in stream][-1] == "response.completed"
        assert [text for _, text in stored()] == ["Where do I live?", "In Leiden.", "And the weather?", "It rains."]
        assert Session.objects.count() == 1

    def test_an_earlier_answer_that_is_followed_again_leaves_what_came_after_it(
        self, library: openai.OpenAI, endpoint: Endpoint
    ) -> None:
        replies = [("In Leiden.", "resp_1"), ("Rain.", "resp_2"), ("It is mild.", "resp_3"), ("Snow.", "resp_4")]
        endpoint.responds(*[sends(json.dumps(response(text, id=name)).encode()) for text, name in replies])

        def ask(text: str, **follows: str) -> None:
            library.responses.create(model="m", input=text, **follows)  # type: ignore[call-overload]

        ask("Where do I live?")
        ask("And the weather?", previous_response_id="resp_1")
        ask("And the climate?", previous_response_id="resp_1")
        current = Turn.objects.current().order_by("number").values_list("content", flat=True)
        assert list(current) == ["Where do I live?", "In Leiden.", "And the climate?", "It is mild."]
        ask("And tomorrow?", previous_response_id="resp_2")
        assert list(current.all()) == [
            *("Where do I live?", "In Leiden.", "And the weather?", "Rain.", "And tomorrow?", "Snow.")
        ]
        assert (Session.objects.count(), Turn.objects.count()) == (1, 8)


def test_items_of_a_response_are_turns_once(client: Client, endpoint: Endpoint) -> None:
    call = {
        "type": "function_call",
        "id": "f1",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city":"Delft"}',
    }
    other = {**call, "id": "f2", "call_id": "call_2"}
    endpoint.responds(
        sends(json.dumps(response("Let me see.", output=[*response("Let me see.")["output"], call, other])).encode()),
        sends(json.dumps(response("It rains.")).encode()),
    )
    items: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "Does it rain?"}]}]
    items += client.post({"model": "m", "input": items}, path="/responses", user="u1").json()["output"]
    items += [{"type": "function_call_output", "call_id": one, "output": "Rain"} for one in ("call_1", "call_2")]
    client.post({"model": "m", "input": [{"type": "reasoning", "summary": []}, *items]}, path="/responses", user="u1")
    turns = list(Turn.objects.order_by("number").values_list("role", "content", "tool_call_id"))
    assert turns == [
        ("user", "Does it rain?", ""),
        ("assistant", "Let me see.", ""),
        ("assistant", "", ""),
        ("assistant", "", ""),
        ("tool", "Rain", "call_1"),
        ("tool", "Rain", "call_2"),
        ("assistant", "It rains.", ""),
    ]


class TestMessages:
    """Anthropic's protocol."""

    def test_the_answer_and_its_tools_are_turns_once(self, client: Client, endpoint: Endpoint) -> None:
        use = {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Leiden"}}
        thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
        endpoint.responds(
            sends(json.dumps({"id": "a1", "content": [thinking, {"type": "text", "text": "I look."}, use]}).encode()),
            sends_events(
                {"type": "message_start", "message": {"id": "a2"}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It "}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "rains."}},
                {"type": "message_stop"},
            ),
        )
        messages: list[Any] = [{"role": "user", "content": "Does it rain?"}]
        document = {"model": "m", "max_tokens": 9, "system": "Be brief.", "messages": messages}
        answer = client.post(document, path="/messages", user="u1").json()
        result = {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "Rain"}]}
        messages += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": [result]}]
        # As Claude Code puts its own words between those of the conversation.
        messages.insert(1, {"role": "system", "content": "Today is Thursday."})
        client.post({**document, "stream": True}, path="/messages", user="u1")
        assert messages[1] in endpoint.requests[1]["messages"]
        assert stored() == [
            ("user", "Does it rain?"),
            ("assistant", "I look."),
            ("tool", "Rain"),
            ("assistant", "It rains."),
        ]
        assert Turn.objects.get(number=2).tool_calls == [
            {**WEATHER, "function": {"name": "weather", "arguments": '{"city": "Leiden"}'}}
        ]
        system = endpoint.requests[0]["system"]
        assert system[0] == {"type": "text", "text": "Be brief."}
        assert "Lives in Leiden" in system[1]["text"]
        assert (endpoint.headers[0]["x-api-key"], endpoint.headers[0]["Authorization"]) == ("sk-of-the-hub", None)

    def test_the_hub_s_key_may_come_as_its_library_sends_it(self, client: Client, endpoint: Endpoint) -> None:
        endpoint.responds(sends(b'{"id": "a1", "content": [{"type": "text", "text": "Hello"}]}'))
        document = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        refused = client.post(document, path="/messages", user="u1", bearer="mh_wrong")
        assert (refused.status_code, refused.json()["type"]) == (401, "error")
        assert client.post(document, path="/messages", user="u1", alone=client.key).status_code == 200
        assert stored() == [("user", "Hi"), ("assistant", "Hello")]
