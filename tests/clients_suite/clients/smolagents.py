"""An agent with a tool that goes on with its conversation."""

from smolagents import OpenAIModel, ToolCallingAgent, tool
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


@tool
def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: The city.
    """
    return f"{city}: sunny"


for number, conversation in enumerate(CONVERSATIONS):
    model = OpenAIModel(MODEL, api_base=URL, api_key=KEY, client_kwargs={"default_headers": headers(number)})
    agent = ToolCallingAgent(tools=[weather], model=model)
    for turn, text in enumerate(texts(conversation)):
        agent.run(text, reset=turn == 0)
