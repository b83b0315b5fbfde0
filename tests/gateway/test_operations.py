"""Each declared operation reaches its own address, opens to its scopes alone, takes bodies up to its size, and keeps
what it says that it keeps. A new operation is among them by itself."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from memories.curation.access.keys import Binding
from memories.gateway import operations
from memories.gateway.operations import OPERATIONS, Operation
from memories.models import Tenant, Turn
from tests import factories
from tests.gateway.wire import KEY, WORDS, Noting, Wire

ROOT = Path(__file__).parents[2]
VALUES = {"model": "org/m-1", "response": "resp_1", "conversation": "conv_1", "item": "msg_1"}
SAID = "I live in Leiden"
ENCRYPTED: Any = "reasoning.encrypted_content"
TALK: dict[str, Any] = {"conversation_id": "conv_1"}
# What each protocol says it in.
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "m", "messages": [{"role": "user", "content": SAID}]},
    "/v1/responses": {"model": "m", "input": SAID},
    "/v1/messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": SAID}]},
}
NAMES = [f"{one.method} {one.path}" for one in OPERATIONS]


def target(operation: Operation) -> str:
    return operation.path.format(**VALUES)


def body_of(operation: Operation) -> bytes:
    if not operation.most_bytes:
        return b""
    return json.dumps(BODIES.get(operation.path, {"model": "m", "input": SAID, "user": "u1"}), indent=1).encode()


@contextmanager
def no_more_than(operation: Operation, noted: Noting) -> Iterator[None]:
    """Nothing else comes to the endpoint."""
    noted.asked.clear()
    yield
    assert {(one.method, one.target) for one in noted.asked} <= {(operation.method, target(operation))}


@pytest.mark.parametrize("operation", OPERATIONS, ids=NAMES)
def test_it_reaches_its_own_address_and_keeps_what_it_says(sender: Wire, noted: Noting, operation: Operation) -> None:
    body = body_of(operation)
    own = (
        f"Authorization: Bearer {sender.key}",
        "X-Memory-User: u1",
        "Content-Type: application/json",
        "X-Title: mine",
    )
    answer = sender.ask(operation.method, f"{target(operation)}?limit=3", body, *own)
    assert (answer.status, answer.body) == (200, WORDS)
    [asked] = noted.asked
    assert (asked.method, asked.target, asked.body) == (operation.method, f"{target(operation)}?limit=3", body)
    header, before = operation.protocol.key_header
    assert (asked.headers[header], asked.headers["x-title"]) == (before + KEY, "mine")
    assert not [name for name in asked.headers if name.lower().startswith("x-memory")]
    assert bool(Turn.objects.filter(content=SAID)) is operation.converses
    assert ("x-memory" in answer.headers) is operation.converses


@pytest.mark.parametrize("operation", OPERATIONS, ids=NAMES)
def test_scopes(sender: Wire, noted: Noting, tenant: Tenant, operation: Operation) -> None:
    every = ("", "read", "ingest", "write privacy read_all", "ingest write", "read write", "ingest read")
    bound = (Binding(user_id="u1"), Binding(agent_id="a"))
    cases = [(Binding(), scopes) for scopes in every] + [(one, scopes) for one in bound for scopes in every[-2:]]
    for binding, scopes in cases:
        _, key = factories.api_key(tenant, scopes=scopes.split(), binding=binding)
        with no_more_than(operation, noted):
            answer = sender.ask(operation.method, target(operation), body_of(operation), key=key)
        opens = set(operation.scopes) <= set(scopes.split())
        assert (answer.status, len(noted.asked)) == ((200, 1) if opens else (403, 0)), (binding, scopes)
        assert opens or answer.error["type"] == "permission_error"


def test_a_key_that_only_reads_sends_nothing() -> None:
    """So it neither changes anything at the endpoint nor costs anything there."""
    assert {one.method for one in OPERATIONS if "ingest" not in one.scopes} == {"GET"}
    assert {"read" in one.scopes for one in OPERATIONS} == {True}


def test_no_operation_lists_what_is_everybody_s() -> None:
    """The endpoint's account is one for all people: a list would show what others said. By id, whoever has it asks."""
    lists = {one.path for one in OPERATIONS if one.method == "GET" and not one.has_parameters}
    assert lists == {"/v1/models"}


@pytest.mark.parametrize(
    "operation",
    [one for one in OPERATIONS if one.most_bytes < operations.CONVERSATION or one.converses],
    ids=lambda one: f"{one.method} {one.path}",
)
def test_bodies(sender: Wire, noted: Noting, operation: Operation) -> None:
    said, most = body_of(operation), operation.most_bytes
    for size in {most, most + 1}:
        body = said + b" " * (size - len(said))
        answer = sender.ask(operation.method, target(operation), body)
        if not most:
            # Its method has none.
            assert (answer.status, noted.asked[-1].body) == (200, b"")
        elif size > most:
            assert (answer.status, len(noted.asked)) == (413, 0)
            assert answer.error["message"]
        else:
            assert (answer.status, noted.asked.pop().body) == (200, body)


def test_a_body_that_the_server_does_not_take(sender: Wire, noted: Noting) -> None:
    """It is thrown away as it comes, and only its length is told."""
    answer = sender.ask("POST", "/v1/embeddings", b" " * (operations.CONVERSATION + 1))
    assert (answer.status, answer.error["code"], noted.asked) == (413, "too_large", [])


def test_other_methods_of_a_declared_path(sender: Wire, noted: Noting) -> None:
    for path in dict.fromkeys(one.path for one in OPERATIONS):
        declared = {one.method for one in OPERATIONS if one.path == path}
        for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"} - declared:
            answer = sender.ask(method, path.format(**VALUES))
            assert answer.status == 405, (method, path)
            assert set(answer.headers["allow"].split(", ")) == declared
    # A literal path is not a parameter of another one.
    assert sender.ask("GET", "/v1/responses/compact").status == 405
    assert noted.asked == []


def test_what_is_counted_and_logged_names_no_object() -> None:
    for one in OPERATIONS:
        assert operations.declared_path(target(one)) == one.path
    assert operations.declared_path("/v1/files/file_1") == ""


def test_openai_s_own_library(sender: Wire, noted: Noting) -> None:
    """Each call by which it reaches the operations that are passed on as they are."""
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{sender.server.port}/v1", api_key=sender.key, max_retries=0)
    said: Any = [{"type": "message", "role": "user", "content": SAID}]
    talks = client.conversations
    calls: dict[str, Any] = {
        "GET /v1/models": client.models.list,
        "GET /v1/models/{model}": lambda: client.models.retrieve(VALUES["model"]),
        "POST /v1/embeddings": lambda: client.embeddings.create(model="m", input=SAID, encoding_format="float"),
        "POST /v1/completions": lambda: client.completions.create(model="m", prompt=SAID),
        "POST /v1/responses/compact": lambda: client.responses.compact(model="m", input=SAID),
        "POST /v1/responses/input_tokens": lambda: client.responses.input_tokens.count(model="m", input=SAID),
        "GET /v1/responses/{response}": lambda: client.responses.retrieve("resp_1", include=[ENCRYPTED]),
        "DELETE /v1/responses/{response}": lambda: client.responses.delete("resp_1"),
        "POST /v1/responses/{response}/cancel": lambda: client.responses.cancel("resp_1"),
        "GET /v1/responses/{response}/input_items": lambda: client.responses.input_items.list("resp_1", order="asc"),
        "POST /v1/conversations": lambda: talks.create(items=said),
        "GET /v1/conversations/{conversation}": lambda: talks.retrieve("conv_1"),
        "POST /v1/conversations/{conversation}": lambda: talks.update("conv_1", metadata={"a": "b"}),
        "DELETE /v1/conversations/{conversation}": lambda: talks.delete("conv_1"),
        "GET /v1/conversations/{conversation}/items": lambda: talks.items.list("conv_1", limit=2),
        "POST /v1/conversations/{conversation}/items": lambda: talks.items.create("conv_1", items=said),
        "GET /v1/conversations/{conversation}/items/{item}": lambda: talks.items.retrieve("msg_1", **TALK),
        "DELETE /v1/conversations/{conversation}/items/{item}": lambda: talks.items.delete("msg_1", **TALK),
    }  # fmt: skip
    for name, call in calls.items():
        call()
        method, path = name.split(" ")
        [(came, address)] = noted.targets()
        assert (came, address.partition("?")[0]) == (method, path.format(**VALUES)), name
    passed = {f"{one.method} {one.path}" for one in OPERATIONS if not one.converses}
    assert passed - set(calls) == {"POST /v1/messages/count_tokens"}
    assert not Turn.objects.exists()
    with pytest.raises(openai.NotFoundError, match=r"docs/gateway\.md"):
        client.files.list()


def test_an_answer_that_is_too_deep_passes_by(sender: Wire, noted: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b'{"id": "x", "choices": [{"message": {"content": "Yes", "x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}}]}"
    monkeypatch.setattr("tests.gateway.wire.WORDS", deep)
    answer = sender.ask(
        "POST", "/v1/chat/completions", json.dumps({**BODIES["/v1/chat/completions"], "user": "u1"}).encode()
    )
    assert (answer.status, answer.body) == (200, deep)
    assert list(Turn.objects.values_list("role", "content")) == [("user", SAID)]


def test_the_page_has_the_same_table() -> None:
    page = (ROOT / "docs/gateway.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+) (/v1/[^`]*)` \|.*\| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    sizes = {operations.CONVERSATION: "10 MB", operations.TEXTS: "4 MB", operations.NAMES: "64 KB", 0: "–"}
    assert [(method, path, scopes, most) for method, path, scopes, most in rows] == [
        (one.method, one.path, ", ".join(f"`{scope}`" for scope in one.scopes), sizes[one.most_bytes])
        for one in OPERATIONS
    ]
