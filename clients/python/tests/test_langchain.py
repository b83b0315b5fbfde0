"""LangChain's agents and deepagents with memory: what is posted of a thread, and what the model gets."""

import asyncio
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

if sys.version_info < (3, 11):
    pytest.skip("LangChain needs Python 3.11", allow_module_level=True)

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from scripted import Scripted

from memoryhub_client import MemoryHub, Retries, _memory
from memoryhub_client.errors import ServerError
from memoryhub_client.langchain import HubChatMessageHistory, HubMemoryMiddleware, as_turn
from memoryhub_client.models import Turn
from memoryhub_client.testing import FakeMemoryHub

Answer = AIMessage | str


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"It rains in {city}."


def calls_weather(city: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "weather", "args": {"city": city}, "id": f"call-{city}"}])


class Talk:
    """An agent and one thread of it."""

    def __init__(self, agent: Any, user_id: str, thread_id: str = "t1") -> None:
        self.agent = agent
        self.config: Any = {"configurable": {"thread_id": thread_id, "user_id": user_id}}

    def say(self, text: str) -> list[BaseMessage]:
        found: list[BaseMessage] = self.agent.invoke({"messages": [HumanMessage(text)]}, self.config)["messages"]
        return found

    async def asay(self, text: str) -> list[BaseMessage]:
        found: list[BaseMessage] = (await self.agent.ainvoke({"messages": [HumanMessage(text)]}, self.config))[
            "messages"
        ]
        return found


def turns(hub: MemoryHub, user_id: str, session_id: str = "t1") -> list[Turn]:
    [session] = hub.list_sessions(user_id=user_id, session_id=session_id)
    return list(hub.list_turns(session.id))


def said(hub: MemoryHub, user_id: str) -> list[str]:
    return [f"{one.role}: {one.content}" for one in turns(hub, user_id)]


def system(model: Scripted) -> str:
    first = model.asked[-1][0]
    return first.text if isinstance(first, SystemMessage) else ""


def prompt(model: Scripted) -> str:
    """All that the model was asked, with what is remembered."""
    return "\n".join(one.text for one in model.asked[-1])


Make = Callable[..., Any]
makers = pytest.mark.parametrize("make", [create_agent, create_deep_agent], ids=["langchain", "deepagents"])


@makers
def test_each_message_is_a_turn_once_though_the_thread_is_resumed(make: Make, hub: MemoryHub, user_id: str) -> None:
    model, saver = Scripted(answers=[calls_weather("Leiden"), "Rain."]), InMemorySaver()

    def process() -> Talk:
        """As after a restart: nothing is known but the checkpoints."""
        memory = HubMemoryMiddleware(hub)
        return Talk(make(model, [weather], system_prompt="Be brief.", middleware=[memory], checkpointer=saver), user_id)

    process().say("How is the weather in Leiden?")
    process().say("Thank you.")
    last = process().say("One more thing.")
    assert said(hub, user_id) == [
        "user: How is the weather in Leiden?",
        "assistant: ",
        "tool: It rains in Leiden.",
        "assistant: Rain.",
        "user: Thank you.",
        "assistant: Answer 3.",
        "user: One more thing.",
        "assistant: Answer 4.",
    ]
    kept = turns(hub, user_id)
    assert [one.external_id for one in kept] == [one.id for one in last]
    calls = kept[1].tool_calls
    assert calls
    assert calls[0]["function"] == {"name": "weather", "arguments": '{"city": "Leiden"}'}


async def test_a_thread_that_ends_is_an_ended_session(
    hub: MemoryHub, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory, saver = HubMemoryMiddleware(hub, agent_id="cook"), InMemorySaver()
    talk = Talk(create_agent(Scripted(), [], middleware=[memory], checkpointer=saver), user_id)
    talk.say("I moved to Leiden.")
    memory.end("t1", user_id=f"{user_id}-other")
    memory.end("none", user_id=user_id)
    [session] = hub.list_sessions(user_id=user_id)
    assert session.ended_at is None
    await memory.aend("t1", user_id=user_id)
    [session] = hub.list_sessions(user_id=user_id)
    assert session.ended_at
    talk.say("And it rains.")
    [session] = hub.list_sessions(user_id=user_id)
    assert session.ended_at is None
    assert caplog.text == ""
    # When the hub is away the log says so, and nothing else happens.
    away = MemoryHub("any", base_url="http://127.0.0.1:9", retries=Retries(times=0))
    HubMemoryMiddleware(away, user_id=user_id).end("t1")
    assert "not told that the conversation is over" in caplog.text


@makers
async def test_async_as_well(make: Make, hub: MemoryHub, user_id: str) -> None:
    hub.add_fact(user_id=user_id, content="Allergic to peanuts", category="constraint")
    model = Scripted(answers=[calls_weather("Delft"), "Rain."])
    agent = make(model, [weather], middleware=[HubMemoryMiddleware(hub)], checkpointer=InMemorySaver())
    talk = Talk(agent, user_id)
    await talk.asay("Weather in Delft?")
    await talk.asay("Thanks.")
    roles = "user assistant tool assistant user assistant"
    assert " ".join(one.split(":")[0] for one in said(hub, user_id)) == roles
    assert "Allergic to peanuts" in system(model)


@makers
def test_the_model_gets_the_prompt_and_then_what_is_remembered(make: Make, hub: MemoryHub, user_id: str) -> None:
    model, memory = Scripted(), HubMemoryMiddleware(hub)
    agent = make(model, [], system_prompt="You are a cook.", middleware=[memory], checkpointer=InMemorySaver())
    talk = Talk(agent, user_id)
    talk.say("Hello.")
    assert "<memory>" not in system(model)
    hub.add_fact(user_id=user_id, content="Allergic to peanuts", category="constraint")
    talk.say("What may I eat?")
    before, after = system(model).split("<memory>")
    assert before.startswith("You are a cook.")
    assert "Allergic to peanuts" in after
    # It is the conversation: nothing of it is remembered beside it.
    assert "Hello." not in after
    state = talk.agent.get_state(talk.config).values["messages"]
    assert not any("peanuts" in str(one.content) for one in state)


def test_another_conversation_is_remembered(hub: MemoryHub, user_id: str) -> None:
    model, memory = Scripted(), HubMemoryMiddleware(hub)
    agent = create_agent(model, [], middleware=[memory], checkpointer=InMemorySaver())
    Talk(agent, user_id, "t1").say("I moved to Leiden last month.")
    Talk(agent, user_id, "t2").say("Where do I live?")
    assert "Leiden" in prompt(model)
    other = f"{user_id}-other"
    Talk(agent, other, "t1").say("Where do I live?")
    # It is the same thread, which the checkpointer knows.
    assert "<memory>" not in prompt(model)


def test_each_prompt_begins_with_all_of_the_one_before(user_id: str) -> None:
    fake = FakeMemoryHub()
    fake.client().add_fact(user_id=user_id, content="Allergic to peanuts", category="constraint")
    fake.client().add_fact(user_id=user_id, content="Lives in Leiden", category="identity")
    model = Scripted(answers=["In Leiden.", calls_weather("Leiden"), "Rain.", "Bye."])
    agent = create_agent(
        model, [weather], middleware=[HubMemoryMiddleware(fake.client(), write=False)], checkpointer=InMemorySaver()
    )
    talk = Talk(agent, user_id)
    for text in ("Where do I live?", "And the weather there?", "Thanks."):
        talk.say(text)
    prompts = [[(one.type, one.text) for one in asked] for asked in model.asked]
    assert all(later[: len(one)] == one for one, later in pairwise(prompts))
    # A tool at work asks for nothing new.
    assert [one.operation for one in fake.asked].count("get_context") == 3
    (_, head), (_, first), *_ = prompts[0]
    assert ("peanuts" in head, "Leiden" in head, "Leiden" in first) == (True, False, True)
    assert not any("<memory>" in one.text for one in agent.get_state(talk.config).values["messages"])
    # What stands and has changed is told anew.
    fake.client().add_fact(user_id=user_id, content="Never suggest pork", category="constraint")
    talk.say("And what may I eat?")
    assert "pork" in system(model)


def test_a_message_that_was_changed_is_another_one(user_id: str) -> None:
    fake = FakeMemoryHub()
    memory = HubMemoryMiddleware(fake.client(), user_id=user_id, write=False)._memory
    names = {"user_id": user_id, "session_id": "t1"}
    assert list(memory.told(names, "Hi", ["a", "b"]).before) == ["b"]
    assert list(memory.told(names, "Hi", ["a", "c"]).before) == ["c"]
    assert list(memory.told(names, "Hi", ["c", "d"]).before) == ["c", "d"]


def test_what_was_told_is_kept_within_limits_and_not_behind_a_deletion(
    user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeMemoryHub()
    hub = fake.client()
    fact = fake.client().add_fact(user_id=user_id, content="Lives in Leiden", category="identity")
    fake.client().add_fact(user_id=user_id, content="Likes tea", category="preference")
    memory = HubMemoryMiddleware(hub, user_id=user_id, write=False)._memory
    names = {"user_id": user_id, "session_id": "t1"}

    def kept(*said: str) -> list[str]:
        return [one for one, block in memory.told(names, "Where do I live?", said).before.items() if block]

    assert kept("a") == ["a"]
    assert kept("a", "b") == ["a", "b"]
    # What the client reads, writes and keeps beside contexts changes nothing of it.
    hub.search(user_id=user_id, query="tea")
    hub.put_store_item(namespace=["notes"], key="k", value={"a": 1})
    assert kept("a", "b") == ["a", "b"]
    # Nobody knows what of it told the fact.
    hub.delete_fact(fact.id)
    assert kept("a", "b", "c") == []
    fake.client().add_fact(user_id=user_id, content="Lives in Delft", category="identity")
    assert kept("a", "b", "c", "d") == ["d"]
    # So it is where somebody else changed what stands in every prompt.
    fake.client().add_fact(user_id=user_id, content="Speak Dutch", category="constraint")
    assert kept("d", "e") == ["e"]
    monkeypatch.setattr(_memory, "KEPT_OF_ONE", 1)
    monkeypatch.setattr(_memory, "KEPT_OF_ALL", 1)
    assert [kept(*said) for said in ("f", "fg", "fgh")] == [["f"], ["g"], ["h"]]
    memory.told({**names, "session_id": "t2"}, "Where do I live?", ["a"])
    assert len(memory._talks) == 1
    fake.answer("get_context", {"memory": "", "revision": "0", "restricted": True})
    assert kept("h", "i") == []
    assert memory.told(names, "", ["i"]).stable == ""
    memory.forget(user_id)
    assert len(memory._talks) == 0


def test_a_context_that_has_not_changed_is_not_sent_again(user_id: str) -> None:
    fake = FakeMemoryHub()
    fake.client().add_fact(user_id=user_id, content="Allergic to peanuts", category="constraint")
    model = Scripted()
    agent = create_agent(model, [], middleware=[HubMemoryMiddleware(fake.client(), write=False)])
    for _ in range(2):
        agent.invoke({"messages": [HumanMessage("Hello.")]}, {"configurable": {"user_id": user_id}})
        assert "peanuts" in system(model)
    first, second = [one for one in fake.asked if one.operation == "get_context"]
    assert "if_revision" not in first.body
    assert second.body["if_revision"]


def test_an_agent_that_writes_memories_is_told_what_to_note(user_id: str) -> None:
    fake = FakeMemoryHub()
    fake.client().add_fact(user_id=user_id, content="Lives in Leiden", category="identity")
    for wanted in (True, False):
        middleware = HubMemoryMiddleware(fake.client(), user_id=user_id, write=False, guidelines=wanted)
        memory = middleware._memory.of({"user_id": user_id}, "Where?")
        assert memory == middleware._memory.of({"user_id": user_id}, "Where?")
        assert memory.startswith("<memory_guidelines>" if wanted else "<memory>")
        assert "Leiden" in memory


def test_the_tokenizer_of_the_model_counts(user_id: str) -> None:
    fake = FakeMemoryHub()
    for named in ("Qwen/Qwen3-8B", None):
        middleware = HubMemoryMiddleware(fake.client(), user_id=user_id, write=False, tokenizer=named)
        middleware._memory.of({"user_id": user_id}, "Where?")
        assert fake.asked[-1].body.get("tokenizer") == named
        middleware._memory.told({"user_id": user_id, "session_id": "s1"}, "Where?", ["one"])
        assert fake.asked[-1].body.get("blocks") is True
        assert fake.asked[-1].body.get("tokenizer") == named


def test_regenerated_and_edited_messages(hub: MemoryHub, user_id: str) -> None:
    agent = create_agent(Scripted(), [], middleware=[HubMemoryMiddleware(hub)], checkpointer=InMemorySaver())
    talk = Talk(agent, user_id)
    talk.say("I live in Leiden.")
    first = talk.say("And my brother in Ghent.")
    # Another answer to the same message.
    [before] = [
        one for one in agent.get_state_history(talk.config) if len(one.values["messages"]) == 3 and "model" in one.next
    ]
    config: Any = {"configurable": {**before.config["configurable"], "user_id": user_id}}
    agent.invoke(None, config)
    assert said(hub, user_id)[2:] == ["user: And my brother in Ghent.", "assistant: Answer 2.", "assistant: Answer 3."]
    # The message itself, changed.
    edited = HumanMessage("And my brother in Delft.", id=first[2].id)
    changed = agent.update_state(config, {"messages": [edited]}, as_node="HubMemoryMiddleware.before_model")
    agent.invoke(None, {"configurable": {**changed["configurable"], "user_id": user_id}})
    talk.say("Bye.")
    assert said(hub, user_id)[5:] == ["user: And my brother in Delft.", "assistant: Answer 4.", "user: Bye.",
                                      "assistant: Answer 5."]  # fmt: skip


@pytest.mark.parametrize("first", ["memory", "summariser"])
def test_nothing_is_lost_to_a_summariser(first: str, hub: MemoryHub, user_id: str) -> None:
    model = Scripted()
    summariser = SummarizationMiddleware(
        Scripted(answers=["They said hello."] * 9), trigger=("messages", 6), keep=("messages", 2)
    )
    middleware: list[Any] = [HubMemoryMiddleware(hub), summariser]
    if first == "summariser":
        middleware.reverse()
    talk = Talk(create_agent(model, [], middleware=middleware, checkpointer=InMemorySaver()), user_id)
    for number in range(6):
        last = talk.say(f"Message {number}.")
    assert any("They said hello" in str(one.content) for one in last)
    expected = [
        text for number in range(6) for text in (f"user: Message {number}.", f"assistant: Answer {number + 1}.")
    ]
    assert said(hub, user_id) == expected


def test_deepagents_summarises_and_nothing_is_posted_of_it(hub: MemoryHub, user_id: str) -> None:
    model = Scripted(profile={"max_input_tokens": 6000})
    agent = create_deep_agent(model, [], middleware=[HubMemoryMiddleware(hub)], checkpointer=InMemorySaver())
    talk = Talk(agent, user_id)
    for number in range(6):
        talk.say(f"Message {number}. " + "word " * 800)
    assert any("summary" in str(asked).lower() for asked in model.asked[-1])
    kept = said(hub, user_id)
    assert [one.split(".")[0] for one in kept if one.startswith("user")] == [f"user: Message {n}" for n in range(6)]
    assert len([one for one in kept if one.startswith("assistant")]) == 6


class Faulty:
    """A hub that is away when it is told to be."""

    def __init__(self, hub: MemoryHub) -> None:
        self.hub, self.away = hub, False

    @property
    def taken_back(self) -> int:
        """What the client counts itself."""
        return self.hub.taken_back

    def __getattr__(self, name: str) -> Any:
        if self.away:
            raise ServerError(503, {"code": "unavailable"})
        return getattr(self.hub, name)


def test_the_hub_goes_away_and_comes_back(hub: MemoryHub, user_id: str, caplog: pytest.LogCaptureFixture) -> None:
    faulty = Faulty(hub)
    model = Scripted()
    memory = HubMemoryMiddleware(faulty, pause=0)  # type: ignore[arg-type]
    talk = Talk(create_agent(model, [], middleware=[memory], checkpointer=InMemorySaver()), user_id)
    hub.add_fact(user_id=user_id, content="Allergic to peanuts", category="constraint")
    faulty.away = True
    with caplog.at_level(logging.WARNING):
        assert talk.say("I live in Leiden.")[-1].text == "Answer 1."
    assert "goes on without memory: 503 unavailable" in caplog.text
    assert "Leiden" not in caplog.text
    assert user_id not in caplog.text
    assert system(model) == ""
    assert list(hub.list_sessions(user_id=user_id)) == []
    faulty.away = False
    talk.say("Hello?")
    assert said(hub, user_id) == ["user: I live in Leiden.", "assistant: Answer 1.", "user: Hello?",
                                  "assistant: Answer 2."]  # fmt: skip
    assert "peanuts" in system(model)


def test_a_hub_that_cannot_be_reached_stops_nobody(user_id: str) -> None:
    nobody = MemoryHub("mh_x", base_url="http://127.0.0.1:9", timeout=1, retries=Retries(times=0))
    agent = create_agent(Scripted(), [], middleware=[HubMemoryMiddleware(nobody)])
    answer = agent.invoke(
        {"messages": [HumanMessage("Hello.")]}, {"configurable": {"user_id": user_id, "session_id": "s1"}}
    )
    assert answer["messages"][-1].text == "Answer 1."
    assert asyncio.run(agent.ainvoke({"messages": [HumanMessage("Hello.")]}, {"configurable": {"user_id": user_id}}))


def test_what_the_hub_refuses_holds_nothing_up(hub: MemoryHub, user_id: str) -> None:
    @tool
    def read_file() -> str:
        """A large file."""
        return "\x00\ud800" + "x" * 3_000_000

    calls = AIMessage("", tool_calls=[{"name": "read_file", "args": {}, "id": "c1"}])
    model = Scripted(answers=[calls, "Large."])
    agent = create_agent(model, [read_file], middleware=[HubMemoryMiddleware(hub)], checkpointer=InMemorySaver())
    talk = Talk(agent, user_id)
    talk.say("Read it.")
    talk.say("   ")
    talk.say("Bye.")
    kept = [text[:20] for text in said(hub, user_id)]
    assert kept == ["user: Read it.", "assistant: ", "tool: ��xxxxxxxxxxxx", "assistant: Large.",
                    "assistant: Answer 3.", "user: Bye.", "assistant: Answer 4."]  # fmt: skip


def test_a_secret_that_was_cut_out_is_no_other_message(hub: MemoryHub, user_id: str) -> None:
    saver = InMemorySaver()
    for text in ("My password is hunter2xyz!", "Again."):
        agent = create_agent(
            Scripted(answers=["Noted."]), [], middleware=[HubMemoryMiddleware(hub)], checkpointer=saver
        )
        config: Any = {"configurable": {"thread_id": "t1", "user_id": user_id}}
        agent.invoke({"messages": [HumanMessage(text)]}, config)
        # The mark is lost: all of it is posted again.
        agent.update_state(config, {"memoryhub_posted": None})
    kept = said(hub, user_id)
    assert len(kept) == 4
    assert "hunter2xyz" not in "".join(kept)


def test_media_and_reasoning_are_not_kept_as_bytes(hub: MemoryHub, user_id: str) -> None:
    answer = AIMessage([{"type": "thinking", "thinking": "Hmm."}, {"type": "text", "text": "A cat."}])
    agent = create_agent(Scripted(answers=[answer]), [], middleware=[HubMemoryMiddleware(hub)])
    parts: list[Any] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
    ]
    agent.invoke({"messages": [HumanMessage(parts)]}, {"configurable": {"user_id": user_id, "session_id": "t1"}})
    first, second = turns(hub, user_id)
    assert first.content == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url"},
        {"type": "image_url", "url": "https://example.org/cat.png"},
    ]
    assert second.content == "A cat."


@dataclass
class Context:
    user_id: str
    session_id: str
    agent_id: str = "cook"


def test_names_come_from_the_context_or_are_given(
    hub: MemoryHub, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent: Any = create_agent(Scripted(), [], middleware=[HubMemoryMiddleware(hub)], context_schema=Context)
    agent.invoke({"messages": [HumanMessage("Hello.")]}, context=Context(user_id, "s1"))
    given = HubMemoryMiddleware(hub, user_id=lambda runtime: user_id, session_id="s2", agent_id="Waiter")
    create_agent(Scripted(), [], middleware=[given]).invoke({"messages": [HumanMessage("Hello.")]})
    found = {one.session_id: one.agent_id for one in hub.list_sessions(user_id=user_id)}
    assert found == {"s1": "cook", "s2": "waiter"}
    create_agent(Scripted(), [], middleware=[HubMemoryMiddleware(hub)]).invoke({"messages": [HumanMessage("Hello.")]})
    assert caplog.text.count("No memory: neither") == 1


def test_of_a_restricted_person_nothing_is_posted_later(user_id: str) -> None:
    fake = FakeMemoryHub()
    memory = HubMemoryMiddleware(fake.client(), pause=0)
    talk = Talk(create_agent(Scripted(), [], middleware=[memory], checkpointer=InMemorySaver()), user_id)
    for _ in range(3):
        fake.refuse(423, "restricted")
    talk.say("A secret of mine.")
    talk.say("Hello.")
    posted = [
        one["content"] for asked in fake.asked if asked.operation == "post_turns" for one in asked.body["messages"]
    ]
    assert posted == ["A secret of mine.", "Answer 1.", "Hello.", "Answer 2."]
    assert [one["content"] for kept in fake.turns.values() for one in kept] == ["Hello.", "Answer 2."]


# The history


@pytest.fixture
def history(hub: MemoryHub, user_id: str) -> HubChatMessageHistory:
    return HubChatMessageHistory("h1", user_id=user_id, hub=hub)


async def test_a_history_that_ends_can_go_on(history: HubChatMessageHistory, hub: MemoryHub, user_id: str) -> None:
    history.end()
    history.add_user_message("Hello.")
    await history.aend()
    [session] = hub.list_sessions(user_id=user_id)
    assert session.ended_at
    history.add_user_message("One more thing.")
    [session] = hub.list_sessions(user_id=user_id)
    assert session.ended_at is None


def test_a_history_gives_messages_back_as_they_were(history: HubChatMessageHistory) -> None:
    call = {"name": "weather", "args": {"city": "Leiden"}, "id": "c1", "type": "tool_call"}
    messages: list[BaseMessage] = [
        SystemMessage("Be brief."),
        HumanMessage("你好", id="m1"),
        HumanMessage(
            [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "data:x;base64,AA"}}]
        ),
        AIMessage("", tool_calls=[call], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        ToolMessage("It rains.", tool_call_id="c1", artifact={"mm": 3}),
        AIMessage("x" * 200_000, response_metadata={"model": "m"}),
        AIMessage(""),
    ]
    history.add_messages(messages)
    assert history.messages == messages
    history.add_user_message("Bye.")
    assert history.messages[-1] == HumanMessage("Bye.")
    history.clear()
    assert history.messages == []
    history.add_messages(messages[:2])
    assert history.messages == messages[:2]


async def test_a_history_async(history: HubChatMessageHistory) -> None:
    await history.aadd_messages([HumanMessage("Hello.", id="m1")])
    await history.aadd_messages([HumanMessage("Hello.", id="m1"), AIMessage("Hi.")])
    assert [one.text for one in await history.aget_messages()] == ["Hello.", "Hi."]
    await history.aclear()
    assert await history.aget_messages() == []


def test_histories_of_other_agents_and_people_are_others(hub: MemoryHub, user_id: str) -> None:
    own = HubChatMessageHistory("h1", user_id=user_id, agent_id="Cook", hub=hub)
    own.add_user_message("Mine.")
    HubChatMessageHistory("h1", user_id=user_id, hub=hub).add_user_message("Nobody's.")
    assert [one.text for one in own.messages] == ["Mine."]
    assert HubChatMessageHistory("h1", user_id=f"{user_id}-other", hub=hub).messages == []


@pytest.mark.parametrize(
    ("message", "author"),
    [
        (HumanMessage("Hello", id="m"), "person"),
        (HumanMessage("Hello", id="m", name="writer"), None),
        (HumanMessage("Hello", id="m", additional_kwargs={"hide_from_ui": True}), "application"),
        (
            HumanMessage("Blue", id="m", additional_kwargs={"hide_from_ui": True, "human_input_response": {}}),
            "application",
        ),
        (
            HumanMessage(
                "Blue", id="m", additional_kwargs={"hide_from_ui": True, "human_input_response": {"value": 1}}
            ),
            "person",
        ),
        (HumanMessage("Notes", id="m", additional_kwargs={"memoryhub_author": "application"}), "application"),
        (HumanMessage("Notes", id="m", additional_kwargs={"memoryhub_author": "nobody"}), "person"),
        (AIMessage("Hello", id="m"), None),
    ],
)
def test_a_human_message_says_whose_words_it_holds(message: BaseMessage, author: str | None) -> None:
    turn = as_turn(message)
    assert turn
    assert turn.get("author") == author


def test_a_summary_in_a_history_is_a_models() -> None:
    history = HubChatMessageHistory("t1", user_id="u1", hub=FakeMemoryHub().client())
    history.add_messages(
        [HumanMessage("Short.", additional_kwargs={"lc_source": "summarization"}), HumanMessage("Hi.")]
    )
    assert [one.author for one in history._session.turns()] == ["model", "person"]
    assert [one.text for one in history.messages] == ["Short.", "Hi."]


def test_the_order_to_a_sub_agent_is_a_models() -> None:
    fake = FakeMemoryHub()
    order = {"name": "task", "args": {"description": "My name is Worker.", "subagent_type": "baker"}, "id": "call-1"}
    baker: Any = {"name": "baker", "description": "Bakes.", "system_prompt": "You bake.",
                  "middleware": [HubMemoryMiddleware(fake.client())]}  # fmt: skip
    agent = create_deep_agent(
        Scripted(answers=[AIMessage("", tool_calls=[order])]),
        subagents=[baker],
        middleware=[HubMemoryMiddleware(fake.client())],
        checkpointer=InMemorySaver(),
    )
    Talk(agent, "u1").say("Bake a cake.")
    by = {turn["content"]: turn["author"] for turns in fake.turns.values() for turn in turns if turn["role"] == "user"}
    assert by == {"Bake a cake.": "person", "My name is Worker.": "model"}
