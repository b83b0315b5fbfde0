"""The protocol against a stand-in for OpenAI that others wrote, with its faults and its judgement."""

import json
from dataclasses import replace

import pytest
from llmock.pytest_plugin import LLMock

from memories.conf import LLMConfig
from memories.exceptions import ModelAnswerTruncated, ModelMisconfigured, ModelRateLimited, ModelUnavailable
from memories.llm import client
from memories.llm.calls import Completion
from memories.llm.prompts.memory_update import CandidateFact, MemoryUpdate
from tests.llm.conftest import ANSWER, CONFIG, MESSAGES

FACT = {"content": "住在杭州", "confidence": 0.95}


@pytest.fixture
def config(llmock: LLMock) -> LLMConfig:
    return replace(CONFIG, base_url=llmock.base_url())


def ask(config: LLMConfig) -> Completion[MemoryUpdate]:
    return client.complete(messages=MESSAGES, answer=ANSWER, config=config)


def test_a_scripted_reply(llmock: LLMock, config: LLMConfig) -> None:
    llmock.reply(json.dumps({"new_facts": [FACT]}))
    assert ask(config).answer.new_facts == [FACT]
    (request,) = llmock.requests
    assert request.path == "/v1/chat/completions"


def test_an_answer_made_up_from_our_schema_is_valid(config: LLMConfig) -> None:
    (item,) = ask(config).answer.new_facts
    assert CandidateFact.model_validate(item).category == "identity"


def test_one_http_call_per_fault_whatever_it_is(llmock: LLMock, config: LLMConfig) -> None:
    llmock.rate_limit(retry_after=3).fail(503).fail(401).context_overflow()
    with pytest.raises(ModelRateLimited) as limited:
        ask(config)
    assert limited.value.retry_after == 3
    for expected in (ModelUnavailable, ModelMisconfigured, ModelAnswerTruncated):
        with pytest.raises(expected):
            ask(config)
    assert len(llmock.requests) == 4
