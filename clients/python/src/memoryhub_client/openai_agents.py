"""A session for OpenAI Agents that is kept in the hub, and instructions with what the hub remembers.

session = HubSession("s1", user_id="u1")
await Runner.run(agent, "I moved to Leiden.", session=session)
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar, cast

from memoryhub_client._conversation import (
    Item,
    StoredSession,
    missing,
    packed,
    sendable,
    text_of,
    unpacked,
)
from memoryhub_client._memory import LONGEST_ID, Memory, field_of, logged
from memoryhub_client.client import MemoryHub
from memoryhub_client.errors import MemoryHubError
from memoryhub_client.models import NewMessage, Role, Turn

try:
    from agents import Agent, RunContextWrapper, SessionSettings, TResponseInputItem
    from agents.memory import SessionABC
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
    from agents.run import CallModelData, ModelInputData
except ImportError as error:
    raise missing("openai-agents", error) from error

logger = logging.getLogger(__name__)
T = TypeVar("T")
NAMED = "openai-agents"
# Whose items are as plain as a turn.
PLAIN: frozenset[Role] = frozenset({"user", "assistant", "system"})
# A turn says something; of these two roles, only what has a text or a part.
NOTHING: list[dict[str, Any]] = [{"type": "memoryhub_client.nothing"}]


class HubSession(SessionABC):
    """A session of OpenAI Agents in the hub: messages are turns, and the hub learns from them.

    Items come back as they were, but for secrets that the hub has cut out. `pop_item` deletes the turn, `clear_session`
    the session, each with what the hub learned from it alone: the key needs the scopes ingest, read and write.
    """

    def __init__(
        self,
        session_id: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        hub: MemoryHub | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        # Threads, not the running loop: a session may be used by several loops, as `Runner.run_sync` has them.
        self._session = StoredSession(hub or MemoryHub(), session_id=session_id, user_id=user_id, agent_id=agent_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order; with a limit, the last ones."""
        most = resolve_session_limit(limit, self.session_settings)
        if most == 0:
            return []
        return cast("list[TResponseInputItem]", await asyncio.to_thread(self._items, most))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items at the end."""
        messages = [as_turn(cast("Item", item)) for item in items]
        await _settled(lambda: self._session.add(messages))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item off the session."""
        return cast("TResponseInputItem | None", await _settled(self._pop))

    async def close(self) -> None:
        """Tell the hub that the conversation is over: an episode of it comes at once. A new item reopens it. When the
        hub cannot be had, the log says so.
        """
        try:
            await _settled(self._session.end)
        except MemoryHubError as error:
            logger.warning("The hub was not told that the conversation is over: %s", logged(error))

    async def clear_session(self) -> None:
        """Delete the session."""
        await _settled(self._session.clear)

    def _items(self, most: int | None) -> list[Item]:
        if most is None or most < 0:
            return [item for turn in self._session.turns() if (item := as_item(turn))]
        newest = (item for turn in self._session.newest(most) if (item := as_item(turn)))
        return list(islice(newest, most))[::-1]

    def _pop(self) -> Item | None:
        for turn in self._session.newest(1):
            # Whoever else pops at the same moment may have taken it: then it is the one before.
            if (item := as_item(turn)) and self._session.take(turn):
                return item
        return None


class HubInstructions:
    """An agent's instructions, with what the hub remembers of the person behind them.

    `Agent(instructions=HubInstructions("You are a cook."))`. The `user_id` is given, or a field of the run's context;
    so are `session_id`, whose turns are not told again, and `agent_id`. When the hub is away the agent goes on without
    memory.
    """

    def __init__(
        self,
        prompt: str = "",
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        max_tokens: int = 2000,
        hub: MemoryHub | None = None,
        tokenizer: str | None = None,
    ) -> None:
        self._prompt = prompt
        self._named = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}
        self._memory = Memory(hub, max_tokens=max_tokens, log=logger, tokenizer=tokenizer)

    async def __call__(self, context: RunContextWrapper[Any], agent: Agent[Any]) -> str:  # noqa: ARG002  # given by the SDK
        """The instructions for the next call of the model."""
        names = {name: given or field_of(context.context, name) for name, given in self._named.items()}
        if not names["user_id"]:
            self._memory.warn_once("No memory: the context of this run has no user_id.")
            return self._prompt
        memory = await asyncio.to_thread(self._memory.of, names, _query(context))
        return "\n\n".join(one for one in (self._prompt, memory) if one)


class HubInput:
    """What the hub remembers, in each call of the model, so that a provider's cache of the prompt holds.

    `Runner.run(agent, …, run_config=RunConfig(call_model_input_filter=HubInput(user_id="u1", session_id="s1")))`. What
    always stands is behind the instructions. What a message brings up is an item before that message, and stays there
    in later calls; no session keeps it. The names are given or fields of the run's context, as of HubInstructions, in
    whose place it is. Without a session there is no memory: nothing else tells a conversation from others.
    """

    def __init__(
        self,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        max_tokens: int = 2000,
        hub: MemoryHub | None = None,
        tokenizer: str | None = None,
    ) -> None:
        self._named = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}
        self._memory = Memory(hub, max_tokens=max_tokens, log=logger, tokenizer=tokenizer)

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """The input of the next call of the model."""
        names = {name: given or field_of(data.context, name) for name, given in self._named.items()}
        if not (names["user_id"] and names["session_id"]):
            self._memory.warn_once("No memory: this run has no user_id, or no session_id.")
            return data.model_data
        items = data.model_data.input
        # By the place of each item of the user's what stands for it and all before it that the user said.
        said: dict[int, str] = {}
        digest = hashlib.sha256()
        for at, item in enumerate(items):
            if isinstance(item, dict) and item.get("role") == "user":
                digest.update(json.dumps(item.get("content"), sort_keys=True, default=str).encode() + b"\n")
                said[at] = digest.hexdigest()
        query = text_of(cast("Item", items[max(said)]).get("content")) if said else None
        told = await asyncio.to_thread(self._memory.told, names, query, list(said.values()))
        shown: list[TResponseInputItem] = []
        for at, item in enumerate(items):
            if block := told.before.get(said.get(at, "")):
                shown.append(cast("TResponseInputItem", {"role": "developer", "content": block}))
            shown.append(item)
        instructions = "\n\n".join(one for one in (data.model_data.instructions, told.stable) if one)
        return ModelInputData(input=shown, instructions=instructions or None)


def as_turn(item: Item) -> NewMessage:
    """The item as a message for the hub, with the item itself where a message cannot say all of it."""
    item = sendable(json.loads(json.dumps(item)))
    role, content = item.get("role"), item.get("content")
    if role in PLAIN and isinstance(content, str) and content.strip() and set(item) == {"role", "content"}:
        return packed(_by(role, content), None, named=NAMED)
    return packed(_message(item), item, named=NAMED)


def _message(item: Item) -> NewMessage:
    kind, call_id = str(item.get("type") or "message"), str(item.get("call_id") or "")[:LONGEST_ID]
    if item.get("role"):
        text = text_of(item.get("content"))
        return _by(item["role"], text if text.strip() else NOTHING)
    if kind.endswith("_output") and call_id:
        return {"role": "tool", "content": text_of(item.get("output")), "tool_call_id": call_id}
    if kind.endswith("_call") and call_id:
        spoken = item.get("arguments") or item.get("input") or item.get("action") or ""
        arguments = spoken if isinstance(spoken, str) else json.dumps(spoken, ensure_ascii=False)
        function = {"name": str(item.get("name") or kind), "arguments": arguments}
        calls = [{"id": call_id, "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    # What models and hosted tools do besides: neither extraction nor a context's messages look at it.
    return {"role": "tool", "content": ""}


def _by(role: Any, content: str | list[dict[str, Any]]) -> NewMessage:
    """What the input of a run says in role user is the person's: orders and summaries of the SDK have other roles."""
    said: NewMessage = {"role": role, "content": content}
    return {**said, "author": "person"} if role == "user" else said


def as_item(turn: Turn) -> Item | None:
    """The item that `as_turn` made the turn of; of turns that came by other ways, what was said."""
    item = unpacked(turn, named=NAMED)
    if item:
        return item
    spoken = text_of(turn.content)
    return {"role": turn.role, "content": spoken} if spoken and turn.role in PLAIN else None


def _query(context: RunContextWrapper[Any]) -> str | None:
    """What the user said last."""
    for item in reversed(context.turn_input):
        if isinstance(item, dict) and item.get("role") == "user":
            return text_of(item.get("content"))
    return None


async def _settled(change: Callable[[], T]) -> T:
    """Make a change in a thread. Who is cancelled meanwhile waits for it: another change would overtake it."""
    task = asyncio.ensure_future(asyncio.to_thread(change))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
