"""POST /v1/chat/completions between a client and an endpoint: what goes on, what comes back, what is kept."""

import json
import socket
import threading
from typing import Any

import pytest
from django.db import OperationalError, connection

from memories.exceptions import HubBusy
from memories.gateway import gateway, limits, memory
from memories.llm import tokenizers, tokens, vocabularies
from memories.models import EndUser, Session, Tenant, Turn
from memories.web.admission import Admission
from tests import factories
from tests.commands.hub import wait_until
from tests.gateway.conftest import Client, stored
from tests.llm.endpoint import Endpoint, Handler, says, sends

LIVES = "Where do I live?"


def asks(*texts: str, **more: Any) -> dict[str, Any]:
    """A request whose messages are in turn the user's and the assistant's."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": "m", "messages": messages, **more}


def streams(*texts: str, ends: bool = True) -> Any:
    """An endpoint's answer as a stream of events."""

    def respond(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("X-RateLimit-Remaining-Requests", "41")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for event in events(*texts, ends=ends):
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")

    return respond


def events(*texts: str, ends: bool = True) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"index": 0, "delta": {"content": text}, "finish_reason": None} for text in texts]
    deltas += [{"index": 0, "delta": {}, "finish_reason": "stop"}] if ends else []
    lines = [json.dumps({"id": "c1", "choices": [one]}, ensure_ascii=False) for one in deltas]
    return [f"data: {line}\n\n".encode() for line in [*lines, "[DONE]"]]


@pytest.fixture
def known(tenant: Tenant) -> None:
    person = factories.end_user(tenant, external_id="u1")
    # It stands with the system prompt, whatever is asked.
    factories.fact(person, "Lives in Leiden", category="preference", key="home_city", value="Leiden")


def test_the_model_is_told_what_is_remembered(client: Client, endpoint: Endpoint, known: None) -> None:
    endpoint.responds(says("In Leiden."))
    answer = client.post(asks(LIVES, temperature=0.5), user="u1")
    assert answer.json()["choices"][0]["message"]["content"] == "In Leiden."
    [asked] = endpoint.requests
    assert "Lives in Leiden" in asked["messages"][0]["content"]
    assert asked["messages"][0]["role"] == "system"
    assert asked["messages"][1:] == [{"role": "user", "content": LIVES}]
    assert asked["temperature"] == 0.5
    assert answer.headers["x-memory"] == "used"
    assert int(answer.headers["x-memory-tokens"]) > 0
    assert endpoint.headers[0]["Authorization"] == "Bearer sk-of-the-hub"
    assert stored() == [("user", LIVES), ("assistant", "In Leiden.")]


def test_the_application_s_own_prompt_stays_first_and_is_not_kept(
    client: Client, endpoint: Endpoint, known: None
) -> None:
    document = asks(LIVES)
    document["messages"].insert(0, {"role": "system", "content": "Be brief."})
    client.post(document, user="u1")
    system = endpoint.requests[0]["messages"][0]
    assert system["content"].startswith("Be brief.\n\n")
    assert "Lives in Leiden" in system["content"]
    assert [role for role, _ in stored()] == ["user", "assistant"]


def test_a_request_says_what_of_the_memory_it_wants(client: Client, endpoint: Endpoint, known: None) -> None:
    person = EndUser.objects.get(external_id="u1")
    factories.memory_file(person, "/memories/AGENTS.md", "Likes rye bread.\n")

    def told(**headers: str) -> str:
        client.post(asks(LIVES), user="u1", **headers)
        return "\n".join(one["content"] for one in endpoint.requests[-1]["messages"]).removesuffix(LIVES)

    assert ("Leiden" in told(), "rye bread" in told()) == (True, False)
    assert ("Leiden" in told(include="Files"), "rye bread" in told(include="files")) == (False, True)
    both = told(include="facts, files")
    assert "Leiden" in both
    assert "rye bread" in both
    assert told(**{"max-tokens": "0"}) == ""
    assert "Leiden" in told(**{"max-tokens": "8000"})
    assert not any(name.lower().startswith("x-memory") for headers in endpoint.headers for name in headers)


@pytest.mark.parametrize(
    ("model", "headers", "tokenizer"),
    [
        ("Qwen/Qwen3-8B", {}, "qwen3"),
        ("claude-sonnet-4", {}, "conservative"),
        ("one-of-ours", {}, "o200k_base"),
        ("one-of-ours", {"tokenizer": "llama3"}, "llama-3"),
    ],
)
def test_the_tokenizer_of_the_model_that_is_asked_counts(
    client: Client, known: None, model: str, headers: dict[str, str], tokenizer: str
) -> None:
    tokens.count("", tokenizer)
    answer = client.post(asks(LIVES, model=model), user="u1", mode="read-only", **headers)
    assert answer.headers["x-memory-tokenizer"] == tokenizer
    everything = client.post(asks(LIVES), user="u1", mode="read-only", tokenizer=tokenizer).headers["x-memory-tokens"]
    assert answer.headers["x-memory-tokens"] == everything


def test_a_model_whose_vocabulary_is_not_installed_is_counted_conservatively(
    client: Client, known: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens.count("", "conservative")
    monkeypatch.setattr(tokenizers, "_is_installed", lambda package: False)
    assert (
        client.post(asks(LIVES, model="qwen3"), user="u1", mode="read-only").headers["x-memory-tokenizer"]
        == "conservative"
    )
    refused = client.post(asks(LIVES), user="u1", mode="read-only", tokenizer="qwen3")
    assert (refused.status_code, "memory-hub[tokenizers]" in refused.text) == (400, True)


def test_no_request_waits_until_a_vocabulary_is_loaded(
    client: Client, known: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, gate = vocabularies._load, threading.Event()
    monkeypatch.setattr(vocabularies, "_load", lambda name: gate.wait(30) and load(name))
    monkeypatch.setattr(vocabularies, "_loaded", {"o200k_base": vocabularies.counter("o200k_base")})
    monkeypatch.setattr(tokens, "_begun", set())
    told = [
        client.post(asks(LIVES, model="mistral"), user="u1", mode="read-only").headers["x-memory-tokenizer"]
        for _ in range(2)
    ]
    [loading] = [thread for thread in threading.enumerate() if thread.name == "tokenizer"]
    gate.set()
    loading.join(30)
    told.append(client.post(asks(LIVES, model="mistral"), user="u1", mode="read-only").headers["x-memory-tokenizer"])
    assert told == ["o200k_base", "o200k_base", "mistral"]


@pytest.mark.parametrize(
    "headers",
    [
        *({"include": "files,everything"}, {"max-tokens": "8001"}, {"max-tokens": "-1"}, {"max-tokens": "many"}),
        {"tokenizer": "nonsense"},
    ],
)
def test_a_wish_that_cannot_be_is_refused(client: Client, endpoint: Endpoint, headers: dict[str, str]) -> None:
    answer = client.post(asks(LIVES), user="u1", **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_header")
    assert endpoint.requests == []


def test_without_a_person_the_request_goes_on_as_it_is(client: Client, endpoint: Endpoint) -> None:
    body = b'{"model":"m",  "messages":[{"role":"user","content":"Hi"}], "unknown": 1}'
    seen: list[dict[str, Any]] = []
    answer = client.post(body)
    seen.extend(endpoint.requests)
    assert seen == [json.loads(body)]
    assert (answer.headers["x-memory"], answer.headers["x-memory-reason"]) == ("none", "no_user")
    assert stored() == []


@pytest.mark.parametrize("headers", [{}, {"session": "s1"}])
def test_each_message_is_a_turn_once_though_all_are_sent_again(
    client: Client, endpoint: Endpoint, headers: dict[str, str]
) -> None:
    said: list[str] = []
    for number in range(6):
        said.append(f"Question {number}")
        endpoint.responds(says(f"Reply {number}"))
        said.append(client.post(asks(*said), user="u1", **headers).json()["choices"][0]["message"]["content"])
    assert [text for _, text in stored()] == said
    assert Session.objects.count() == 1


def test_a_conversation_that_begins_alike_is_another(client: Client, endpoint: Endpoint) -> None:
    endpoint.responds(says("Hello!"))
    client.post(asks("Hi"), user="u1")
    client.post(asks("Hi"), user="u1")
    assert Session.objects.count() == 2


def test_a_secret_is_not_kept_and_does_not_break_the_comparison(client: Client, endpoint: Endpoint) -> None:
    secret = "My password is hunter2-Xy7!qq"
    endpoint.responds(says("Noted."))
    client.post(asks(secret), user="u1", session="s1")
    assert "hunter2-Xy7!qq" in json.dumps(endpoint.requests[0])
    client.post(asks(secret, "Noted.", "And now?"), user="u1", session="s1")
    assert [role for role, _ in stored()] == ["user", "assistant", "user", "assistant"]
    assert "hunter2" not in json.dumps(stored())


def test_tools_are_kept_as_they_were_called(client: Client, endpoint: Endpoint) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Leiden"}'}}
    endpoint.responds(says(None, "tool_calls", tool_calls=[call]), says("It rains."))
    document = asks("Does it rain?", tools=[{"type": "function", "function": {"name": "weather"}}])
    assert client.post(document, user="u1").json()["choices"][0]["message"]["tool_calls"] == [call]
    document["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Rain"},
    ]
    client.post(document, user="u1")
    turns = list(Turn.objects.order_by("number").values_list("role", "content", "tool_call_id"))
    assert turns == [
        ("user", "Does it rain?", ""),
        ("assistant", "", ""),
        ("tool", "Rain", "call_1"),
        ("assistant", "It rains.", ""),
    ]
    assert Turn.objects.get(number=2).tool_calls == [call]


def test_a_picture_is_sent_on_whole_and_kept_as_a_mark(client: Client, endpoint: Endpoint) -> None:
    url = "data:image/png;base64," + "A" * 5_000
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    client.post({"model": "m", "messages": [{"role": "user", "content": parts}]}, user="u1")
    assert endpoint.requests[0]["messages"][-1]["content"] == parts
    turn = Turn.objects.get(number=1)
    assert turn.content == "What is this?"
    assert "AAAA" not in json.dumps(turn.parts)
    assert "image/png" in json.dumps(turn.parts)


@pytest.mark.parametrize(
    ("more", "headers", "told"),
    [
        ({}, {"mode": "read-only"}, "used"),
        ({"store": False}, {}, "used"),
        ({}, {"mode": "off"}, "none"),
    ],
)
def test_the_application_can_keep_nothing(
    client: Client, endpoint: Endpoint, known: None, more: dict[str, Any], headers: dict[str, str], told: str
) -> None:
    answer = client.post(asks(LIVES, **more), user="u1", **headers)
    assert answer.headers["x-memory"] == told
    assert ("Lives in Leiden" in json.dumps(endpoint.requests)) == (told == "used")
    assert stored() == []


def test_no_conversation_waits_for_its_memory(
    client: Client, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, known: None
) -> None:
    monkeypatch.setattr(gateway, "RECALL_SECONDS", 0.0)
    answer = client.post(asks(LIVES), user="u1")
    assert answer.status_code == 200
    assert (answer.headers["x-memory"], answer.headers["x-memory-reason"]) == ("none", "timeout")
    assert stored()[0] == ("user", LIVES)
    assert Session.objects.get().external_id == answer.headers["x-memory-session"]


def test_what_was_said_is_kept_as_cut_when_the_client_leaves(client: Client, endpoint: Endpoint) -> None:
    def half(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        event = events("It is a long st")[0]
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
        handler.wfile.flush()
        handler.endpoint.ended.wait(60)

    endpoint.responds(half)
    body = json.dumps(asks("Tell me a story", stream=True)).encode()
    host, _, port = client.address.removeprefix("http://").partition("/")[0].partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {client.key}\r\n"
        head += f"X-Memory-User: u1\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        received = b""
        while b"long st" not in received:
            received += connection.recv(65_536)
    wait_for_turns(2)
    assert stored() == [("user", "Tell me a story"), ("assistant", "It is a long st")]
    assert Turn.objects.get(number=2).metadata == {"cut": True}


def wait_for_turns(count: int) -> None:
    wait_until(lambda: Turn.objects.count() == count)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"bearer": "mh_wrong"}, 401, "invalid_api_key"),
        ({"mode": "perhaps"}, 400, "invalid_header"),
        ({"user": "x" * 256}, 400, "invalid_header"),
    ],
)
def test_what_the_gateway_refuses_has_the_shape_of_the_client_s_library(
    client: Client, endpoint: Endpoint, headers: dict[str, str], status: int, code: str
) -> None:
    answer = client.post(asks("Hi"), **{"user": "u1", **headers})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert endpoint.requests == []


def test_the_caller_s_own_account_pays_when_the_hub_s_key_comes_beside_it(client: Client, endpoint: Endpoint) -> None:
    client.post(asks("Hi"), user="u1", key=client.key, bearer="sk-of-the-caller")
    assert endpoint.headers[0]["Authorization"] == "Bearer sk-of-the-caller"
    told = {name.lower() for name in endpoint.headers[0]}
    assert not {name for name in told if name.startswith("x-memory")}
    assert client.key not in str(endpoint.headers[0])


def test_without_an_endpoint_it_says_so(client: Client, settings: Any) -> None:
    settings.OPENAI_BASE_URL = settings.OPENAI_API_KEY = ""
    answer = client.post(asks("Hi"), user="u1")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_endpoint")


def test_connections_that_were_cut_are_made_again(client: Client, endpoint: Endpoint) -> None:
    endpoint.responds(says("Hello."))
    client.post(asks("Hi"), user="u1", session="s1")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.rowcount > 0
    answer = client.post(asks("Hi", "Hello.", "And now?"), user="u1", session="s1")
    assert answer.status_code == 200
    assert answer.headers.get("x-memory-reason") != "error"
    assert [text for _, text in stored()] == ["Hi", "Hello.", "And now?", "Hello."]


@pytest.mark.parametrize("path", ["/chat/completions", "/messages"])
def test_while_the_database_is_away_it_says_when_to_come_again(
    client: Client, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("secret of somebody")

    monkeypatch.setattr(memory, "find_key", away)
    answer = client.post(asks("Hi"), user="u1", path=path)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "The database cannot answer" in answer.text
    assert "secret" not in answer.text
    assert endpoint.requests == []


def test_what_it_cannot_read_goes_on_for_the_endpoint_to_refuse(client: Client, endpoint: Endpoint) -> None:
    endpoint.responds(sends(b'{"error": {"message": "no messages"}}', 400))
    answer = client.post({"model": "m", "messages": "none"}, user="u1")
    assert (answer.status_code, answer.headers["x-memory-reason"]) == (400, "unreadable")
    for body in (b"[1]", b"{", b"[" * 100_000):
        refused = client.post(body, user="u1")
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_json")


TOO_MUCH = {
    "messages": {"model": "m", "messages": [{"role": "user", "content": "x"}] * (limits.MOST_MESSAGES + 1)},
    "values": {"model": "m", "messages": [], "tools": [[1] * 1_000] * (limits.MOST_VALUES // 1_000)},
    "secrets": {"model": "m", "messages": [{"role": "user", "content": "pw " * 100_000}]},
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_what_the_hub_could_not_keep_is_refused_before_anybody_is_asked(
    client: Client, endpoint: Endpoint, what: str
) -> None:
    answer = client.post(TOO_MUCH[what], user="u1")
    code = "too_many_secrets" if what == "secrets" else "too_large"
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, code)
    assert (endpoint.requests, Turn.objects.count()) == ([], 0)


def test_a_long_conversation_is_kept(client: Client, endpoint: Endpoint) -> None:
    said_so_far = [{"role": ("user", "assistant")[at % 2], "content": f"{at} my password is long"} for at in range(999)]
    assert client.post({"model": "m", "messages": said_so_far}, user="u1").status_code == 200
    wait_until(lambda: Turn.objects.count() == 1_000)


@pytest.mark.parametrize("path", ["/chat/completions", "/messages"])
def test_while_the_hub_is_busy_it_says_when_to_come_again(
    client: Client, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def busy(*_: Any) -> None:
        raise HubBusy(7)

    monkeypatch.setattr(Admission, "ask", busy)
    answer = client.post(asks("Hi"), user="u1", path=path)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    assert endpoint.requests == []
