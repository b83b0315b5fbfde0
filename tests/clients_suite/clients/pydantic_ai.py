"""An agent with a tool and an output of a type; one answer does not fit, and is asked for again."""

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


class Place(BaseModel):
    city: str
    year: int


for number, conversation in enumerate(CONVERSATIONS):
    client = AsyncOpenAI(base_url=URL, api_key=KEY, default_headers=headers(number))
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
    agent = Agent(model, output_type=Place, instructions="Be brief.", retries=2)

    @agent.tool_plain
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"{city}: sunny"

    history = []
    for text in texts(conversation):
        history = agent.run_sync(text, message_history=history).all_messages()
