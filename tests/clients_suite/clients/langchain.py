"""An agent with a tool, whose conversation is replaced by a summary."""

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


def model(session: int, said: str) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, base_url=URL, api_key=KEY, default_headers=headers(session, said))


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


for number, conversation in enumerate(CONVERSATIONS):
    summary = SummarizationMiddleware(model(number, "none"), trigger=("messages", 6), keep=("messages", 2))
    agent = create_agent(model(number, "last"), [weather], system_prompt="Be brief.", middleware=[summary],
                         checkpointer=InMemorySaver())  # fmt: skip
    for text in texts(conversation):
        agent.invoke({"messages": [{"role": "user", "content": text}]}, {"configurable": {"thread_id": str(number)}})
