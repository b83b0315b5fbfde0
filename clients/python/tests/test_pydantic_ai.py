"""pydantic-ai's agents with memory, against a real hub and a model that says what it is told to."""

from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai import Agent, ImageUrl
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from talk import STORED, SUNNY, TALK, know, stored

from memoryhub_client import MemoryHub, Retries
from memoryhub_client.pydantic_ai import HubMemory, as_turns
from memoryhub_client.testing import FakeMemoryHub

AWAY = Retries(times=0)


class Scripted:
    """A model that asks for the weather once it is mentioned, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[tuple[str, Any]]]] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said: list[tuple[str, Any]] = [
            (part.part_kind, getattr(part, "content", None)) for one in messages for part in one.parts
        ]
        self.asked.append((info.instructions or "", said))
        if said[-1][0] == "user-prompt" and "weather" in str(said[-1][1]).rsplit("</memory>", 1)[-1]:
            return ModelResponse([ToolCallPart("weather", {"city": "Leiden"}, tool_call_id="c1")])
        return ModelResponse([TextPart(f"Answer {len(self.asked)}.")])


def scripted() -> FunctionModel:
    """For the example of the page."""
    return FunctionModel(Scripted())


def agent_with(memory: HubMemory, model: Any = None) -> Agent[Any, str]:
    agent: Agent[Any, str] = Agent(FunctionModel(model or Scripted()), instructions="Be brief.", capabilities=[memory])

    @agent.tool_plain
    def weather(city: str) -> str:
        """The weather in a city."""
        return SUNNY

    return agent


async def test_a_conversation_is_stored_once_and_each_request_begins_with_the_one_before(
    hub: MemoryHub, user_id: str
) -> None:
    know(hub, user_id)
    model, history = Scripted(), b"[]"
    for text in TALK:
        # Each in a process of its own, as far as the agent can tell.
        agent = agent_with(memory := HubMemory(hub, user_id=user_id), model)
        read = ModelMessagesTypeAdapter.validate_json(history)
        history = (await agent.run(text, message_history=read, conversation_id="s1")).all_messages_json()
    assert stored(hub, user_id) == STORED
    assert "memory>" not in history.decode()
    assert len({instructions for instructions, _ in model.asked}) == 1
    assert model.asked[0][0].startswith("Be brief.\n\n<memory>")
    assert "peanuts" in model.asked[0][0]
    assert "Leiden" in model.asked[0][1][0][1]
    memory.end("s1", user_id=user_id)
    [session] = hub.list_sessions(user_id=user_id, session_id="s1")
    assert session.ended_at


async def test_the_blocks_stay_where_they_were() -> None:
    fake = FakeMemoryHub()
    fake.client().add_fact(user_id="u1", content="Lives in Leiden", category="identity")
    model = Scripted()
    agent = agent_with(HubMemory(fake.client(), user_id="u1", tokenizer="qwen3"), model)
    history: list[ModelMessage] = []
    for text in TALK:
        history = (await agent.run(text, message_history=history, conversation_id="s1")).all_messages()
    asked = [said for _, said in model.asked]
    assert all(later[: len(one)] == one for one, later in pairwise(asked))
    contexts = [one for one in fake.asked if one.operation == "get_context"]
    # A tool at work asks for nothing new.
    assert [one.given["query"] for one in contexts] == TALK
    assert {(one.given["session_id"], one.given["tokenizer"]) for one in contexts} == {("s1", "qwen3")}


async def test_without_the_hub_the_agent_goes_on_and_posts_later(hub: MemoryHub, user_id: str) -> None:
    fake = FakeMemoryHub()
    agent = agent_with(HubMemory(fake.client(AWAY), user_id="u1", pause=0))
    fake.refuse(503, "unavailable", times=3)
    result = await agent.run("I moved to Leiden.", conversation_id="s1")
    assert result.output == "Answer 1."
    assert not fake.turns
    result = await agent.run("And I like tea.", message_history=result.all_messages(), conversation_id="s1")
    assert [one["content"] for [*turns] in fake.turns.values() for one in turns] == [
        "I moved to Leiden.", "Answer 1.", "And I like tea.", "Answer 2.",
    ]  # fmt: skip
    away = MemoryHub("mh_x", base_url="http://127.0.0.1:9", timeout=1, retries=AWAY)
    assert (await agent_with(HubMemory(away, user_id="u1")).run("Hello.")).output == "Answer 1."


async def test_who_it_is_comes_from_the_run() -> None:
    fake = FakeMemoryHub()
    agent = agent_with(HubMemory(fake.client(), session_id=lambda ctx: f"{ctx.deps['user_id']}-1", author="model"))
    await agent.run("Look up Leiden.", deps={"user_id": "u2", "agent_id": "cook"})
    [post, *_] = [one.given for one in fake.asked if one.operation == "post_turns"]
    assert (post["user_id"], post["session_id"], post["agent_id"]) == ("u2", "u2-1", "cook")
    # The order of another agent.
    assert post["messages"][0]["author"] == "model"
    asked = len(fake.asked)
    await agent_with(HubMemory(fake.client())).run("Hello.")
    assert len(fake.asked) == asked


async def test_a_run_that_fails_has_posted_what_was_said() -> None:
    fake = FakeMemoryHub()

    def breaks(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise RuntimeError("the model is away")

    with pytest.raises(RuntimeError):
        await agent_with(HubMemory(fake.client(), user_id="u1"), breaks).run("I moved to Leiden.")
    assert [one["content"] for [*turns] in fake.turns.values() for one in turns] == ["I moved to Leiden."]


def test_frames_are_not_said_and_files_are_named() -> None:
    frame = TextContent("<pyai:note>x</pyai:note>", metadata={"__pydantic_ai__": {"framework_frame": True}})
    image = ImageUrl("https://example.org/a.png")
    [turn] = as_turns(ModelRequest([UserPromptPart([frame, "What is it?", image])]))
    assert turn["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image-url", "url": "https://example.org/a.png"},
    ]
    assert list(as_turns(ModelRequest([UserPromptPart([frame])]))) == []
