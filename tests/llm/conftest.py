"""Fixtures of the model's tests: an endpoint on loopback and the question that is put to it. No database."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from memories.conf import LLMConfig
from memories.llm.answers import AnswerFormat
from memories.llm.backends import openai as openai_backend
from memories.llm.backends import openai_client
from memories.llm.prompts import memory_update
from memories.llm.prompts.framing import Message
from tests.llm.endpoint import Endpoint, running

ANSWER: AnswerFormat[memory_update.MemoryUpdate] = memory_update.ANSWER
MESSAGES: list[Message] = [
    {"role": "system", "content": "Answer in JSON."},
    {"role": "user", "content": "the private words of a person"},
]
CONFIG = LLMConfig(mode="openai", model="m", timeout=5, concurrency=1, api_key="sk-of-a-test", base_url="", script="")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with running() as endpoint:
        yield endpoint


@pytest.fixture
def config(endpoint: Endpoint) -> LLMConfig:
    return replace(CONFIG, base_url=endpoint.url)


@pytest.fixture(autouse=True)
def _fresh_process() -> Iterator[None]:
    """What a process remembers of endpoints is forgotten between tests: loopback ports come again."""
    yield
    openai_client.client_of.cache_clear()
    openai_backend._first_form.clear()
    openai_backend._limit_of.clear()
