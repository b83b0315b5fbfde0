"""Chat Completions over real sockets: the request as rules ask for it, and every fault as its ModelError."""

import json
import logging
import os
import time
from dataclasses import replace
from typing import Any

import pytest

from memories.conf import LLMConfig
from memories.exceptions import (
    ModelAnswerInvalid,
    ModelAnswerTruncated,
    ModelError,
    ModelMisconfigured,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from memories.llm import client
from memories.llm.backends import openai_client
from memories.llm.backends.transport import LARGEST_BODY
from memories.llm.calls import Completion
from memories.llm.prompts.memory_update import MemoryUpdate
from tests.llm import endpoint as at
from tests.llm.conftest import ANSWER, MESSAGES
from tests.llm.endpoint import Endpoint, Response

FACT = {"content": "喜欢喝茶", "confidence": 0.9}
GOOD = json.dumps({"new_facts": [FACT]}, ensure_ascii=False)
OTHER = GOOD.replace("茶", "咖啡")
BIG = 9 * 1024 * 1024


def ask(config: LLMConfig, **options: Any) -> Completion[MemoryUpdate]:
    return client.complete(messages=MESSAGES, answer=ANSWER, config=config, **options)


def test_an_answer_with_its_costs(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.says(GOOD))
    done = ask(config)
    assert done.answer.new_facts == [FACT]
    assert (done.model, done.extractor, done.calls) == ("m", "llm:m", 1)
    assert (done.prompt_tokens, done.completion_tokens) == (12, 34)


def test_the_request(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.says(GOOD))
    ask(config)
    (request,), (headers,) = endpoint.requests, endpoint.headers
    assert request == {
        "model": "m",
        "messages": MESSAGES,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "memory_update", "strict": True, "schema": ANSWER.schema},
        },
    }
    assert headers["Authorization"] == "Bearer sk-of-a-test"
    assert headers["Accept-Encoding"] == "identity"


def test_an_endpoint_of_ones_own_needs_no_key(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.says(GOOD))
    assert ask(replace(config, api_key="")).calls == 1


@pytest.mark.parametrize(
    "content",
    [f"```json\n{GOOD}\n```", f"<think>{{hm}}</think>{GOOD}", [{"type": "text", "text": GOOD}]],
    ids=["fence", "thinking", "parts"],
)
def test_answers_in_wrappings(endpoint: Endpoint, config: LLMConfig, content: Any) -> None:
    endpoint.responds(at.says(content))
    assert ask(config).answer.new_facts == [FACT]


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning_content": f"Draft: {OTHER}. Answer: {GOOD}"},
        {"reasoning": GOOD},
        {"tool_calls": [{"type": "function", "function": {"name": "memory_update", "arguments": GOOD}}]},
        {"tool_calls": [{"function": {"name": "memory_update", "arguments": json.loads(GOOD)}}], "reasoning": OTHER},
        {"function_call": {"name": "memory_update", "arguments": GOOD}},
    ],
    ids=["reasoning content", "reasoning", "tool call", "tool call of an object", "function call"],
)
@pytest.mark.parametrize("content", [None, "", " \n"])
def test_answers_beside_an_empty_content(
    endpoint: Endpoint, config: LLMConfig, content: str | None, message: dict[str, Any]
) -> None:
    endpoint.responds(at.says(content, **message))
    assert ask(config).answer.new_facts == [FACT]


def test_thinking_does_not_stand_for_an_answer(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.says("I cannot tell.", reasoning_content=GOOD))
    with pytest.raises(ModelAnswerInvalid):
        ask(config)


@pytest.mark.parametrize("usage", [None, {}, "x", {"prompt_tokens": None, "completion_tokens": -1}])
def test_usage_may_be_missing(endpoint: Endpoint, config: LLMConfig, usage: Any) -> None:
    endpoint.responds(at.sends(json.dumps({**at.envelope(GOOD), "usage": usage}).encode()))
    done = ask(config)
    assert (done.prompt_tokens, done.completion_tokens) == (0, 0)


FAULTS: dict[str, tuple[Response, type[ModelError]]] = {
    "429": (at.fails(429), ModelRateLimited),
    "500": (at.fails(500), ModelUnavailable),
    "503": (at.fails(503), ModelUnavailable),
    "408": (at.fails(408), ModelUnavailable),
    "401": (at.fails(401), ModelMisconfigured),
    "403": (at.fails(403), ModelMisconfigured),
    "404": (at.fails(404), ModelMisconfigured),
    "413": (at.fails(413), ModelAnswerTruncated),
    "too long, said by code": (at.fails(400, "context_length_exceeded"), ModelAnswerTruncated),
    "too long, said in words": (at.fails(400, "exceeds the available context size"), ModelAnswerTruncated),
    "filtered prompt": (at.fails(400, "ResponsibleAI: content_filter"), ModelRefused),
    "redirect": (at.sends(b"", 307, Location="http://127.0.0.1:9/"), ModelMisconfigured),
    "deep error": (at.sends(b'{"error":' * 50_000, 500), ModelUnavailable),
    "error that is no object": (at.sends(b'["\\ud800"]', 404), ModelMisconfigured),
    "strange charset": (at.sends(b"\xff\xfe", 500, Content_Type="text/plain; charset=klingon"), ModelUnavailable),
    "reset": (at.resets, ModelUnavailable),
    "closed": (at.closes, ModelUnavailable),
    "ends early": (at.ends_early, ModelUnavailable),
    "no HTTP": (at.speaks_ssh, ModelUnavailable),
    "8 MB and more": (at.says("x" * BIG), ModelAnswerInvalid),
    "8 MB and more of an error": (at.fails(500, "x" * BIG), ModelAnswerInvalid),
    "without end": (at.never_ends, ModelAnswerInvalid),
    "compressed": (at.sends(b"\x1f\x8b", Content_Encoding="gzip"), ModelAnswerInvalid),
    "nearly 8 MB of prose": (at.says("x" * (LARGEST_BODY - 1_000)), ModelAnswerInvalid),
    "empty body": (at.sends(b""), ModelAnswerInvalid),
    "malformed body": (at.sends(b'{"choices": ['), ModelAnswerInvalid),
    "deep body": (at.sends(b'{"choices":' * 50_000), ModelAnswerInvalid),
    "deep content": (at.says('{"new_facts":' * 50_000), ModelAnswerInvalid),
    "bad UTF-8": (at.sends(json.dumps(at.envelope(GOOD)).encode().replace(b"m", b"\xff")), ModelAnswerInvalid),
    "UTF-16": (at.sends(json.dumps(at.envelope(GOOD)).encode("utf-16")), ModelAnswerInvalid),
    "a page": (at.sends(b"<html>", Content_Type="text/html"), ModelAnswerInvalid),
    "an event stream": (at.sends(b"data: {}\n\n", Content_Type="text/event-stream"), ModelAnswerInvalid),
    "null": (at.sends(b"null"), ModelAnswerInvalid),
    "empty choices": (at.sends(b'{"choices": []}'), ModelAnswerInvalid),
    "choices of another type": (at.sends(b'{"choices": {"0": 1}}'), ModelAnswerInvalid),
    "an error with status 200": (at.sends(b'{"error": {"message": "no"}}'), ModelAnswerInvalid),
    "a rate limit with status 200": (at.sends(b'{"error": {"message": "no", "code": 429}}'), ModelRateLimited),
    "an outage with status 200": (at.sends(b'{"error": {"message": "overloaded"}}'), ModelUnavailable),
    "a filter with status 200": (at.sends(b'{"error": {"message": "Input was flagged", "code": "403"}}'), ModelRefused),
    "MiniMax": (
        at.sends(b'{"choices": null, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}'),
        ModelRateLimited,
    ),
    "an error in the choice": (
        at.sends(b'{"choices": [{"error": {"code": 502}, "finish_reason": "error"}]}'),
        ModelUnavailable,
    ),
    "moderated": (at.fails(403, "Your input was flagged by moderation"), ModelRefused),
    "a request beyond every rate": (at.fails(429, "Request too large for m on tokens per min"), ModelAnswerTruncated),
    "too long, said with 500": (at.fails(500, "the request exceeds the available context size"), ModelAnswerTruncated),
    "NaN as the message": (at.sends(b'{"choices": [{"message": NaN}]}'), ModelAnswerInvalid),
    "null content": (at.says(None), ModelAnswerInvalid),
    "blank content": (at.says(" \n"), ModelAnswerInvalid),
    "malformed content": (at.says('{"new_facts": ['), ModelAnswerInvalid),
    "wrong schema": (at.says('{"facts": []}'), ModelAnswerInvalid),
    "truncated": (at.says(GOOD[:10], "length"), ModelAnswerTruncated),
    "truncated, and whole by chance": (at.says(GOOD, "length"), ModelAnswerTruncated),
    "refusal": (at.says(None, refusal="I will not."), ModelRefused),
    "filtered": (at.says(GOOD, "content_filter"), ModelRefused),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, endpoint: Endpoint, config: LLMConfig, caplog: pytest.LogCaptureFixture) -> None:
    respond, expected = FAULTS[fault]
    endpoint.responds(respond)
    with caplog.at_level(logging.INFO), pytest.raises(ModelError) as failed:
        ask(config)
    assert type(failed.value) is expected
    assert len(endpoint.requests) == 1
    said = f"{failed.value} {caplog.text}"
    assert not [secret for secret in ("private words", "sk-of-a-test", "喜欢", "overloaded") if secret in said]
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None or failed.value.__suppress_context__


@pytest.mark.parametrize("respond", [at.hangs, at.drips_headers, at.drips_body], ids=["hang", "headers", "body"])
def test_the_whole_call_ends_at_its_deadline(respond: Response, endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(respond)
    started = time.monotonic()
    with pytest.raises(ModelTimeout):
        ask(replace(config, timeout=0.5))
    assert 0.4 < time.monotonic() - started < 1.5


@pytest.mark.parametrize(
    "base_url",
    ["http://127.0.0.1:1/v1", "http://name.invalid/v1", "https://127.0.0.1:1"],
    ids=["closed", "no such name", "closed, TLS"],
)
def test_nobody_there(base_url: str, config: LLMConfig) -> None:
    with pytest.raises(ModelUnavailable):
        ask(replace(config, base_url=base_url))


def test_no_tls_where_tls_is_expected(endpoint: Endpoint, config: LLMConfig) -> None:
    with pytest.raises(ModelUnavailable):
        ask(replace(config, base_url=endpoint.url.replace("http:", "https:")))


@pytest.mark.parametrize(
    "changes",
    [{"base_url": "http://[half"}, {"base_url": "http://x:port/"}, {"api_key": "键"}],
    ids=["address", "port", "key"],
)
def test_settings_that_cannot_be_used(changes: dict[str, Any], config: LLMConfig) -> None:
    with pytest.raises(ModelMisconfigured) as failed:
        ask(replace(config, **changes))
    assert "键" not in str(failed.value)


@pytest.mark.parametrize("base_url", ["127.0.0.1:1/v1", "ftp://127.0.0.1/v1"])
def test_an_address_without_http_is_no_place_to_go(base_url: str, config: LLMConfig) -> None:
    with pytest.raises(ModelError):
        ask(replace(config, base_url=base_url))


@pytest.mark.parametrize(
    ("status", "said", "understood"),
    [
        (503, "7", 7.0),
        (429, "0.5", 0.5),
        (429, "-3", 0.0),
        (429, "1e12", 86_400.0),
        (429, "Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        (429, "Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
        (429, "nan", None),
        (429, "inf", None),
        (429, "soon", None),
        (429, "", None),
    ],
)
def test_retry_after(status: int, said: str, understood: float | None, endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.fails(status, Retry_After=said))
    with pytest.raises(ModelError) as failed:
        ask(config)
    assert failed.value.retryable
    assert failed.value.retry_after == understood


def test_a_proxy_of_the_environment_is_used(
    endpoint: Endpoint, config: LLMConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.responds(at.says(GOOD))
    monkeypatch.setenv("http_proxy", endpoint.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "elsewhere.invalid")
    assert ask(replace(config, base_url="http://model.invalid/v1")).calls == 1
    assert endpoint.headers[0]["Host"] == "model.invalid"
    with pytest.raises(ModelUnavailable):
        ask(replace(config, base_url="http://elsewhere.invalid/v1"))


def test_a_forked_child_asks_with_a_client_of_its_own(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.says(GOOD))
    ask(config)
    ask(config)
    assert openai_client.client_of.cache_info().misses == 1
    child = os.fork()
    if not child:
        os._exit(_clients_made_in_all(config))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert len(endpoint.requests) == 3


def _clients_made_in_all(config: LLMConfig) -> int:
    try:
        ask(config)
    except ModelError:
        return 100
    return openai_client.client_of.cache_info().misses
