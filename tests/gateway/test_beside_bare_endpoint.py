"""OpenAI's own library through the gateway beside the bare endpoint, answer by answer: what it sends arrives whole, and
what the endpoint answers comes back byte for byte."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import openai
import pytest

from memories.models import Tenant
from tests import factories
from tests.gateway.conftest import Client, stored, without_recalled
from tests.llm.endpoint import Endpoint, Handler

REMEMBERED = "Lives in Leiden"
USER = {"X-Memory-User": "u1"}
WORDS: Any = {"role": "user", "content": "Where do I live? 我住在哪里？"}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
WEATHER = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Leiden"}'}}
TOOLS = [{"type": "function", "function": WEATHER}]
CHATS: dict[str, dict[str, Any]] = {
    "words": {"messages": [WORDS], "temperature": 0.1, "seed": 7, "metadata": {"a": "b"}},
    "prompts": {"messages": [{"role": "developer", "content": [{"type": "text", "text": "Be brief."}]}, WORDS]},
    "three answers": {"messages": [WORDS], "n": 3, "logprobs": True, "top_logprobs": 2},
    "a picture": {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, PICTURE, SOUND]}]},
    "tools": {"messages": [WORDS], "tools": TOOLS, "tool_choice": "auto", "parallel_tool_calls": True},
    "a tool's answer": {
        "messages": [
            WORDS,
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": "Rain"},
        ],
        "tools": TOOLS,
    },
    "a form": {"messages": [WORDS], "response_format": {"type": "json_object"}, "max_completion_tokens": 5},
}
RESPONSES: dict[str, dict[str, Any]] = {
    "words": {"input": "Where do I live?", "instructions": "Be brief.", "store": True},
    "a picture": {
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is it?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
                ],
            }
        ]
    },
    "tools": {"input": "Does it rain?", "tools": [{"type": "function", **WEATHER}], "include": []},
}
REFUSALS = {
    400: ("invalid_request_error", openai.BadRequestError),
    401: ("invalid_api_key", openai.AuthenticationError),
    404: ("model_not_found", openai.NotFoundError),
    422: ("unprocessable", openai.UnprocessableEntityError),
    429: ("rate_limit_exceeded", openai.RateLimitError),
    500: ("server_error", openai.InternalServerError),
    503: ("overloaded", openai.InternalServerError),
}
# They are the endpoint's, of an answer of either kind.
LIMITS = {
    "x-request-id": "req_1",
    "openai-processing-ms": "12",
    "openai-organization": "org",
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-tokens": "6m0s",
}
# A connection's own, and the gateway's.
NOT_COMPARED = (
    *("date", "server", "connection", "transfer-encoding"),
    *("x-memory", "x-memory-tokens", "x-memory-tokenizer", "x-memory-session"),
)


def answers(handler: Handler) -> None:
    """The scripted endpoint: every answer follows from the request without its messages."""
    asked = handler.asked
    if asked["model"].startswith("refuse-"):
        status = int(asked["model"].removeprefix("refuse-"))
        error = {"message": "No, 不行", "type": "requests", "param": "model", "code": REFUSALS[status][0]}
        limits = {**LIMITS, "Retry-After": "7", "retry-after-ms": "7000"}
        handler.whole(status, json.dumps({"error": error}, ensure_ascii=False).encode(), **limits)
    elif asked.get("stream"):
        _stream(handler, _response_events(asked) if "input" in asked else _chat_events(asked))
    else:
        document = _response(asked) if "input" in asked else _chat(asked)
        # As some endpoints indent.
        handler.whole(200, json.dumps(document, indent=2, ensure_ascii=False).encode(), **LIMITS)


def _chat(asked: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "In 莱顿 🌷.", "refusal": None, "annotations": []}
    if "tools" in asked:
        message |= {"content": None, "tool_calls": [CALL, {**CALL, "id": "call_2"}]}
    choices = [
        {"index": at, "message": message, "finish_reason": "stop", "logprobs": _logprobs(asked)}
        for at in range(asked.get("n", 1))
    ]
    return {**_base("chat.completion"), "choices": choices, "usage": _USAGE, "service_tier": "default", "unknown": {}}


_USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}}


def _base(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "m", "system_fingerprint": "fp_1"}


def _logprobs(asked: dict[str, Any]) -> Any:
    token = {"token": "In", "logprob": -0.1, "bytes": [73, 110]}
    return {"content": [{**token, "top_logprobs": [token]}], "refusal": None} if asked.get("logprobs") else None


def _chat_events(asked: dict[str, Any]) -> list[str]:
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if "tools" in asked:
        pieces += [
            {"tool_calls": [{"index": 0, **CALL, "function": {"name": "weather", "arguments": ""}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]},
            {"tool_calls": [{"index": 1, **CALL, "id": "call_2"}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '"Leiden"}'}}]},
        ]
    else:
        pieces += [{"content": "In 莱"}, {"content": "顿 🌷."}]
    more = {"usage": None} if "stream_options" in asked else {}
    documents = [
        {**_base("chat.completion.chunk"), **more, "choices": [_piece(asked, at, piece)]}
        for piece in [*pieces, None]
        for at in range(asked.get("n", 1))
    ]
    if (asked.get("stream_options") or {}).get("include_usage"):
        documents.append({**_base("chat.completion.chunk"), "choices": [], "usage": _USAGE})
    lines = [f"data: {json.dumps(one, ensure_ascii=False)}\n\n" for one in documents]
    return [": a comment\n\n", *lines, "data: [DONE]\n\n"]


def _piece(asked: dict[str, Any], at: int, delta: dict[str, Any] | None) -> dict[str, Any]:
    ends: dict[str, Any] = {"delta": {}, "finish_reason": "tool_calls" if "tools" in asked else "stop"}
    return {
        "index": at,
        "logprobs": _logprobs(asked),
        **(ends if delta is None else {"delta": delta, "finish_reason": None}),
    }


def _response(asked: dict[str, Any]) -> dict[str, Any]:
    part = {"type": "output_text", "text": "In 莱顿 🌷.", "annotations": [], "logprobs": []}
    output: list[dict[str, Any]] = [
        {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}
    ]
    if "tools" in asked:
        function = {"name": "weather", "arguments": '{"city": "Leiden"}'}
        output.append({"type": "function_call", "id": "f1", "call_id": "call_1", "status": "completed", **function})
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    asking = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": asked.get("tools", []), "error": None}
    return {**base, **asking, "output": output, "unknown": {}}


def _response_events(asked: dict[str, Any]) -> list[str]:
    whole = _response(asked)
    at = {"item_id": "m1", "output_index": 0, "content_index": 0, "logprobs": []}
    documents: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
        {"type": "response.output_text.delta", **at, "delta": "In 莱"},
        {"type": "response.output_text.delta", **at, "delta": "顿 🌷."},
        *(
            {"type": "response.output_item.done", "output_index": n, "item": one}
            for n, one in enumerate(whole["output"])
        ),
        {"type": "response.completed", "response": whole},
    ]
    numbered = [{**one, "sequence_number": number} for number, one in enumerate(documents)]
    return [f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n" for one in numbered]


def _stream(handler: Handler, events: list[str]) -> None:
    """In chunks that end anywhere: in the middle of an event, and of a letter."""
    handler.send_response(200)
    for name, value in {
        "Content-Type": "text/event-stream; charset=utf-8",
        "Cache-Control": "no-cache",
        **LIMITS,
    }.items():
        handler.send_header(name, value)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    body = "".join(events).encode()
    for start in range(0, len(body), 37):
        piece = body[start : start + 37]
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        handler.wfile.flush()
    handler.wfile.write(b"0\r\n\r\n")


@pytest.fixture(autouse=True)
def scripted(endpoint: Endpoint, tenant: Tenant) -> None:
    endpoint.responds(answers)
    # It stands with the system prompt, whatever is asked.
    person = factories.end_user(tenant, external_id="u1")
    factories.fact(person, REMEMBERED, category="preference", key="home_city", value="Leiden")


@pytest.fixture
def bare(endpoint: Endpoint) -> openai.OpenAI:
    return openai.OpenAI(base_url=endpoint.url, api_key="sk-of-the-hub", max_retries=0)


@pytest.fixture
def through(client: Client) -> openai.OpenAI:
    return openai.OpenAI(base_url=client.address, api_key=client.key, default_headers=USER, max_retries=0)


def raw(client: openai.OpenAI, path: str, asked: dict[str, Any]) -> tuple[bytes, dict[str, str], dict[str, str]]:
    """The bytes of the answer, its headers that count, and those of the gateway."""
    create = client.with_streaming_response
    call = create.chat.completions.create if path == "chat" else create.responses.create
    with call(model="m", **asked) as answer:
        body = b"".join(answer.iter_bytes())
        headers = {name.lower(): value for name, value in answer.headers.items()}
    own = {name: value for name, value in headers.items() if name.startswith("x-memory")}
    return body, {name: value for name, value in headers.items() if name not in NOT_COMPARED}, own


def without_memory(document: dict[str, Any]) -> dict[str, Any]:
    """The request as the client sent it, which is checked to have been told what is remembered."""
    told = without_recalled(json.loads(json.dumps(document)))
    if "input" in told:
        if isinstance(told["input"], list) and isinstance(told["input"][0]["content"], str):
            # A text came that was all of the input.
            told["input"] = told["input"][0]["content"]
        own, _, memory = f"\n\n{told.pop('instructions')}".rpartition("Be brief.\n\n")
        assert REMEMBERED in memory
        return {**told, "instructions": "Be brief."} if own else told
    first = told["messages"][0]
    if isinstance(first["content"], list):
        assert REMEMBERED in first["content"].pop()["text"]
        return told
    assert REMEMBERED in told["messages"].pop(0)["content"]
    return told


def test_the_example_of_the_page(client: Client, endpoint: Endpoint) -> None:
    page = (Path(__file__).parents[2] / "docs/gateway.md").read_text("utf-8")
    [example] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(example.replace("http://127.0.0.1:8000/v1", client.address).replace("mh_…", client.key), names)
    answer = names["client"].chat.completions.create(model="m", messages=[WORDS])
    assert answer.choices[0].message.content == "In 莱顿 🌷."
    assert without_memory(endpoint.requests[-1]) == {"model": "m", "messages": [WORDS]}
    assert [role for role, _ in stored()] == ["user", "assistant"]


EVERY = [*(("chat", name) for name in CHATS), *(("responses", name) for name in RESPONSES)]


@pytest.mark.parametrize(("path", "name"), EVERY)
def test_request_and_answer_are_the_bare_endpoint_s(
    bare: openai.OpenAI, through: openai.OpenAI, endpoint: Endpoint, path: str, name: str
) -> None:
    document = (CHATS if path == "chat" else RESPONSES)[name]
    options = {"include_usage": True} if path == "chat" else {"include_obfuscation": False}
    for more in ({}, {"stream": True}, {"stream": True, "stream_options": options}):
        endpoint.requests.clear()
        expected, headers, _ = raw(bare, path, document | more)
        session = through.with_options(default_headers={"X-Memory-Session": f"s{len(more)}"})
        body, passed, own = raw(session, path, document | more)
        assert body == expected
        assert passed == headers
        assert passed.items() >= LIMITS.items()
        assert own["x-memory"] == "used"
        direct, told = endpoint.requests
        assert REMEMBERED not in str(direct)
        assert without_memory(told) == direct
        assert stored()[-1][0] == "assistant"


def test_a_refusal_is_the_library_s_own_error(bare: openai.OpenAI, through: openai.OpenAI) -> None:
    def refused(client: openai.OpenAI, status: int, stream: bool) -> openai.APIStatusError:
        with pytest.raises(REFUSALS[status][1]) as raised:
            client.chat.completions.create(model=f"refuse-{status}", messages=[WORDS], stream=stream)
        error: openai.APIStatusError = raised.value
        return error

    for status in REFUSALS:
        # As a stream is asked for, or not.
        expected, error = (refused(client, status, status % 2 == 0) for client in (bare, through))
        assert (error.status_code, error.message, error.body) == (expected.status_code, expected.message, expected.body)
        assert (error.code, error.param, error.type) == (REFUSALS[status][0], "model", "requests")
        assert error.request_id == "req_1"
        for name in ("retry-after", "retry-after-ms", *LIMITS):
            assert error.response.headers[name] == expected.response.headers[name]
    assert stored() == []


def test_the_library_that_does_not_block(client: Client, endpoint: Endpoint) -> None:
    """Several streams at once on one connection pool."""

    async def ask(library: openai.AsyncOpenAI) -> str:
        stream = await library.chat.completions.create(model="m", messages=[WORDS], stream=True)
        return "".join([event.choices[0].delta.content or "" async for event in stream])

    async def ask_all() -> list[str]:
        async with openai.AsyncOpenAI(base_url=client.address, api_key=client.key, default_headers=USER) as library:
            return list(await asyncio.gather(*[ask(library) for _ in range(8)]))

    assert asyncio.run(ask_all()) == ["In 莱顿 🌷."] * 8
    assert all(REMEMBERED in str(asked) for asked in endpoint.requests)
