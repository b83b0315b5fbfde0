"""LlamaIndex's agents and chat engines with memory, against a real hub: `make clients-suite`."""

from itertools import pairwise
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import ToolSelection
from pydantic import PrivateAttr
from talk import STORED, SUNNY, TALK, know, stored

from memoryhub_client import MemoryHub, Retries
from memoryhub_client.llamaindex import HubMemory, as_turn
from memoryhub_client.testing import FakeMemoryHub


class Scripted(FunctionCallingLLM):
    """A model that asks for the weather once it is mentioned, and keeps what it was asked."""

    _asked: list[list[tuple[str, Any]]] = PrivateAttr(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True, context_window=32_000)

    def chat(self, messages: Any, **_: Any) -> ChatResponse:
        self._asked.append([(one.role.value, one.content) for one in messages])
        role, text = self._asked[-1][-1]
        if role == "user" and "weather" in str(text).rsplit("</memory>", 1)[-1]:
            call = ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs={"city": "Leiden"})
            return ChatResponse(message=ChatMessage(role="assistant", content=[call]))
        return ChatResponse(message=ChatMessage(role="assistant", content=f"Answer {len(self._asked)}."))

    async def achat(self, messages: Any, **_: Any) -> ChatResponse:
        return self.chat(messages)

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> Any:
        return {"messages": chat_history or []}

    def get_tool_calls_from_response(self, response: Any, *_: Any, **__: Any) -> list[ToolSelection]:
        calls = [one for one in response.message.blocks if isinstance(one, ToolCallBlock)]
        return [
            ToolSelection(tool_id=one.tool_call_id, tool_name=one.tool_name, tool_kwargs=one.tool_kwargs)
            for one in calls
        ]

    def _never(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    complete = stream_chat = stream_complete = _never
    acomplete = astream_chat = astream_complete = _never


def scripted() -> Scripted:
    """For the example of the page."""
    return Scripted()


def weather(city: str) -> str:
    """The weather in a city."""
    return SUNNY


def agent_with(model: Scripted, **more: Any) -> FunctionAgent:
    return FunctionAgent(tools=[weather], llm=model, system_prompt="Be brief.", streaming=False, **more)


async def test_a_conversation_is_stored_once_and_each_request_begins_with_the_one_before(
    hub: MemoryHub, user_id: str
) -> None:
    know(hub, user_id)
    model, memory = Scripted(), HubMemory(user_id=user_id, session_id="s1", hub=hub)
    for text in TALK:
        await agent_with(model).run(text, memory=memory)
    assert stored(hub, user_id) == STORED
    assert all(later[: len(one)] == one for one, later in pairwise(model._asked))
    system, standing, first = model._asked[0]
    assert system == ("system", "Be brief.")
    assert standing[0] == "system"
    assert "peanuts" in standing[1]
    assert "Leiden" in first[1]
    assert first[1].endswith(f"</memory>\n\n{TALK[0]}")
    assert "<memory>" not in str(await memory.aget_all())
    await memory.aend()
    [session] = hub.list_sessions(user_id=user_id, session_id="s1")
    assert session.ended_at


async def test_a_history_that_comes_along_is_stored_once(hub: MemoryHub, user_id: str) -> None:
    model, history = Scripted(), list[ChatMessage]()
    for text in TALK:
        # Each time with a memory that knows nothing, as in another process.
        memory = HubMemory(user_id=user_id, session_id="s1", hub=hub, memory=ChatMemoryBuffer.from_defaults())
        await agent_with(model, initial_state={"mood": "good"}).run(text, chat_history=history, memory=memory)
        history = await memory.aget_all()
    # What the agent's state adds to a message was not said.
    assert "mood" in str(model._asked)
    assert stored(hub, user_id) == STORED


async def test_without_the_hub_the_agent_goes_on_and_posts_later() -> None:
    fake = FakeMemoryHub()
    memory = HubMemory(user_id="u1", session_id="s1", hub=fake.client(Retries(times=0)), pause=0)
    fake.refuse(503, "unavailable", times=4)
    assert str(await agent_with(Scripted()).run("I moved to Leiden.", memory=memory)) == "Answer 1."
    assert not fake.turns
    await agent_with(Scripted()).run("And I like tea.", memory=memory)
    [turns] = fake.turns.values()
    assert [one["content"] for one in turns] == ["I moved to Leiden.", "Answer 1.", "And I like tea.", "Answer 1."]


def test_a_chat_engine_has_it_too(hub: MemoryHub, user_id: str) -> None:
    know(hub, user_id)
    model = Scripted()
    memory = HubMemory(user_id=user_id, session_id="s1", hub=hub)
    engine = SimpleChatEngine.from_defaults(llm=model, memory=memory, system_prompt="Be brief.")
    assert str(engine.chat(TALK[0])) == "Answer 1."
    assert stored(hub, user_id) == STORED[:2]
    assert "peanuts" in str(model._asked[0])


@pytest.mark.parametrize(
    ("role", "text", "author"),
    [
        ("user", "Hi.", "model"),
        ("user", "Result of executing the code given:\n\n4", "application"),
        ("tool", "4", None),
    ],
)
def test_whose_words_they_are(role: str, text: str, author: str | None) -> None:
    turn = as_turn(ChatMessage(role=role, content=text), author="model")
    assert turn
    assert turn.get("author") == author
    assert as_turn(ChatMessage(role="system", content=text)) is None
