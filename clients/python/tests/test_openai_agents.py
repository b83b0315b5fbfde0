"""OpenAI Agents with a session in the hub."""

import asyncio
from itertools import pairwise
from typing import Any, cast

import pytest
from agents import Agent, RunContextWrapper, Runner, SessionSettings, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.run import CallModelData, ModelInputData
from agents.testing import ScriptedModel
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from memoryhub_client import MemoryHub, Retries
from memoryhub_client._retrying import httpx
from memoryhub_client.openai_agents import HubInput, HubInstructions, HubSession, as_turn
from memoryhub_client.testing import FakeMemoryHub

set_tracing_disabled(True)
ITEMS: list[Any] = [
    {"role": "user", "content": "How is the weather in Leiden?"},
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Ask."}],
        "encrypted_content": "x",
    },
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Leiden"}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": "It rains."},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It rains in Leiden.", "annotations": [], "logprobs": []}],
    },
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}]},
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": ""},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rain"}},
    {"type": "computer_call_output", "call_id": "c2", "output": {"type": "computer_screenshot", "image_url": "x"}},
    {"type": "function_call_output", "call_id": "c3", "output": "y" * 300_000},
    {"role": "assistant", "content": "是的。🎉"},
]


@pytest.fixture
def session(hub: MemoryHub, user_id: str) -> HubSession:
    return HubSession("s1", user_id=user_id, hub=hub)


async def test_items_come_back_as_they_were(session: HubSession, hub: MemoryHub, user_id: str) -> None:
    assert isinstance(session, Session)
    assert await session.get_items() == []
    await session.add_items([])
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS
    assert await HubSession("s1", user_id=user_id, hub=hub).get_items(limit=3) == ITEMS[-3:]
    assert await session.get_items(limit=0) == []
    limited = HubSession("s1", user_id=user_id, hub=hub, session_settings=SessionSettings(limit=2))
    assert await limited.get_items() == ITEMS[-2:]
    [kept] = hub.list_sessions(user_id=user_id)
    turns = list(hub.list_turns(kept.id))
    # What the hub reads of them.
    assert [one.role for one in turns[:5]] == ["user", "tool", "assistant", "tool", "assistant"]
    assert [one.content for one in turns[:5]][3:] == ["It rains.", "It rains in Leiden."]
    assert turns[2].tool_calls
    assert turns[2].tool_calls[0]["id"] == "c1"


async def test_the_last_item_is_taken_off_and_may_come_again(session: HubSession) -> None:
    await session.add_items(ITEMS[:5])
    assert [await session.pop_item() for _ in range(2)] == [ITEMS[4], ITEMS[3]]
    assert await session.get_items() == ITEMS[:3]
    await session.add_items([ITEMS[3], ITEMS[4], ITEMS[4]])
    assert await session.get_items() == [*ITEMS[:5], ITEMS[4]]
    for _ in range(6):
        assert await session.pop_item()
    assert await session.pop_item() is None
    await session.add_items(ITEMS[:1])
    assert await session.get_items() == ITEMS[:1]


async def test_the_last_items_are_read_alone(session: HubSession, hub: MemoryHub, user_id: str) -> None:
    many = [{"role": "user", "content": f"Text {number}"} for number in range(25)]
    await session.add_items(cast("Any", many))
    # A turn that says nothing of its own is no item; those that were taken off are passed over.
    hub.post_turns(user_id=user_id, session_id="s1", messages=[{"role": "tool", "content": "x", "tool_call_id": "c"}])
    assert await session.get_items(limit=12) == many[-12:]
    for expected in reversed(many[-12:]):
        assert await session.pop_item() == expected
    assert await session.get_items(limit=2) == many[11:13]
    assert await session.get_items(limit=100) == many[:13]


async def test_two_who_pop_at_once_get_different_items() -> None:
    """On a hub in memory, where the second reads the session between the first one's look and its deletion."""
    fake = FakeMemoryHub()

    def sent(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/redact") and not popped:
            # No item yet: the other one takes its own first.
            popped.append(None)
            popped[:] = [asyncio.run(other.pop_item())]
        return fake.transport.handle_request(request)

    popped: list[Any] = []
    between = MemoryHub("mh_fake", transport=httpx.MockTransport(sent))
    one, other = HubSession("s1", user_id="u1", hub=between), HubSession("s1", user_id="u1", hub=fake.client())
    await one.add_items(ITEMS[:3])
    assert await one.pop_item() == ITEMS[1]
    assert popped == [ITEMS[2]]
    assert await one.get_items() == ITEMS[:1]
    assert [asked.given for asked in fake.asked if asked.operation == "redact_turn"] == [{"once": True}] * 3


async def test_a_closed_session_has_ended(
    session: HubSession, hub: MemoryHub, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    await session.close()
    await session.add_items(ITEMS[:1])
    await session.close()
    [stored] = hub.list_sessions(user_id=user_id)
    assert stored.ended_at
    await session.add_items(ITEMS[:1])
    [stored] = hub.list_sessions(user_id=user_id)
    assert stored.ended_at is None
    assert caplog.text == ""
    away = MemoryHub("any", base_url="http://127.0.0.1:9", retries=Retries(times=0))
    await HubSession("s1", user_id=user_id, hub=away).close()
    assert "not told that the conversation is over" in caplog.text


async def test_a_cleared_session_is_empty_and_others_are_not(session: HubSession, hub: MemoryHub, user_id: str) -> None:
    others = [
        HubSession("s2", user_id=user_id, hub=hub),
        HubSession("s1", user_id=user_id, agent_id="Cook", hub=hub),
        HubSession("s1", user_id=f"{user_id}-other", hub=hub),
    ]
    for one in [session, *others]:
        await one.add_items(ITEMS[:1])
    await session.clear_session()
    await session.clear_session()
    assert await session.get_items() == []
    for one in others:
        assert await one.get_items() == ITEMS[:1]
    await session.add_items(ITEMS[1:2])
    assert await session.get_items() == ITEMS[1:2]


async def test_secrets_stay_cut_out(session: HubSession) -> None:
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    call = {"type": "function_call", "call_id": "c1", "name": "login", "arguments": f'{{"key": "{key}"}}'}
    await session.add_items(cast("Any", [{"role": "user", "content": f"My key is {key}"}, call]))
    items = cast("list[Any]", await session.get_items())
    assert key not in str(items)
    assert "[redacted:" in items[0]["content"]
    assert (items[1]["name"], items[1]["call_id"]) == ("login", "c1")


def says(text: str) -> Any:
    content: list[Any] = [ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])]
    return ResponseOutputMessage(id="m", content=content, role="assistant", status="completed", type="message")


def answers(count: int) -> ScriptedModel:
    """A model with as many answers."""
    return ScriptedModel([[says(f"Answer {number}.")] for number in range(1, count + 1)])


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"It rains in {city}."


async def test_an_agent_goes_on_where_it_was(session: HubSession, hub: MemoryHub, user_id: str) -> None:
    call = ResponseFunctionToolCall(call_id="c1", name="weather", arguments='{"city": "Leiden"}', type="function_call")
    model = ScriptedModel([[call], [says("Rain.")], [says("As I said: rain.")]])
    agent = Agent(name="test", model=model, tools=[weather])
    await Runner.run(agent, "How is the weather in Leiden?", session=session)
    result = await Runner.run(agent, "And now?", session=HubSession("s1", user_id=user_id, hub=hub))
    assert result.final_output == "As I said: rain."
    roles = [one.get("role") or one.get("type") for one in cast("list[Any]", await session.get_items())]
    assert roles == ["user", "function_call", "function_call_output", "assistant", "user", "assistant"]


def test_loops_come_and_go(session: HubSession) -> None:
    for _ in range(2):
        asyncio.run(session.add_items(ITEMS[:1]))
    assert asyncio.run(session.get_items()) == ITEMS[:1] * 2


async def test_who_is_cancelled_has_added(session: HubSession) -> None:
    task = asyncio.create_task(session.add_items(ITEMS[:1]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await session.get_items() == ITEMS[:1]


async def test_turns_of_other_ways_are_items(session: HubSession, hub: MemoryHub, user_id: str) -> None:
    hub.post_turns(user_id=user_id, session_id="s1", messages=[{"role": "user", "content": "Hello."}])
    await session.add_items(ITEMS[-1:])
    assert await session.get_items() == [{"role": "user", "content": "Hello."}, ITEMS[-1]]


async def test_instructions_have_what_is_remembered(hub: MemoryHub, user_id: str) -> None:
    hub.add_fact(user_id=user_id, content="Allergic to peanuts", category="constraint")
    hub.post_turns(user_id=user_id, session_id="s0", messages=[{"role": "user", "content": "I moved to Leiden."}])
    agent: Agent[Any] = Agent(name="cook", instructions=HubInstructions("You are a cook.", hub=hub))
    context: RunContextWrapper[Any] = RunContextWrapper({"user_id": user_id})
    context.turn_input = [{"role": "user", "content": "Where do I live?"}]
    found = await agent.get_system_prompt(context)
    assert found
    assert found.startswith("You are a cook.\n\n<memory>")
    assert "peanuts" in found
    assert "Leiden" in found
    assert await agent.get_system_prompt(RunContextWrapper(None)) == "You are a cook."
    nobody = MemoryHub("mh_x", base_url="http://127.0.0.1:9", timeout=1, retries=Retries(times=0))
    alone: Agent[Any] = Agent(name="cook", instructions=HubInstructions("You are a cook.", user_id="u", hub=nobody))
    assert await alone.get_system_prompt(RunContextWrapper(None)) == "You are a cook."


async def test_each_input_begins_with_all_of_the_one_before(user_id: str) -> None:
    fake = FakeMemoryHub()
    fake.client().add_fact(user_id=user_id, content="Allergic to peanuts", category="constraint")
    fake.client().add_fact(user_id=user_id, content="Lives in Leiden", category="identity")
    adds = HubInput(user_id=user_id, session_id="s1", hub=fake.client(), tokenizer="qwen3")
    agent: Agent[Any] = Agent(name="cook")
    items: list[Any] = []
    sent = []
    for said in ("Where do I live?", "And the weather?"):
        items.append({"role": "user", "content": said})
        for more in ([], ITEMS[2:4]):
            # A tool at work asks for nothing new.
            items += more
            data = CallModelData(ModelInputData(input=list(items), instructions="You are a cook."), agent, None)
            sent.append(await adds(data))
    assert all(later.input[: len(one.input)] == one.input for one, later in pairwise(sent))
    assert len({one.instructions for one in sent}) == 1
    assert [one.operation for one in fake.asked].count("get_context") == 2
    assert fake.asked[-1].body.get("tokenizer") == "qwen3"
    assert str(sent[0].instructions).startswith("You are a cook.\n\n<memory>")
    assert "peanuts" in str(sent[0].instructions)
    [block, newest] = sent[0].input
    assert (block["role"], "Leiden" in block["content"], newest) == ("developer", True, items[0])  # type: ignore[typeddict-item]
    # Without a session nothing tells a conversation from others.
    data = CallModelData(ModelInputData(input=list(items), instructions=None), agent, {"user_id": user_id})
    assert (await HubInput(hub=fake.client())(data)) is data.model_data


def test_letters_that_no_hub_keeps_are_replaced() -> None:
    assert as_turn({"role": "user", "content": "a\x00b\ud800"})["content"] == "a\ufffdb\ufffd"


def test_what_the_input_says_is_the_persons() -> None:
    parts = [{"type": "input_text", "text": "Hi."}]
    said: list[Any] = [("user", "Hi."), ("user", parts), ("assistant", "Hi."), ("developer", "Be brief.")]
    items = [{"role": role, "content": content} for role, content in said]
    assert [as_turn(one).get("author") for one in items] == ["person", "person", None, None]
