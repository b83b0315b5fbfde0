"""An agent with a tool; then two agents that speak to each other."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


def model(session: int, said: str = "last") -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(model=MODEL, base_url=URL, api_key=KEY, default_headers=headers(session, said))


async def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


async def main() -> None:
    agent = AssistantAgent("cook", model(0), tools=[weather], system_message="Be brief.", reflect_on_tool_use=True)
    for text in texts(CONVERSATIONS[0]):
        await agent.run(task=text)
    writer = AssistantAgent("writer", model(1), system_message="You write slogans.")
    critic = AssistantAgent("critic", model(1, "none"), system_message="You judge slogans.")
    team = RoundRobinGroupChat(
        [writer, critic], termination_condition=TextMentionTermination("DONE") | MaxMessageTermination(4)
    )
    for text in texts(CONVERSATIONS[1]):
        await team.run(task=text)


asyncio.run(main())
