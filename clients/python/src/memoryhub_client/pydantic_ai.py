"""Memory for agents of pydantic-ai, as a capability.

agent = Agent(model, capabilities=[HubMemory(user_id="u1")])
result = agent.run_sync("I moved to Leiden.", conversation_id="s1")
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from memoryhub_client._conversation import missing, sendable
from memoryhub_client._memory import LONGEST_ID, PAUSE_SECONDS, Memory, field_of, marks, named
from memoryhub_client.client import MemoryHub
from memoryhub_client.models import Author, NewMessage

try:
    from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
    from pydantic_ai.messages import (
        InstructionPart,
        ModelMessage,
        ModelRequest,
        ModelResponse,
        SpeechPart,
        TextContent,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import RunContext
except ImportError as error:
    raise missing("pydantic-ai", error) from error

logger = logging.getLogger(__name__)
LONGEST_TEXT = 500_000
Name = str | Callable[[RunContext[Any]], str | None]
Names = dict[str, str | None]


class HubMemory(AbstractCapability[Any]):
    """Gives each model request what the hub remembers of the person, and posts what the conversation says.

    What always stands (profile, preferences) is behind the instructions. What a prompt brings up is before that prompt,
    and stays there in later requests, so that a provider's cache of the prompt holds. The history has none of it.

    `user_id`, `session_id` and `agent_id` are texts, or functions of the run's context. Without them they are fields of
    the run's `deps`; the session is otherwise the run's `conversation_id`. Without a person there is no memory.

    `author`: whose words the prompts are. "model" for an agent that another one calls as a tool.

    When the hub is away the agent goes on without memory. What was not posted is posted at the next chance.
    """

    def __init__(
        self,
        hub: MemoryHub | None = None,
        *,
        user_id: Name | None = None,
        session_id: Name | None = None,
        agent_id: Name | None = None,
        author: Author = "person",
        max_tokens: int = 2000,
        read: bool = True,
        write: bool = True,
        guidelines: bool = False,
        pause: float = PAUSE_SECONDS,
        tokenizer: str | None = None,
    ) -> None:
        self._memory = Memory(
            hub, max_tokens=max_tokens, log=logger, pause=pause, guidelines=guidelines, tokenizer=tokenizer
        )
        self._named = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}
        self._author, self._read, self._write = author, read, write

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Post the answer, and of a run that failed what there is."""
        said: Sequence[ModelMessage] = ctx.messages
        try:
            result = await handler()
            said = result.all_messages()
        finally:
            await asyncio.to_thread(self._post, ctx, said, last=True)
        return result

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Post what was said since the last request."""
        await asyncio.to_thread(self._post, ctx, ctx.messages)
        return request_context

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The request with what is remembered. Here, since what is changed here is not in the history."""
        return await asyncio.to_thread(self._with_memory, ctx, request_context)

    def end(self, session_id: str, *, user_id: str | None = None, agent_id: str | None = None) -> None:
        """Tell the hub that a conversation is over: an episode of it comes at once, and not after half an hour of
        silence. A new message reopens it. The names that are left out are the capability's own texts.
        """
        own = {name: one if isinstance(one, str) else None for name, one in self._named.items()}
        names = {"user_id": user_id or own["user_id"], "agent_id": agent_id or own["agent_id"]}
        self._memory.end({**names, "session_id": session_id})

    async def aend(self, session_id: str, *, user_id: str | None = None, agent_id: str | None = None) -> None:
        """As `end`."""
        await asyncio.to_thread(self.end, session_id, user_id=user_id, agent_id=agent_id)

    def _post(self, ctx: RunContext[Any], said: Sequence[ModelMessage], *, last: bool = False) -> None:
        names = self._names(ctx)
        if not self._write or names is None:
            return
        turns = [turn for message in said for turn in as_turns(message, author=self._author)]
        self._memory.post_new(names, named(turns), last=last)

    def _with_memory(self, ctx: RunContext[Any], request: ModelRequestContext) -> ModelRequestContext:
        names = self._names(ctx)
        if not self._read or names is None:
            return request
        said = [part for message in request.messages for part in message.parts if isinstance(part, UserPromptPart)]
        found = marks(_content(part.content) for part in said)
        told = self._memory.told(names, _text(said[-1].content) if said else None, found)
        blocks = {id(part): told.before.get(mark, "") for part, mark in zip(said, found, strict=True)}
        messages = [_behind(blocks, message) for message in request.messages]
        parameters = request.model_request_parameters
        if told.stable:
            parts = [*(parameters.instruction_parts or ()), InstructionPart(told.stable, dynamic=True)]
            parameters = replace(parameters, instruction_parts=parts)
        return replace(request, messages=messages, model_request_parameters=parameters)

    def _names(self, ctx: RunContext[Any]) -> Names | None:
        names = {name: self._name(name, ctx) for name in self._named}
        names["session_id"] = names["session_id"] or ctx.conversation_id
        if not names["user_id"]:
            self._memory.warn_once("No memory: neither the capability nor the deps of this run have a user_id.")
            return None
        return names

    def _name(self, name: str, ctx: RunContext[Any]) -> str | None:
        given = self._named[name]
        found = (given(ctx) if callable(given) else given) or field_of(ctx.deps, name)
        return str(found) if found else None


def as_turns(message: ModelMessage, *, author: Author = "person") -> Iterator[NewMessage]:
    """What a message of the history says, for the hub. Nobody said instructions, retries and reasoning."""
    if isinstance(message, ModelResponse):
        turns = [_answer(message)]
    else:
        turns = [_turn(part, author) for part in message.parts]
    for turn in turns:
        if turn is not None:
            yield _identified(message, cast("NewMessage", sendable(turn)))


def _answer(response: ModelResponse) -> NewMessage | None:
    texts = [_spoken(part) for part in response.parts]
    text = "\n".join(one for one in texts if one)[:LONGEST_TEXT]
    calls = [_call(part) for part in response.parts if isinstance(part, ToolCallPart)]
    if not text.strip() and not calls:
        return None
    turn: NewMessage = {"role": "assistant", "content": text}
    return {**turn, "tool_calls": calls} if calls else turn


def _spoken(part: Any) -> str:
    if isinstance(part, SpeechPart):
        return part.transcript or ""
    return part.content if isinstance(part, TextPart) else ""


def _call(part: ToolCallPart) -> dict[str, Any]:
    function = {"name": part.tool_name, "arguments": part.args_as_json_str()[:LONGEST_TEXT]}
    return {"id": part.tool_call_id, "type": "function", "function": function}


def _turn(part: Any, author: Author) -> NewMessage | None:
    if isinstance(part, ToolReturnPart):
        answer = part.model_response_str()[:LONGEST_TEXT]
        return {"role": "tool", "content": answer, "tool_call_id": part.tool_call_id[:LONGEST_ID]}
    if isinstance(part, SpeechPart):
        return {"role": "user", "content": part.transcript, "author": author} if part.transcript else None
    if not isinstance(part, UserPromptPart):
        return None
    content = _content(part.content)
    return {"role": "user", "content": content, "author": author} if content else None


def _content(content: str | Sequence[UserContent]) -> str | list[dict[str, Any]]:
    """A text, or texts and what else there was: of a file its kind and address, not its bytes."""
    if isinstance(content, str):
        return content[:LONGEST_TEXT] if content.strip() else ""
    texts = _text(content)[:LONGEST_TEXT]
    others = [_other(one) for one in content if not isinstance(one, str | TextContent)]
    said = [one for one in others if one["type"] != "cache-point"]
    return [*([{"type": "text", "text": texts}] if texts.strip() else []), *said] if said else texts.strip() and texts


def _other(item: Any) -> dict[str, Any]:
    address = str(getattr(item, "url", ""))
    found = {"type": str(getattr(item, "kind", "unknown"))}
    return {**found, "url": address} if address.startswith("http") else found


def _text(content: str | Sequence[UserContent]) -> str:
    if isinstance(content, str):
        return content
    texts = [_text_of_item(one) for one in content]
    return "\n".join(one for one in texts if one)


def _text_of_item(item: UserContent) -> str:
    """What it says, unless it is a frame that the framework or a capability wrote."""
    if isinstance(item, TextContent):
        own = item.metadata.get("__pydantic_ai__") if isinstance(item.metadata, dict) else None
        return "" if isinstance(own, dict) and own.get("framework_frame") else item.content
    return item if isinstance(item, str) else ""


def _identified(message: ModelMessage, turn: NewMessage) -> NewMessage:
    """With an id that it keeps in later runs. Histories that were made by hand, or by a page, have no runs."""
    if not message.run_id or not message.timestamp:
        return turn
    said = [turn["role"], turn.get("content"), turn.get("tool_calls"), turn.get("tool_call_id")]
    text = json.dumps([message.run_id, message.timestamp.isoformat(), *said], sort_keys=True, default=str)
    return {**turn, "external_id": hashlib.sha256(text.encode()).hexdigest()}


def _behind(blocks: dict[int, str], message: ModelMessage) -> ModelMessage:
    """The message with the blocks before its prompts."""
    if not isinstance(message, ModelRequest) or not any(blocks.get(id(part)) for part in message.parts):
        return message
    parts = [_with_block(part, blocks.get(id(part), "")) for part in message.parts]
    return replace(message, parts=parts)


def _with_block(part: Any, block: str) -> Any:
    if not block:
        return part
    content = part.content
    return replace(part, content=f"{block}\n\n{content}" if isinstance(content, str) else [block, *content])
