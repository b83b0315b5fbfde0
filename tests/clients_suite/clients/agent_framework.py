"""An agent with a tool and a session."""

import asyncio

from agent_framework import Agent, tool
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


@tool(approval_mode="never_require")
def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


async def main() -> None:
    for number, conversation in enumerate(CONVERSATIONS):
        client = AsyncOpenAI(base_url=URL, api_key=KEY, default_headers=headers(number))
        agent = Agent(OpenAIChatCompletionClient(model=MODEL, async_client=client), "Be brief.", tools=[weather])
        session = agent.create_session()
        for text in texts(conversation):
            await agent.run(text, session=session)


asyncio.run(main())
