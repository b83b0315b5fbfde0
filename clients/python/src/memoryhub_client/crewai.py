"""Memory for agents and crews of CrewAI, by its hooks around calls of the model.

memory = HubMemory(user_id="u1", session_id="s1")
with memory.hooks():
    agent.kickoff("I moved to Leiden.")
"""

import json
import logging
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from memoryhub_client._conversation import missing, sendable, text_of
from memoryhub_client._memory import LONGEST_ID, PAUSE_SECONDS, Memory, marks, named
from memoryhub_client.client import MemoryHub
from memoryhub_client.models import NewMessage

try:
    from crewai.hooks.dispatch import InterceptionPoint, get_scoped_hooks, scoped_hooks
    from crewai.hooks.llm_hooks import LLMCallHookContext
    from crewai.utilities.i18n import I18N_DEFAULT
except ImportError as error:
    raise missing("crewai", error) from error

logger = logging.getLogger(__name__)
LONGEST_TEXT = 500_000
# What an input said that was typed, and which blocks were told: the last ones.
MOST_KEPT = 200
# CrewAI's frames around a request. The messages before it have none.
FRAMES = ("native_task", "task_no_tools", "task")
# Without tools of the provider's kind the model needs the end of this one.
NEEDED = "task"


class HubMemory:
    """Gives each call of an agent's model what the hub remembers of the person, and posts what the conversation says.

    One for each conversation. It works inside of `with memory.hooks():`, for the agents that are kicked off there, and
    not for others that run at the same time. What always stands (profile, preferences) is behind the system prompt.
    What a message brings up is before that message, also in later calls.

    `Agent.kickoff` gets what the person typed: these messages are theirs. A crew gets tasks, which the application
    wrote; `said` names the input of `Crew.kickoff(inputs=…)` that the person typed.

    When the hub is away the agents go on without memory. What was not posted is posted at the next chance.
    """

    def __init__(
        self,
        *,
        user_id: str,
        session_id: str,
        agent_id: str | None = None,
        said: str | None = None,
        hub: MemoryHub | None = None,
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
        self._names: dict[str, str | None] = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}
        self._said, self._read, self._write = said, read, write
        self._typed: list[NewMessage] = []
        # Blocks that stand in messages of CrewAI: none of them was said.
        self._told: dict[str, None] = {}
        # Of an executor: how many messages in role user it began with. Later ones are CrewAI's own orders.
        self._began: OrderedDict[int, int] = OrderedDict()

    @contextmanager
    def hooks(self) -> Iterator[None]:
        """Within it agents have the memory, beside the hooks that are there."""
        own: dict[InterceptionPoint, Any] = {
            InterceptionPoint.INPUT: self._input,
            InterceptionPoint.PRE_MODEL_CALL: self._before,
            InterceptionPoint.POST_MODEL_CALL: self._after,
        }
        scope = {point: get_scoped_hooks(point) for point in InterceptionPoint}
        with scoped_hooks({point: [*found, own[point]] if point in own else found for point, found in scope.items()}):
            yield

    def end(self) -> None:
        """Tell the hub that the conversation is over: an episode of it comes at once, and not after half an hour of
        silence. A new message reopens it."""
        self._memory.end(self._names)

    def _input(self, context: Any) -> None:
        text = (context.inputs or {}).get(self._said) if self._said else None
        if isinstance(text, str) and text.strip():
            own_id = str(uuid.uuid4())
            typed: NewMessage = {"role": "user", "content": text, "author": "person", "external_id": own_id}
            self._typed = [*self._typed, typed][-MOST_KEPT:]

    def _before(self, context: LLMCallHookContext) -> None:
        # What CrewAI asks for itself (to convert an answer, to plan) has no executor.
        if context.executor is None:
            return
        for at, message in enumerate(context.messages):
            context.messages[at] = self._bare(cast("dict[str, Any]", message), context)  # type: ignore[call-overload]
        messages = cast("list[dict[str, Any]]", context.messages)
        if not context.iterations:
            self._began[id(context.executor)] = len(_at_user(messages))
            while len(self._began) > MOST_KEPT:
                self._began.popitem(last=False)
        self._post(context, messages)
        if self._read:
            self._tell(context, messages)

    def _after(self, context: LLMCallHookContext) -> None:
        if context.executor is None or not isinstance(context.response, str):
            return
        messages = [self._bare(cast("dict[str, Any]", one), context) for one in context.messages]
        self._post(context, [*messages, {"role": "assistant", "content": context.response}], last=True)

    def _post(self, context: LLMCallHookContext, messages: Sequence[dict[str, Any]], *, last: bool = False) -> None:
        if self._write:
            said = set() if context.task is not None else set(self._said_at(context, messages))
            turns = [turn for at, one in enumerate(messages) if (turn := as_turn(one, is_said=at in said))]
            self._memory.post_new(self._names, [*self._typed, *named(turns)], last=last)

    def _tell(self, context: LLMCallHookContext, messages: list[dict[str, Any]]) -> None:
        said = self._said_at(context, messages)
        found = marks(messages[at].get("content") for at in said)
        typed = text_of(self._typed[-1]["content"]) if self._typed and context.task is not None else ""
        query = typed or (_unframed(text_of(messages[said[-1]].get("content"))) if said else None)
        told = self._memory.told(self._names, query, found)
        for at, mark in zip(said, found, strict=True):
            if block := told.before.get(mark):
                messages[at] = _with(messages[at], self._kept(f"{block}\n\n"), "")
        if not told.stable:
            return
        if messages and messages[0].get("role") == "system":
            messages[0] = _with(messages[0], "", self._kept(f"\n\n{told.stable}"))
        else:
            messages.insert(0, {"role": "system", "content": self._kept(told.stable)})

    def _said_at(self, context: LLMCallHookContext, messages: Sequence[dict[str, Any]]) -> list[int]:
        found = _at_user(messages)
        return found[: self._began.get(id(context.executor), len(found))]

    def _kept(self, block: str) -> str:
        self._told[block] = None
        while len(self._told) > MOST_KEPT:
            del self._told[next(iter(self._told))]
        return block

    def _bare(self, message: dict[str, Any], context: LLMCallHookContext) -> dict[str, Any]:
        """The message without our blocks; of a conversation, without CrewAI's frame around the newest one, too."""
        content = message.get("content")
        if isinstance(content, list):
            parts = [part for part in content if not (isinstance(part, dict) and part.get("text") in self._told)]
            return {**message, "content": parts}
        if not isinstance(content, str):
            return message
        for block in self._told:
            content = content.removesuffix(block) if message.get("role") == "system" else content.removeprefix(block)
        if message.get("role") == "user" and context.task is None:
            content = _unframed(content, unless=NEEDED)
        return {**message, "content": content}


def as_turn(message: dict[str, Any], *, is_said: bool = True) -> NewMessage | None:
    """The message for the hub; None for one that nobody said. Unless `is_said`, one in role user is a task or order."""
    role, text = message.get("role"), text_of(message.get("content"))[:LONGEST_TEXT]
    turn: dict[str, Any] = {"role": role, "content": text}
    if role == "user":
        turn["author"] = "person" if is_said else "application"
        turn["content"] = _unframed(text) if is_said else text
    elif role == "assistant":
        if calls := [_call(one) for one in message.get("tool_calls") or () if isinstance(one, dict)]:
            turn["tool_calls"] = calls
    elif role == "tool":
        turn["tool_call_id"] = str(message.get("tool_call_id") or "")[:LONGEST_ID]
    else:
        return None
    says = turn["content"].strip() or "tool_calls" in turn or role == "tool"
    return cast("NewMessage", sendable(turn)) if says else None


def _at_user(messages: Sequence[dict[str, Any]]) -> list[int]:
    return [at for at, one in enumerate(messages) if one.get("role") == "user"]


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    given = function.get("arguments")
    arguments = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False, default=str)
    return {
        "id": str(call.get("id") or "")[:LONGEST_ID],
        "type": "function",
        "function": {"name": str(function.get("name") or "tool"), "arguments": arguments[:LONGEST_TEXT]},
    }


def _unframed(text: str, *, unless: str | None = None) -> str:
    """What stands in CrewAI's frame."""
    for name in FRAMES:
        before, _, after = I18N_DEFAULT.slice(name).partition("{input}")
        if text.startswith(before) and text.endswith(after) and len(text) >= len(before) + len(after) and after:
            return text if name == unless else text[len(before) : len(text) - len(after)]
    before, _, _ = I18N_DEFAULT.slice(FRAMES[0]).partition("{input}")
    return text.removeprefix(before)


def _with(message: dict[str, Any], before: str, after: str) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        parts = [{"type": "text", "text": one} for one in (before, after) if one]
        return {**message, "content": [*parts, *content] if before else [*content, *parts]}
    return {**message, "content": f"{before}{content or ''}{after}"}
