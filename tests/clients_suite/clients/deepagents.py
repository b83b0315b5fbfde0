"""A deep agent with a tool, and a sub-agent that gets its order from the model."""

from deepagents import create_deep_agent
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
    baker = {"name": "baker", "description": "Bakes.", "system_prompt": "You bake.", "model": model(number, "none")}
    agent = create_deep_agent(model(number, "last"), [weather], system_prompt="Be brief.", subagents=[baker],
                              checkpointer=InMemorySaver())  # fmt: skip
    for text in texts(conversation):
        agent.invoke({"messages": [{"role": "user", "content": text}]}, {"configurable": {"thread_id": str(number)}})
