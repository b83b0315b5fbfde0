"""Memory for agents and chat engines of LlamaIndex.

memory = HubMemory(user_id="u1", session_id="s1")
await agent.run("I moved to Leiden.", memory=memory)
"""

import asyncio
import json
import logging
from typing import Any, cast

from typing_extensions import Self

from memoryhub_client._conversation import missing, sendable
from memoryhub_client._memory import LONGEST_ID, PAUSE_SECONDS, Memory, marks, named
from memoryhub_client.client import MemoryHub
from memoryhub_client.models import Author, NewMessage

try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
    from llama_index.core.bridge.pydantic import PrivateAttr, SerializeAsAny
    from llama_index.core.memory import BaseMemory
    from llama_index.core.memory import Memory as Kept
except ImportError as error:
    raise missing("llamaindex", error) from error

logger = logging.getLogger(__name__)
LONGEST_TEXT = 500_000
ROLES = {
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}
# CodeActAgent gives the model the output of its code in role user.
CODE_RESULT = "Result of executing the code given:\n\n"


class HubMemory(BaseMemory):
    """A conversation's memory that also knows what the hub remembers of the person, and posts what is said.

    The history is that of `memory`, another one of LlamaIndex's; without it, of a `Memory` in this process. What always
    stands (profile, preferences) is a system message at the beginning. What a message brings up is before that message,
    and stays there in later calls, so that a provider's cache of the prompt holds. The history has none of it.

    `author`: whose words messages of role user are. "model" for an agent that another one calls as a tool.

    When the hub is away the agent goes on without memory. What was not posted is posted with the next message.
    """

    user_id: str
    session_id: str
    agent_id: str | None = None
    author: str = "person"
    read: bool = True
    write: bool = True
    memory: SerializeAsAny[BaseMemory]
    _hub: Memory = PrivateAttr()

    def __init__(
        self,
        *,
        user_id: str,
        session_id: str,
        agent_id: str | None = None,
        memory: BaseMemory | None = None,
        hub: MemoryHub | None = None,
        author: Author = "person",
        max_tokens: int = 2000,
        read: bool = True,
        write: bool = True,
        guidelines: bool = False,
        pause: float = PAUSE_SECONDS,
        tokenizer: str | None = None,
    ) -> None:
        # Unlike their buffer it does not cut off a conversation at 3,000 tokens.
        kept = memory if memory is not None else Kept.from_defaults(session_id=session_id)
        super().__init__(
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            author=author,
            read=read,
            write=write,
            memory=kept,
        )
        self._hub = Memory(
            hub, max_tokens=max_tokens, log=logger, pause=pause, guidelines=guidelines, tokenizer=tokenizer
        )

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex stores it."""
        return "HubMemory"

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> Self:
        """As the class itself."""
        return cls(**kwargs)

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002  # LlamaIndex's
        """The history, with what is remembered, for a call of the model."""
        return self._with_memory(self.memory.get(input=input, **kwargs))

    async def aget(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002
        """As `get`."""
        messages = await self.memory.aget(input=input, **kwargs)
        return await asyncio.to_thread(self._with_memory, messages)

    def get_all(self) -> list[ChatMessage]:
        """The history alone."""
        return self.memory.get_all()

    async def aget_all(self) -> list[ChatMessage]:
        """As `get_all`."""
        return await self.memory.aget_all()

    def put(self, message: ChatMessage) -> None:
        """Add a message."""
        self.memory.put(message)
        self._post(self.memory.get_all())

    async def aput(self, message: ChatMessage) -> None:
        """As `put`."""
        await self.memory.aput(message)
        await self._apost()

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages."""
        self.memory.put_messages(messages)
        self._post(self.memory.get_all())

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """As `put_messages`."""
        await self.memory.aput_messages(messages)
        await self._apost()

    def set(self, messages: list[ChatMessage]) -> None:
        """Make the history these messages. What they leave out stays in the hub."""
        self.memory.set(messages)
        self._post(self.memory.get_all())

    async def aset(self, messages: list[ChatMessage]) -> None:
        """As `set`."""
        await self.memory.aset(messages)
        await self._apost()

    def reset(self) -> None:
        """Empty the history. The hub keeps what was said."""
        self.memory.reset()

    async def areset(self) -> None:
        """As `reset`."""
        await self.memory.areset()

    def end(self) -> None:
        """Tell the hub that the conversation is over: an episode of it comes at once, and not after half an hour of
        silence. A new message reopens it."""
        self._hub.end(self._names())

    async def aend(self) -> None:
        """As `end`."""
        await asyncio.to_thread(self.end)

    def _names(self) -> dict[str, str | None]:
        return {"user_id": self.user_id, "session_id": self.session_id, "agent_id": self.agent_id}

    async def _apost(self) -> None:
        messages = await self.memory.aget_all()
        await asyncio.to_thread(self._post, messages)

    def _post(self, messages: list[ChatMessage]) -> None:
        if self.write:
            turns = [turn for one in messages if (turn := as_turn(one, author=cast("Author", self.author)))]
            self._hub.post_new(self._names(), named(turns), last=messages[-1].role != MessageRole.USER)

    def _with_memory(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        # Copies: an agent with a state writes it into the last message that it got.
        messages = [one.model_copy(deep=True) for one in messages]
        if not self.read:
            return messages
        said = [one for one in messages if _is_said(one)]
        found = marks(one.content for one in said)
        told = self._hub.told(self._names(), said[-1].content if said else None, found)
        for message, mark in zip(said, found, strict=True):
            if block := told.before.get(mark):
                message.blocks = [TextBlock(text=f"{block}\n"), *message.blocks]
        if not told.stable:
            return messages
        if messages and messages[0].role == MessageRole.SYSTEM:
            messages[0].blocks = [*messages[0].blocks, TextBlock(text=f"\n{told.stable}")]
            return messages
        return [ChatMessage(role=MessageRole.SYSTEM, content=told.stable), *messages]


def as_turn(message: ChatMessage, *, author: Author = "person") -> NewMessage | None:
    """The message for the hub; None for one that nobody said, such as a system prompt."""
    role = ROLES.get(message.role)
    if role is None:
        return None
    text = (message.content or "")[:LONGEST_TEXT]
    turn: dict[str, Any] = {"role": role, "content": text}
    if role == "user":
        turn["author"] = author if _is_said(message) else "application"
        others = [{"type": one.block_type} for one in message.blocks if not isinstance(one, TextBlock)]
        said = [one for one in others if one["type"] != "cache"]
        if said:
            turn["content"] = [*([{"type": "text", "text": text}] if text.strip() else []), *said]
    if role == "assistant" and (calls := _calls(message)):
        turn["tool_calls"] = calls
    if role == "tool" and (call_id := message.additional_kwargs.get("tool_call_id")):
        turn["tool_call_id"] = str(call_id)[:LONGEST_ID]
    says = turn["content"] if isinstance(turn["content"], list) else turn["content"].strip()
    return cast("NewMessage", sendable(turn)) if says or role == "tool" or "tool_calls" in turn else None


def _is_said(message: ChatMessage) -> bool:
    return message.role == MessageRole.USER and not (message.content or "").startswith(CODE_RESULT)


def _calls(message: ChatMessage) -> list[dict[str, Any]]:
    blocks = [one for one in message.blocks if isinstance(one, ToolCallBlock)]
    if blocks:
        return [_call(one.tool_call_id, one.tool_name, one.tool_kwargs) for one in blocks]
    # Of integrations from before there was such a block: OpenAI's objects, or as they are stored.
    found = []
    for one in message.additional_kwargs.get("tool_calls") or ():
        call = one if isinstance(one, dict) else one.model_dump() if hasattr(one, "model_dump") else {}
        if function := call.get("function"):
            found.append(_call(call.get("id"), function.get("name"), function.get("arguments")))
    return found


def _call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    spoken = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False, default=str)
    return {
        "id": str(call_id or "")[:LONGEST_ID],
        "type": "function",
        "function": {"name": str(name or "tool"), "arguments": spoken[:LONGEST_TEXT]},
    }
