"""A stand-in for OpenAI that others wrote makes an answer up from our schema: it is valid."""

from dataclasses import replace

from llmock.pytest_plugin import LLMock

from memories.llm import client
from memories.llm.prompts.memory_update import CandidateFact
from tests.llm.conftest import ANSWER, CONFIG, MESSAGES


def test_an_answer_made_up_from_our_schema_is_valid(llmock: LLMock) -> None:
    config = replace(CONFIG, base_url=llmock.base_url())
    (item,) = client.complete(messages=MESSAGES, answer=ANSWER, config=config).answer.new_facts
    assert CandidateFact.model_validate(item).category == "identity"
