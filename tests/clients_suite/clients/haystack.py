"""An agent with a tool; then a question with documents around it."""

from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


def generator(session: int) -> OpenAIChatGenerator:
    return OpenAIChatGenerator(model=MODEL, api_base_url=URL, api_key=Secret.from_token(KEY),
                               http_client_kwargs={"headers": headers(session)})  # fmt: skip


agent, history = Agent(chat_generator=generator(0), tools=[weather]), []
for text in texts(CONVERSATIONS[0]):
    history = agent.run(messages=[*history, ChatMessage.from_user(text)])["messages"]

template = [ChatMessage.from_user("Answer from these documents:\n{{ documents }}\n\nQuestion: {{ question }}\nAnswer:")]
builder = ChatPromptBuilder(template=template, required_variables="*")
documents = "Anna writes: I am allergic to nuts. My cat is called Tom."
for text in texts(CONVERSATIONS[1]):
    generator(1).run(builder.run(documents=documents, question=text)["prompt"])
