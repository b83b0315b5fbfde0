"""Chat Completions as a stream: what is written so far, the whole at the end, and each fault as its ModelError."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from memories.conf import LLMConfig
from memories.exceptions import (
    ModelAnswerInvalid,
    ModelAnswerTruncated,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from memories.llm import client
from memories.llm.answers import GrowingItems
from memories.llm.backends import openai as openai_backend
from memories.llm.calls import Completion
from memories.llm.prompts.memory_update import MemoryUpdate
from tests.llm import endpoint as at
from tests.llm.conftest import ANSWER, MESSAGES
from tests.llm.endpoint import Endpoint, Response

GOOD = json.dumps({"new_facts": [{"content": "喜欢喝茶"}]}, ensure_ascii=False)


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    openai_backend._stream_of.clear()


def ask(config: LLMConfig, has_left: Callable[[], bool] | None = None) -> tuple[list[str], Completion[MemoryUpdate]]:
    """What was written when, and the answer."""
    asking = client.stream(
        messages=MESSAGES, answer=ANSWER, before_call=lambda: None, has_left=has_left, config=config, most_tokens=500
    )
    texts = []
    while True:
        try:
            texts.append(next(asking).content)
        except StopIteration as end:
            return texts, end.value


def events(*data: Any) -> Response:
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in data]
    return at.sends(b"".join(b"data: %b\r\n\r\n" % line for line in lines), Content_Type="text/event-stream")


def delta(**found: Any) -> dict[str, Any]:
    return {"choices": [{"delta": found}]}


def test_what_is_written_comes_as_it_grows(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.streams(GOOD[:20], GOOD[20:]))
    texts, done = ask(config)
    assert texts[:2] == [GOOD[:20], GOOD]
    assert done.answer.new_facts == [{"content": "喜欢喝茶"}]
    assert (done.prompt_tokens, done.completion_tokens, done.calls) == (12, 34, 1)


def test_a_refused_form_is_asked_in_a_simpler_one(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.fails(400, "response_format is not supported"), at.streams(GOOD))
    assert ask(config)[1].calls == 2
    assert endpoint.formats() == ["json_schema", "json_object"]
    assert all(one["stream"] for one in endpoint.requests)


def test_answers_of_thinking_models_and_in_calls_of_tools(endpoint: Endpoint, config: LLMConfig) -> None:
    call = [{"index": 0, "function": {"arguments": GOOD[:9]}}], [{"index": 0, "function": {"arguments": GOOD[9:]}}]
    for parts in (
        [delta(reasoning_content="hm"), delta(content=GOOD)],
        [delta(tool_calls=call[0]), delta(tool_calls=call[1])],
        [delta(reasoning=GOOD)],
        [{"choices": [{"message": {"content": GOOD}, "finish_reason": "stop"}]}],
    ):
        endpoint.responds(events(*parts, b"[DONE]"))
        assert ask(config)[1].answer.new_facts == [{"content": "喜欢喝茶"}]


FAULTS: dict[str, tuple[Response, type[ModelError]]] = {
    "no events": (at.sends(b"", Content_Type="text/event-stream"), ModelAnswerInvalid),
    "no JSON": (events(b"<html>"), ModelAnswerInvalid),
    "deep": (events(b'{"choices":' * 50_000), ModelAnswerInvalid),
    "bad UTF-8": (events(b'{"choices": "\xff"}'), ModelAnswerInvalid),
    "strange types": (
        events({"choices": {"0": 1}}, {"choices": [7]}, delta(content=7, tool_calls=7)),
        ModelAnswerInvalid,
    ),
    "an error on the way": (events(delta(content=GOOD), {"error": {"code": 429, "message": "no"}}), ModelRateLimited),
    "an error of the choice": (events({"choices": [{"error": {"code": 502}}]}), ModelUnavailable),
    "refusal": (events(delta(refusal="I will not.")), ModelRefused),
    "truncated": (at.streams(GOOD, finish_reason="length"), ModelAnswerTruncated),
    "cut off": (at.streams(GOOD[:15], ends=False), ModelAnswerInvalid),
    "without end": (at.streams(at.never_ends), ModelAnswerInvalid),
    "reset": (at.streams(GOOD[:15], at.resets, ends=False), ModelUnavailable),
    "429": (at.fails(429), ModelRateLimited),
    "closed": (at.closes, ModelUnavailable),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault: str, endpoint: Endpoint, config: LLMConfig) -> None:
    respond, expected = FAULTS[fault]
    endpoint.responds(respond)
    with pytest.raises(ModelError) as failed:
        ask(config)
    assert type(failed.value) is expected
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None or failed.value.__suppress_context__


@pytest.mark.parametrize("respond", [at.hangs, at.drips_body, at.streams("{", at.hangs)], ids=["head", "body", "event"])
def test_its_deadline_and_who_leaves_end_it(respond: Response, endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(respond)
    with pytest.raises(ModelTimeout):
        ask(replace(config, timeout=0.3))
    left = threading.Event()
    left.set()
    with pytest.raises(ModelError):
        ask(replace(config, timeout=60), left.is_set)


def new_by_letter(text: str) -> list[tuple[int, Any]]:
    """Where which item was complete."""
    items = GrowingItems("found")
    return [(end, one) for end in range(1, len(text) + 1) for one in items.new_in(text[:end])]


@pytest.mark.parametrize("before", ["", "\n", "```json\n", '<think>{"found": [{"a": 9}]}</think>\n'])
def test_items_are_there_with_their_last_brace(before: str) -> None:
    text = before + '{"found": [{"a": "}"}, {"a": {"b": [12]}}] }'
    assert new_by_letter(text) == [
        (text.index('"}"}') + 4, {"a": "}"}),
        (text.index("}}]") + 2, {"a": {"b": [12]}}),
    ]


@pytest.mark.parametrize(
    "text", ['Here: {"found": [{"a": 1}]}', '{"other": [{"a": 1}]}', '{"found": [7, {"a": 1}]}', '{"found": {"a": 1}}']
)
def test_nothing_is_certain_of_what_is_no_plain_answer(text: str) -> None:
    assert new_by_letter(text) == []


def test_what_cannot_be_stored_goes() -> None:
    assert new_by_letter('{"found": [{"a": "x\\u0000\\ud83d"}]}') == [(33, {"a": "x\ufffd"})]
