"""An agent with a tool, its history, and a summary of the session."""

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.session import SessionSummaryManager
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


def model(session: int, said: str) -> OpenAIChat:
    return OpenAIChat(id=MODEL, base_url=URL, api_key=KEY, default_headers=headers(session, said))


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


for number, conversation in enumerate(CONVERSATIONS):
    agent = Agent(model=model(number, "last"), tools=[weather], db=InMemoryDb(), session_id=f"s{number}",
                  telemetry=False, add_history_to_context=True, num_history_runs=10, enable_session_summaries=True,
                  session_summary_manager=SessionSummaryManager(model=model(number, "none")))  # fmt: skip
    for text in texts(conversation):
        agent.run(text)
