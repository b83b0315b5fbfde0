"""Google's ADK with memory, against a real hub: `make clients-suite`."""

from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from pydantic import PrivateAttr
from talk import STORED, SUNNY, TALK, know, stored

from memoryhub_client import MemoryHub, Retries
from memoryhub_client.adk import HubMemoryPlugin, HubMemoryService, as_turns
from memoryhub_client.testing import FakeMemoryHub

AWAY = Retries(times=0)


class Scripted(BaseLlm):
    """A model that asks for the weather once it is mentioned, and keeps what it was asked."""

    _asked: list[tuple[str, list[tuple[str | None, str]]]] = PrivateAttr(default_factory=list)

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        said = [(one.role, "".join(part.text or "" for part in one.parts)) for one in llm_request.contents]
        self._asked.append((str(llm_request.config.system_instruction), said))
        part = types.Part(text=f"Answer {len(self._asked)}.")
        if "weather" in said[-1][1].rsplit("</memory>", 1)[-1]:
            part = types.Part(function_call=types.FunctionCall(id="c1", name="weather", args={"city": "Leiden"}))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def scripted() -> Scripted:
    """For the example of the page."""
    return Scripted(model="scripted")


def weather(city: str) -> str:
    """The weather in a city."""
    return SUNNY


class Kitchen:
    """An app with the plugin, in which a person talks in the session s1."""

    def __init__(self, plugin: HubMemoryPlugin, user_id: str, **more: Any) -> None:
        self.model, self.user_id, self.sessions = scripted(), user_id, InMemorySessionService()
        agent = LlmAgent(name="cook", model=self.model, instruction="Be brief.", tools=[weather])
        app = App(name="kitchen", root_agent=agent, plugins=[plugin])
        self.runner = Runner(app=app, session_service=self.sessions, **more)

    async def say(self, *texts: str) -> None:
        named = {"app_name": "kitchen", "user_id": self.user_id, "session_id": "s1"}
        if not await self.sessions.get_session(**named):
            await self.sessions.create_session(**named)
        for text in texts:
            said = types.UserContent(text)
            async for _ in self.runner.run_async(user_id=self.user_id, session_id="s1", new_message=said):
                pass

    async def events(self) -> list[Event]:
        named = {"app_name": "kitchen", "user_id": self.user_id, "session_id": "s1"}
        session = await self.sessions.get_session(**named)
        assert session
        return session.events


async def test_a_conversation_is_stored_once_and_each_request_begins_with_the_one_before(
    hub: MemoryHub, user_id: str
) -> None:
    know(hub, user_id)
    plugin = HubMemoryPlugin(hub)
    kitchen = Kitchen(plugin, user_id, memory_service=HubMemoryService(hub))
    await kitchen.say(*TALK)
    results = [(*one[:2], '{"result": "Leiden: sunny"}') if one[0] == "tool" else one for one in STORED]
    assert stored(hub, user_id) == results
    asked = kitchen.model._asked
    assert all(later[1][: len(one[1])] == one[1] for one, later in pairwise(asked))
    assert len({system for system, _ in asked}) == 1
    assert asked[0][0].startswith("Be brief.")
    assert "peanuts" in asked[0][0]
    assert "Leiden" in asked[0][1][0][1]
    assert asked[0][1][0][1].endswith(TALK[0])
    events = await kitchen.events()
    assert "<memory>" not in str(events)
    # By the service, too, each is stored once.
    session = await kitchen.sessions.get_session(app_name="kitchen", user_id=user_id, session_id="s1")
    assert session
    await HubMemoryService(hub).add_session_to_memory(session)
    assert stored(hub, user_id) == results
    await plugin.end("s1", user_id=user_id)
    [ended] = hub.list_sessions(user_id=user_id, session_id="s1")
    assert ended.ended_at


async def test_the_service_finds_what_was_said(hub: MemoryHub, user_id: str) -> None:
    know(hub, user_id)
    found = await HubMemoryService(hub).search_memory(app_name="kitchen", user_id=user_id, query="Leiden")
    assert "I moved to Leiden." in [part.text for one in found.memories for part in one.content.parts or ()]
    away = MemoryHub("mh_x", base_url="http://127.0.0.1:9", timeout=1, retries=AWAY)
    nothing = await HubMemoryService(away).search_memory(app_name="kitchen", user_id=user_id, query="Leiden")
    assert nothing.memories == []


async def test_without_the_hub_the_agent_goes_on_and_posts_later() -> None:
    fake = FakeMemoryHub()
    kitchen = Kitchen(HubMemoryPlugin(fake.client(AWAY), pause=0), "u1")
    fake.refuse(503, "unavailable", times=3)
    await kitchen.say("I moved to Leiden.")
    assert not fake.turns
    await kitchen.say("And I like tea.")
    [turns] = fake.turns.values()
    assert [one["content"] for one in turns] == ["I moved to Leiden.", "Answer 1.", "And I like tea.", "Answer 2."]


def test_thoughts_and_partial_answers_are_not_said() -> None:
    def says(author: str, *parts: types.Part, **more: Any) -> Event:
        return Event(id="e1", author=author, content=types.Content(role="x", parts=list(parts)), **more)

    thought = types.Part(text="Hm.", thought=True)
    turns = as_turns(
        [says("cook", thought, types.Part(text="Tea.")), says("cook", types.Part(text="Te"), partial=True)]
    )
    assert [(one["role"], one["content"], one["external_id"]) for one in turns] == [("assistant", "Tea.", "e1:0")]
    image = types.Part(file_data=types.FileData(file_uri="https://example.org/a.png", mime_type="image/png"))
    [turn] = as_turns([says("user", image)], author="model")
    assert (turn["content"], turn.get("author")) == ([{"type": "file", "url": "https://example.org/a.png"}], "model")
