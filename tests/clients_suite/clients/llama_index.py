"""An agent with a tool and a memory; then a question with documents around it."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import Memory
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.openai_like import OpenAILike
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts


def model(session: int) -> OpenAILike:
    return OpenAILike(model=MODEL, api_base=URL, api_key=KEY, default_headers=headers(session), is_chat_model=True,
                      is_function_calling_model=True, context_window=32000)  # fmt: skip


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


async def main() -> None:
    agent = FunctionAgent(tools=[weather], llm=model(0), system_prompt="Be brief.", streaming=False)
    memory = Memory.from_defaults(session_id="s0", token_limit=8000)
    for text in texts(CONVERSATIONS[0]):
        await agent.run(text, memory=memory)
    node = NodeWithScore(node=TextNode(text="Anna writes: I am allergic to nuts. My cat is called Tom."), score=1.0)
    for text in texts(CONVERSATIONS[1]):
        await get_response_synthesizer(llm=model(1)).asynthesize(text, nodes=[node])


asyncio.run(main())
