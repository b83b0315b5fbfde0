"""Memory for LangChain's agents and deepagents, and a chat message history.

agent = create_agent(model, middleware=[HubMemoryMiddleware()], checkpointer=checkpointer)
agent.invoke({"messages": [...]}, {"configurable": {"thread_id": "t1", "user_id": "u1"}})
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, NamedTuple, TypedDict, cast, get_args

from typing_extensions import NotRequired

from memoryhub_client._conversation import (
    StoredSession,
    missing,
    packed,
    sendable,
    text_of,
    unpacked,
)
from memoryhub_client._memory import LONGEST_ID, PAUSE_SECONDS, Memory, field_of
from memoryhub_client.client import MemoryHub
from memoryhub_client.models import Author, NewMessage, Turn

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        BaseMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
        message_to_dict,
        messages_from_dict,
    )
    from langgraph.config import get_config
    from langgraph.runtime import Runtime
except ImportError as error:
    raise missing("langchain", error) from error

logger = logging.getLogger(__name__)
LONGEST_TEXT = 500_000
CUT = "\n[cut]"


class Names(NamedTuple):
    """Whose memory it is."""

    user_id: str
    session_id: str | None
    agent_id: str | None


class PostedMark(TypedDict):
    """Up to which message of the thread all were posted. The digest tells whether they are still the same."""

    last: str
    digest: str


class HubMemoryState(AgentState[Any]):
    """The state of an agent with memory. It is checkpointed, so a thread that is resumed knows what it posted."""

    memoryhub_posted: NotRequired[Annotated[PostedMark | None, PrivateStateAttr]]


Name = str | Callable[[Runtime[Any]], str | None]


class HubMemoryMiddleware(AgentMiddleware[HubMemoryState, Any, Any]):
    """Gives each model call what the hub remembers of the person, and posts the messages of the thread.

    What always stands (profile, instructions) is behind the system prompt. What a message brings up is before that
    message, and stays there in later calls, so that a provider's cache of the prompt holds. The state has none of it.

    `user_id`, `session_id` and `agent_id` are texts, or functions of LangGraph's runtime. Without them they are taken
    from the run: fields of its context, or `configurable` of its config, where `thread_id` stands for the session.
    Without a person there is no memory, without a session nothing is posted.

    `guidelines`: for an agent that writes memories with tools, also tell it what to remember and what never.

    When the hub is away the agent goes on without memory. What was not posted is posted at the next chance.
    """

    state_schema = HubMemoryState

    def __init__(
        self,
        hub: MemoryHub | None = None,
        *,
        user_id: Name | None = None,
        session_id: Name | None = None,
        agent_id: Name | None = None,
        max_tokens: int = 2000,
        read: bool = True,
        write: bool = True,
        guidelines: bool = False,
        pause: float = PAUSE_SECONDS,
        tokenizer: str | None = None,
    ) -> None:
        super().__init__()
        self._memory = Memory(
            hub, max_tokens=max_tokens, log=logger, pause=pause, guidelines=guidelines, tokenizer=tokenizer
        )
        self._named = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}
        self._read, self._write = read, write

    # Posting: before anything can drop a message, and when all is said.

    def before_agent(self, state: HubMemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Post what the thread has that the hub has not, the new message too."""
        return self._posted(state, runtime)

    async def abefore_agent(self, state: HubMemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """As `before_agent`."""
        return await asyncio.to_thread(self._posted, state, runtime)

    def before_model(self, state: HubMemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Post what tools answered, before a summariser drops it."""
        return self._posted(state, runtime)

    async def abefore_model(self, state: HubMemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """As `before_model`."""
        return await asyncio.to_thread(self._posted, state, runtime)

    def after_agent(self, state: HubMemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Post the answer."""
        return self._posted(state, runtime, last=True)

    async def aafter_agent(self, state: HubMemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """As `after_agent`."""
        return await asyncio.to_thread(self._posted, state, runtime, last=True)

    def _posted(self, state: HubMemoryState, runtime: Runtime[Any], *, last: bool = False) -> dict[str, Any] | None:
        """The change of the state: the new mark."""
        names = self._names(runtime)
        if not self._write or names is None or names.session_id is None or not (last or self._memory.may_ask()):
            return None
        messages = [message for message in state["messages"] if message.id]
        before = state.get("memoryhub_posted")
        done, in_tool = _done(messages, before), _is_in_tool()
        new = enumerate(messages[done:], start=done)
        turns = [(index, turn) for index, message in new if (turn := as_turn(message, in_tool=in_tool))]
        posted = self._memory.post(names._asdict(), [turn for _, turn in turns])
        mark = _mark(messages[: turns[posted][0] if posted < len(turns) else len(messages)])
        return {"memoryhub_posted": mark} if mark and mark != before else None

    # The end

    def end(self, session_id: str, *, user_id: str | None = None, agent_id: str | None = None) -> None:
        """Tell the hub that a thread is over, as when you delete it: an episode of it comes at once, and not after half
        an hour of silence. A new message reopens it. The names that are left out are the middleware's own texts.
        """
        own = {name: one if isinstance(one, str) else None for name, one in self._named.items()}
        names = {"user_id": user_id or own["user_id"], "agent_id": agent_id or own["agent_id"]}
        self._memory.end({**names, "session_id": session_id})

    async def aend(self, session_id: str, *, user_id: str | None = None, agent_id: str | None = None) -> None:
        """As `end`."""
        await asyncio.to_thread(self.end, session_id, user_id=user_id, agent_id=agent_id)

    # Contexts

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with what is remembered behind the system prompt."""
        return handler(self._with_memory(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        return await handler(await asyncio.to_thread(self._with_memory, request))

    def _with_memory(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        names = self._names(request.runtime)
        if not self._read or names is None:
            return request
        if names.session_id is None:
            # Nothing tells a conversation from others: all of it stands with the prompt.
            memory = self._memory.of(names._asdict(), _query(request.messages))
            return request.override(system_message=_with(request.system_message, memory)) if memory else request
        said = {at: _fingerprint(one).hex() for at, one in enumerate(request.messages) if _is_said(one)}
        told = self._memory.told(names._asdict(), _query(request.messages), list(said.values()))
        messages = [_behind(told.before.get(said.get(at, ""), ""), one) for at, one in enumerate(request.messages)]
        if not told.stable:
            return request.override(messages=messages)
        return request.override(system_message=_with(request.system_message, told.stable), messages=messages)

    # Names

    def _names(self, runtime: Runtime[Any] | None) -> Names | None:
        configurable = _configurable()
        user_id = self._name("user_id", runtime, configurable)
        if user_id is None:
            self._memory.warn_once("No memory: neither the context nor the config of this run has a user_id.")
            return None
        session_id = self._name("session_id", runtime, configurable) or configurable.get("thread_id")
        if session_id is None and self._write:
            self._memory.warn_once("Nothing is posted: this run has no session_id, and no thread_id.")
        agent_id = self._name("agent_id", runtime, configurable)
        return Names(user_id, None if session_id is None else str(session_id), agent_id)

    def _name(self, name: str, runtime: Runtime[Any] | None, configurable: dict[str, Any]) -> str | None:
        given = self._named[name]
        if callable(given):
            given = given(runtime) if runtime else None
        found = given or field_of(getattr(runtime, "context", None), name) or configurable.get(name)
        return str(found) if found else None


def as_turn(message: BaseMessage, *, in_tool: bool = False) -> NewMessage | None:
    """The message for the hub; None for one that nobody said, such as a system prompt or a summary. `in_tool`: of an
    agent that another one calls as a tool."""
    role: Any = {"human": "user", "ai": "assistant", "tool": "tool"}.get(message.type)
    own = message.additional_kwargs
    if role is None or HIDDEN & own.keys():
        return None
    content = _shortened(message.content)
    turn: NewMessage = {"role": role, "content": content, "external_id": _external_id(str(message.id))}
    if isinstance(message, AIMessage) and message.tool_calls:
        turn["tool_calls"] = [_call(one) for one in message.tool_calls]
    if isinstance(message, ToolMessage):
        turn["tool_call_id"] = message.tool_call_id[:LONGEST_ID]
    if author := _author(message, in_tool=in_tool):
        turn["author"] = author
    if message.name:
        turn["name"] = message.name[:LONGEST_ID]
    if own.get("hide_from_ui") is True:
        turn["metadata"] = {"hide_from_ui": True}
    says = bool(content.strip() if isinstance(content, str) else content)
    if (role == "user" and not says) or (role == "assistant" and not says and not turn.get("tool_calls")):
        return None
    return cast("NewMessage", sendable(turn))


def _author(message: BaseMessage, *, in_tool: bool = False) -> Author | None:
    """Whose words a human message holds; None where the hub can tell better."""
    own = message.additional_kwargs
    if message.type != "human":
        return None
    if own.get(AUTHOR) in AUTHORS:
        return cast("Author", own[AUTHOR])
    if in_tool or "lc_source" in own:
        return "model"
    if HIDDEN & own.keys() or own.get("hide_from_ui") is True:
        return "person" if own.get("human_input_response") else "application"
    # Another agent or another person: the hub knows by which name the person speaks.
    return None if message.name else "person"


def _call(call: Any) -> dict[str, Any]:
    arguments = json.dumps(call["args"], ensure_ascii=False, default=str)[:LONGEST_TEXT]
    return {"id": call["id"] or "", "type": "function", "function": {"name": call["name"], "arguments": arguments}}


def _shortened(content: Any) -> Any:
    """A text, or texts and what else there was: of an image its address, not its bytes. No reasoning."""
    if isinstance(content, str):
        return content if len(content) <= LONGEST_TEXT else content[:LONGEST_TEXT] + CUT
    spoken = text_of(content)
    others = [_other(one) for one in content if isinstance(one, dict) and one.get("type") not in TEXTS]
    text = _shortened(spoken) if spoken else ""
    return [*([{"type": "text", "text": text}] if text else []), *others] if others else text


# What summarisers and deepagents' tools mark their own messages with: they come as the user's, who said nothing.
HIDDEN = frozenset({"lc_source", "read_file_media_result"})
# In additional_kwargs: by it the application says whose words a human message holds.
AUTHOR = "memoryhub_author"
AUTHORS = frozenset(get_args(Author))
# Parts that are said by `text`, calls that are in tool_calls, and what models think.
TEXTS = frozenset({
    "text", "input_text", "output_text", "tool_use", "tool_call", "function_call", "thinking", "redacted_thinking",
    "reasoning", "input_json_delta",
})  # fmt: skip


def _other(part: dict[str, Any]) -> dict[str, Any]:
    address = part.get("url") or part.get("image_url") or ""
    address = address.get("url", "") if isinstance(address, dict) else address
    return {"type": str(part.get("type") or "unknown"), **({"url": address} if address.startswith("http") else {})}


def _external_id(message_id: str) -> str:
    is_whole = len(message_id) <= LONGEST_ID and message_id.isprintable()
    return message_id if is_whole else hashlib.sha256(message_id.encode("utf-8", "replace")).hexdigest()


def _done(messages: Sequence[AnyMessage], mark: PostedMark | None) -> int:
    """How many of them the mark says were posted. None if any of them has changed: the hub knows its own again."""
    if mark is None:
        return 0
    digest = hashlib.sha256()
    for index, message in enumerate(messages, start=1):
        digest.update(_fingerprint(message))
        if message.id == mark["last"]:
            return index if digest.hexdigest()[:32] == mark["digest"] else 0
    return 0


def _mark(messages: Sequence[AnyMessage]) -> PostedMark | None:
    if not messages:
        return None
    digest = hashlib.sha256()
    for message in messages:
        digest.update(_fingerprint(message))
    return {"last": str(messages[-1].id), "digest": digest.hexdigest()[:32]}


def _fingerprint(message: AnyMessage) -> bytes:
    return hashlib.sha256(json.dumps([message.id, message.type, message.content], default=str).encode()).digest()


def _query(messages: Sequence[AnyMessage]) -> str | None:
    """What the user said last."""
    return next((text_of(message.content) for message in reversed(messages) if _is_said(message)), None)


def _is_said(message: AnyMessage) -> bool:
    return isinstance(message, HumanMessage) and not HIDDEN & message.additional_kwargs.keys()


def _behind(block: str, message: AnyMessage) -> AnyMessage:
    """The message with the block before it, for the model alone."""
    if not block:
        return message
    content = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": f"{block}\n\n{content}"})
    return message.model_copy(update={"content": [{"type": "text", "text": block}, *content]})


def _with(system_message: SystemMessage | None, memory: str) -> SystemMessage:
    """The user's own prompt as it is, and the memory behind it: what changes least comes first."""
    if system_message is None:
        return SystemMessage(memory)
    content = system_message.content
    if isinstance(content, str):
        return system_message.model_copy(update={"content": f"{content}\n\n{memory}" if content else memory})
    return system_message.model_copy(update={"content": [*content, {"type": "text", "text": f"\n\n{memory}"}]})


def _configurable() -> dict[str, Any]:
    try:
        return dict(get_config().get("configurable") or {})
    except RuntimeError:
        # Outside of a run.
        return {}


def _is_in_tool() -> bool:
    """Whether this run is a tool's of another agent, as deepagents' sub-agents are: their first message is an order
    that a model wrote."""
    above = str(_configurable().get("checkpoint_ns") or "").split("|")[:-1]
    return any(one.startswith("tools:") for one in above)


class HubChatMessageHistory(BaseChatMessageHistory):
    """A conversation as a list of LangChain's messages, kept in the hub.

    Messages come back as they were, but for secrets that the hub has cut out. `clear()` deletes the session, with what
    the hub learned from it alone.
    """

    def __init__(
        self, session_id: str, *, user_id: str | None, agent_id: str | None = None, hub: MemoryHub | None = None
    ) -> None:
        self._session = StoredSession(hub or MemoryHub(), session_id=session_id, user_id=user_id, agent_id=agent_id)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages, in order."""
        return [one for turn in self._session.turns() if (one := _message(turn))]

    async def aget_messages(self) -> list[BaseMessage]:
        """As `messages`."""
        return await asyncio.to_thread(lambda: self.messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages at the end, each of an id once."""
        self._session.add([_packed(message) for message in messages])

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """As `add_messages`."""
        await asyncio.to_thread(self.add_messages, messages)

    def end(self) -> None:
        """Tell the hub that the conversation is over: an episode of it comes at once. A new message reopens it."""
        self._session.end()

    async def aend(self) -> None:
        """As `end`."""
        await asyncio.to_thread(self.end)

    def clear(self) -> None:
        """Delete the session."""
        self._session.clear()

    async def aclear(self) -> None:
        """As `clear`."""
        await asyncio.to_thread(self.clear)


NAMED = "langchain"


def _packed(message: BaseMessage) -> NewMessage:
    item = sendable(json.loads(json.dumps(message_to_dict(message), default=str)))
    turn = as_turn(message.model_copy(update={"additional_kwargs": {}}))
    if turn is None:
        text = str(sendable(text_of(message.content)))
        # A system prompt, say, or a message that says nothing: only those of a tool may.
        turn = {"role": "system" if text else "tool", "content": text}
    elif author := _author(message):
        turn["author"] = author
    if message.id is None:
        turn.pop("external_id", None)
    return packed(turn, item, named=NAMED)


def _message(turn: Turn) -> BaseMessage | None:
    item = unpacked(turn, named=NAMED)
    if item:
        return messages_from_dict([item])[0]
    # A turn that was posted by other ways.
    spoken = text_of(turn.content)
    made: dict[str, type[BaseMessage]] = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}
    return made[turn.role](content=spoken, id=turn.external_id) if spoken and turn.role in made else None
