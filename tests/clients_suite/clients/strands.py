"""An agent with a tool, whose conversation is summarized in the middle."""

from strands import Agent, tool
from strands.agent.conversation_manager import SummarizingConversationManager
from strands.models.openai import OpenAIModel
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


def model(session: int, said: str) -> OpenAIModel:
    args = {"base_url": URL, "api_key": KEY, "default_headers": headers(session, said)}
    return OpenAIModel(client_args=args, model_id=MODEL)


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


for number, conversation in enumerate(CONVERSATIONS):
    summarizer = Agent(model=model(number, "none"), callback_handler=None)
    manager = SummarizingConversationManager(
        summary_ratio=0.8, preserve_recent_messages=2, summarization_agent=summarizer
    )
    agent = Agent(model=model(number, "last"), tools=[weather], system_prompt="Be brief.", conversation_manager=manager,
                  callback_handler=None)  # fmt: skip
    for turn, text in enumerate(texts(conversation)):
        if turn == len(conversation) - 1:
            manager.reduce_context(agent)
        agent(text)
