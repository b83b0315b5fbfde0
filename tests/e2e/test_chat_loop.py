"""The documented chat loop against a real hub: the window stays small, and what was said first is known at the end."""

import importlib.util
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from django.conf import settings

from memories.conf import Rules
from tests.commands.hub import wait_until
from tests.faults.hubs import hub_asking
from tests.faults.parrot import repeat

FIRST = "My dog is called Biscuit and he is afraid of thunder."
QUESTION = "What is my dog called?"
SMALL_TALK = [
    f"On day {day} I read chapter {day} of a long novel about lighthouses and wrote about it." for day in range(1, 26)
]


@pytest.fixture(scope="module")
def loop() -> ModuleType:
    """The script as a module."""
    path = settings.BASE_DIR / "docs" / "examples" / "chat_loop.py"
    spec = importlib.util.spec_from_file_location("chat_loop", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def agent(loop: ModuleType) -> Iterator[Any]:
    with hub_asking(repeat, MEMORYHUB_DEBOUNCE_SECONDS="1") as hub:
        demo = json.loads((hub.home / "demo.json").read_text(encoding="utf-8"))
        address = f"http://127.0.0.1:{hub.port}"
        yield loop.Hub(address, demo["api_key"], user_id="u1", session_id="chat")


def test_what_was_said_first_is_known_at_the_end(loop: ModuleType, agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    windows = []
    for said in [FIRST, *SMALL_TALK]:
        loop.answer(agent, said)
        windows.append([one for one in agent.context(said)["messages"] if one["role"] == "user"])
    most = Rules.window_rounds
    assert max(map(len, windows)) == most
    assert FIRST not in [one["content"] for one in windows[-1]]
    assert "Biscuit" in loop.answer(agent, QUESTION)
    assert loop.stand_in([{"role": "user", "content": QUESTION}]) == "I do not know.", "the stand-in knows by itself"


def test_the_window_is_folded_into_a_summary(agent: Any) -> None:
    agent.end()

    def summary() -> str:
        told = [str(one["content"]) for one in agent.context(QUESTION)["messages"]]
        return next((text for text in told if text.startswith("<conversation_summary>")), "")

    wait_until(lambda: bool(summary()), lambda: "no running summary")
    wait_until(lambda: "Biscuit" in agent.context(QUESTION)["memory"], lambda: "forgotten")
