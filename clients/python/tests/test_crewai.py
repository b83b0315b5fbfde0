"""CrewAI's agents and crews with memory, against a real hub: `make clients-suite`."""

import os
from itertools import pairwise
from typing import Any

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")

from crewai import Agent, Crew, Task  # it reads these when it is imported
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from pydantic import PrivateAttr
from talk import STORED, SUNNY, TALK, know, stored

from memoryhub_client import MemoryHub, Retries
from memoryhub_client.crewai import HubMemory, as_turn
from memoryhub_client.testing import FakeMemoryHub

Said = list[tuple[str, Any]]


class Scripted(BaseLLM):
    """A model that asks for the weather once it is mentioned, and keeps what it was asked."""

    _asked: list[Said] = PrivateAttr(default_factory=list)

    def call(self, messages: Any, tools: Any = None, *_: Any, **__: Any) -> Any:
        self._asked.append([(one["role"], one["content"]) for one in messages])
        if tools and "weather" in str(self._asked[-1][-1][1]).rsplit("</memory>", 1)[-1]:
            return [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Leiden"}'}}]
        return f"Answer {len(self._asked)}."

    def supports_function_calling(self) -> bool:
        return True


def scripted() -> Scripted:
    """For the example of the page."""
    return Scripted(model="scripted")


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return SUNNY


def agent_with(model: Scripted) -> Agent:
    return Agent(role="cook", goal="cook", backstory="You cook.", llm=model, tools=[weather])


def talk(memory: HubMemory, model: Scripted, *texts: str) -> None:
    history: list[Any] = []
    for text in texts:
        history.append({"role": "user", "content": text})
        with memory.hooks():
            answer = agent_with(model).kickoff(history)
        history.append({"role": "assistant", "content": answer.raw})


def test_a_conversation_is_stored_once_and_each_request_begins_with_the_one_before(
    hub: MemoryHub, user_id: str
) -> None:
    know(hub, user_id)
    model, memory = scripted(), HubMemory(user_id=user_id, session_id="s1", hub=hub)
    talk(memory, model, *TALK)
    assert stored(hub, user_id) == STORED
    # The application's history has no calls of tools.
    by_run = [model._asked[0], model._asked[1], model._asked[3]]
    assert all(later[: len(one)] == one for one, later in pairwise(by_run))
    assert model._asked[2][: len(model._asked[1])] == model._asked[1]
    assert "peanuts" in model._asked[0][0][1]
    assert "Leiden" in model._asked[0][1][1]
    assert model._asked[0][1][1].endswith(f"</memory>\n\n{TALK[0]}")
    asked = len(model._asked)
    agent_with(model).kickoff("Alone.")
    bare = [("system", "You are cook. You cook.\nYour personal goal is: cook"), ("user", "\nCurrent Task: Alone.")]
    assert model._asked[asked] == bare
    assert stored(hub, user_id) == STORED
    memory.end()
    [session] = hub.list_sessions(user_id=user_id, session_id="s1")
    assert session.ended_at


def test_a_task_is_the_applications_and_an_input_the_persons(hub: MemoryHub, user_id: str) -> None:
    know(hub, user_id)
    model, memory = scripted(), HubMemory(user_id=user_id, session_id="s1", said="question", hub=hub)
    agent = agent_with(model)
    task = Task(description="Answer: {question}", expected_output="A sentence.", agent=agent)
    with memory.hooks():
        Crew(agents=[agent], tasks=[task]).kickoff(inputs={"question": TALK[0]})
    turns = stored(hub, user_id)
    assert [turn[:2] for turn in turns] == [("user", "person"), ("user", "application"), ("assistant", "model")]
    assert turns[0][2] == TALK[0]
    assert "Answer: Where do I live?" in turns[1][2]
    assert "<memory>" not in turns[1][2]
    assert "Leiden" in model._asked[0][1][1]


def test_without_the_hub_the_agent_goes_on_and_posts_later() -> None:
    fake = FakeMemoryHub()
    memory = HubMemory(user_id="u1", session_id="s1", hub=fake.client(Retries(times=0)), pause=0)
    fake.refuse(503, "unavailable", times=3)
    history: list[Any] = [{"role": "user", "content": "I moved to Leiden."}]
    with memory.hooks():
        assert agent_with(scripted()).kickoff(history).raw == "Answer 1."
    assert not fake.turns
    history += [{"role": "assistant", "content": "Answer 1."}, {"role": "user", "content": "And I like tea."}]
    with memory.hooks():
        agent_with(scripted()).kickoff(history)
    [turns] = fake.turns.values()
    assert [one["content"] for one in turns] == ["I moved to Leiden.", "Answer 1.", "And I like tea.", "Answer 1."]


def test_whose_words_they_are() -> None:
    task = as_turn({"role": "user", "content": "\nCurrent Task: x"}, is_said=False)
    said = as_turn({"role": "user", "content": "\nCurrent Task: x\n\nProvide your complete response:"})
    assert (task, said) == (
        {"role": "user", "content": "\nCurrent Task: x", "author": "application"},
        {"role": "user", "content": "x", "author": "person"},
    )
    assert as_turn({"role": "system", "content": "x"}) is None
