"""An agent with a tool, a session in SQLite, and a guardrail that shows another agent what the person said."""

import asyncio

from agents import (
    Agent,
    GuardrailFunctionOutput,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    input_guardrail,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts

set_tracing_disabled(True)


def model(session: int, said: str) -> OpenAIResponsesModel:
    client = AsyncOpenAI(base_url=URL, api_key=KEY, default_headers=headers(session, said))
    return OpenAIResponsesModel(model=MODEL, openai_client=client)


@function_tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sunny"


async def main() -> None:
    for number, conversation in enumerate(CONVERSATIONS):
        judge = Agent("judge", instructions="You judge whether a request is harmless.", model=model(number, "none"))

        @input_guardrail
        async def harmless(_context, _agent, said, judge=judge):
            found = await Runner.run(judge, said if isinstance(said, str) else said[-1]["content"])
            return GuardrailFunctionOutput(output_info=found.final_output, tripwire_triggered=False)

        agent = Agent("cook", instructions="Be brief.", tools=[weather], model=model(number, "last"),
                      input_guardrails=[harmless])  # fmt: skip
        session = SQLiteSession(f"s{number}")
        for text in texts(conversation):
            await Runner.run(agent, text, session=session)


asyncio.run(main())
