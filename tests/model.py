"""A language model for tests of the pipeline: it answers what it is told to, and may wait at a gate meanwhile."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection

from memories.llm import client
from memories.llm.answers import A, parse
from memories.llm.calls import Call, Completion
from tests import summaries
from tests.database import PATIENCE

Answer = dict[str, Any] | Exception | Callable[[], dict[str, Any]]


@dataclass
class Model:
    """Each call takes the next of `answers`; when none is left it has nothing to say. An answer that is a function
    can announce a further HTTP call by `call_again`. Summaries, of episodes and of sessions, have answers of their own;
    when none is left they repeat what they were shown."""

    answers: list[Answer] = field(default_factory=list)
    episodes: list[Answer] = field(default_factory=list)
    sessions: list[Answer] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    instructions: list[str] = field(default_factory=list)
    call_again: Callable[[], None] = lambda: None

    def say(self, *new_facts: Any, **rest: Any) -> None:
        self.answers.append({"new_facts": list(new_facts), **rest})

    def answer(self, name: str, said: str) -> dict[str, Any]:
        queue = {"episode_summary": self.episodes, "session_summary": self.sessions}.get(name, self.answers)
        answer = queue.pop(0) if queue else summaries.of(name, said) or {"new_facts": [], "edits": [], "patterns": []}
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer


class HeldAnswer:
    """Holds the model's answer back until it is opened."""

    def __init__(self, **answer: Any) -> None:
        self.answer = {"new_facts": [], **answer}
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> dict[str, Any]:
        assert not connection.in_atomic_block, "no transaction is open while the model is asked"
        self.reached.set()
        assert self.opened.wait(PATIENCE), "nobody opened the gate"
        return self.answer


present = Model()


def complete(call: Call[A]) -> Completion[A]:
    call.before_call()
    present.call_again = call.before_call
    said = call.messages[-1]["content"]
    present.prompts.append(said)
    present.instructions.append(call.messages[0]["content"])
    answer = parse(json.dumps(present.answer(call.answer.name, said)), call.answer)
    return Completion(answer=answer, model="test", prompt_tokens=70, completion_tokens=7, calls=1)


def install(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Model:
    """The hub asks this model until the test ends."""
    model = Model()
    settings.MEMORYHUB_LLM = "scripted"
    monkeypatch.setitem(client.BACKENDS, "scripted", f"{__name__}.complete")
    monkeypatch.setattr(f"{__name__}.present", model)
    return model


def candidate(content: Any = "Lives in Leiden", **over: Any) -> dict[str, Any]:
    """An item of new_facts that the gate lets through; turn 1 is to be a user turn."""
    return {
        "content": content,
        "category": "knowledge",
        "confidence": 0.9,
        "importance": 0.5,
        "key": None,
        "value": None,
        "tags": [],
        "durability": "durable",
        "about": "user",
        "evidence": [1],
        "quote": None,
        "source_error": None,
        "expires_in_days": None,
        **over,
    }
