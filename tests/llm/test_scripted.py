"""The scripted backend: the first entry that fits, read as a model's answer would be."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memories.conf import LLMConfig
from memories.exceptions import ModelAnswerInvalid, ModelMisconfigured, ModelRateLimited
from memories.llm import client, tokens
from memories.llm.backends import scripted
from memories.llm.calls import Completion
from memories.llm.prompts.framing import Message
from memories.llm.prompts.memory_update import MemoryUpdate
from tests.llm.conftest import ANSWER, CONFIG

TEA: dict[str, Any] = {"new_facts": [{"content": "喜欢喝茶", "confidence": 0.9}]}
COFFEE: dict[str, Any] = {"new_facts": [{"content": "Likes coffee", "confidence": 0.9}]}


@pytest.fixture(autouse=True)
def _empty_outbox() -> Iterator[None]:
    scripted.outbox.clear()
    yield
    scripted.outbox.clear()


class Script:
    def __init__(self, path: Path) -> None:
        self.path = path

    def holds(self, *entries: dict[str, Any]) -> None:
        self.path.write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")

    @property
    def config(self) -> LLMConfig:
        return replace(CONFIG, mode="scripted", script=str(self.path))

    def ask(self, said: str = "") -> Completion[MemoryUpdate]:
        messages: list[Message] = [{"role": "user", "content": said}]
        return client.complete(messages=messages, answer=ANSWER, config=self.config)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "script.json")


def test_the_first_entry_that_fits_answers(script: Script) -> None:
    script.holds(
        {"name": "fact_judgement", "answer": {}},
        {"match": "茶|tea", "answer": TEA},
        {"name": "memory_update", "answer": COFFEE},
    )
    assert script.ask("我喜欢茶").answer.new_facts == TEA["new_facts"]
    assert script.ask("coffee").answer.new_facts == COFFEE["new_facts"]


def test_an_answer_with_its_costs(script: Script) -> None:
    script.holds({"answer": TEA})
    done = script.ask("one two")
    assert (done.model, done.extractor, done.calls) == ("scripted", "llm:scripted", 1)
    assert done.prompt_tokens == tokens.count("one two")
    assert done.completion_tokens == tokens.count(json.dumps(TEA))


def test_nothing_fits_then_the_answer_says_nothing(script: Script) -> None:
    script.holds({"match": "tea", "answer": TEA})
    assert script.ask("coffee").answer == MemoryUpdate(new_facts=[])


def test_an_entry_serves_as_often_as_it_says(script: Script) -> None:
    script.holds({"times": 1, "answer": TEA}, {"times": 2, "answer": COFFEE})
    served = [script.ask().answer.new_facts for _ in range(4)]
    assert served == [TEA["new_facts"], COFFEE["new_facts"], COFFEE["new_facts"], []]


def test_errors_and_raw_text(script: Script) -> None:
    script.holds(
        {"times": 1, "error": "model_rate_limited", "retry_after": 7},
        {"times": 1, "raw": '{"new_facts": ['},
        {"raw": f"```json\n{json.dumps(TEA)}\n```"},
    )
    with pytest.raises(ModelRateLimited) as limited:
        script.ask()
    assert limited.value.retry_after == 7
    with pytest.raises(ModelAnswerInvalid):
        script.ask()
    assert script.ask().answer.new_facts == TEA["new_facts"]


def test_one_entry_a_line(script: Script) -> None:
    script.path.write_text(f"{json.dumps({'match': 'tea', 'answer': TEA})}\n{json.dumps({'answer': COFFEE})}\n")
    assert script.ask("tea").answer.new_facts == TEA["new_facts"]
    assert script.ask("milk").answer.new_facts == COFFEE["new_facts"]


def test_a_changed_file_is_read_again(script: Script) -> None:
    script.holds({"answer": TEA})
    script.ask()
    script.holds({"answer": COFFEE})
    assert script.ask().answer.new_facts == COFFEE["new_facts"]


def test_the_outbox_keeps_what_was_asked(script: Script) -> None:
    script.holds()
    script.ask("what the model was shown")
    (call,) = scripted.outbox
    assert call.messages[-1]["content"] == "what the model was shown"


@pytest.mark.parametrize("text", ["[", "{}\n[]", '[{"anser": {}}]', '[{"match": "("}]', '["text"]'])
def test_a_script_that_cannot_be_read(text: str, script: Script) -> None:
    script.path.write_text(text)
    with pytest.raises(ModelMisconfigured, match="MEMORYHUB_LLM_SCRIPT"):
        script.ask()


def test_no_script(script: Script) -> None:
    with pytest.raises(ModelMisconfigured, match="MEMORYHUB_LLM_SCRIPT"):
        script.ask()
