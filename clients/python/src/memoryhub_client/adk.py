"""Memory for agents of Google's ADK: a plugin, and a memory service for ADK's own memory tools.

app = App(name="cook", root_agent=agent, plugins=[HubMemoryPlugin()])
runner = Runner(app=app, session_service=InMemorySessionService(), memory_service=HubMemoryService())
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from memoryhub_client._conversation import missing, sendable
from memoryhub_client._memory import LONGEST_ID, PAUSE_SECONDS, Memory, logged, marks
from memoryhub_client.client import MemoryHub
from memoryhub_client.errors import MemoryHubError
from memoryhub_client.models import Author, NewMessage, Result

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions.session import Session
    from google.genai import types
except ImportError as error:
    raise missing("adk", error) from error

logger = logging.getLogger(__name__)
LONGEST_TEXT = 500_000
PERSON = "user"
SEARCHED = 10


class HubMemoryPlugin(BasePlugin):
    """Gives each model request what the hub remembers of the session's user, and posts the session's events.

    What always stands (profile, preferences) is behind the system instruction. What a message brings up is before that
    message, and stays there in later requests, so that a provider's cache of the prompt holds. The session has none of
    it.

    Person and session are those of ADK's session; `agent_id` is given, and by default none: all agents of the app share
    what is said. `author`: whose words the messages of ADK's user are.

    When the hub is away the agent goes on without memory. What was not posted is posted at the next chance.
    """

    def __init__(
        self,
        hub: MemoryHub | None = None,
        *,
        agent_id: str | None = None,
        author: Author = "person",
        max_tokens: int = 2000,
        read: bool = True,
        write: bool = True,
        guidelines: bool = False,
        pause: float = PAUSE_SECONDS,
        tokenizer: str | None = None,
        name: str = "memoryhub",
    ) -> None:
        super().__init__(name=name)
        self._memory = Memory(
            hub, max_tokens=max_tokens, log=logger, pause=pause, guidelines=guidelines, tokenizer=tokenizer
        )
        self._agent_id, self._author, self._read, self._write = agent_id, author, read, write

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Post what was said since the last request, and tell the model what is remembered."""
        session = callback_context.session
        await asyncio.to_thread(self._post, session)
        if self._read:
            await asyncio.to_thread(self._tell, session, llm_request)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Post the answer."""
        await asyncio.to_thread(self._post, invocation_context.session, last=True)

    async def end(self, session_id: str, *, user_id: str) -> None:
        """Tell the hub that a session is over: an episode of it comes at once, and not after half an hour of silence. A
        new message reopens it."""
        names = {"user_id": user_id, "session_id": session_id, "agent_id": self._agent_id}
        await asyncio.to_thread(self._memory.end, names)

    def _names(self, session: Session) -> dict[str, str | None]:
        return {"user_id": session.user_id, "session_id": session.id, "agent_id": self._agent_id}

    def _post(self, session: Session, *, last: bool = False) -> None:
        if self._write:
            self._memory.post_new(self._names(session), as_turns(session.events, author=self._author), last=last)

    def _tell(self, session: Session, request: LlmRequest) -> None:
        said = _said(session.events, request.contents)
        found = marks(_text(request.contents[at].parts) for at in said)
        query = _text(request.contents[said[-1]].parts) if said else None
        told = self._memory.told(self._names(session), query, found)
        for at, mark in zip(said, found, strict=True):
            if block := told.before.get(mark):
                content = request.contents[at]
                # Another content: this one is the session's.
                parts = [types.Part(text=f"{block}\n\n"), *(content.parts or ())]
                request.contents[at] = types.Content(role=content.role, parts=parts)
        if told.stable:
            request.append_instructions([told.stable])


class HubMemoryService(BaseMemoryService):
    """The hub as the memory of ADK's own tools `load_memory` and `preload_memory`.

    `add_session_to_memory` posts a session's events, `search_memory` finds facts, episodes and what was said. When the
    hub is away nothing is found. The plugin posts by itself: with it, none of the former is needed.
    """

    def __init__(self, hub: MemoryHub | None = None, *, agent_id: str | None = None, author: Author = "person") -> None:
        self._memory = Memory(hub, max_tokens=0, log=logger)
        self._agent_id, self._author = agent_id, author

    async def add_session_to_memory(self, session: Session) -> None:
        """Post what is new in the session."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,  # noqa: ARG002  # ADK's
    ) -> None:
        """Post these events, each once."""
        names = {"user_id": user_id, "session_id": session_id or app_name, "agent_id": self._agent_id}
        turns = as_turns(events, author=self._author)
        await asyncio.to_thread(self._memory.post, names, turns)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:  # noqa: ARG002
        """What the hub finds, best first."""
        return SearchMemoryResponse(memories=await asyncio.to_thread(self._search, user_id, query))

    def _search(self, user_id: str, query: str) -> list[MemoryEntry]:
        if not self._memory.may_ask():
            return []
        try:
            found = self._memory.hub.search(user_id=user_id, query=query, limit=SEARCHED)
        except MemoryHubError as error:
            logger.warning("The hub was not searched: %s", logged(error))
            return []
        return [_entry(one) for one in found.results]


def _entry(found: Result) -> MemoryEntry:
    return MemoryEntry(
        id=found.id,
        content=types.Content(
            role="model" if found.role == "assistant" else PERSON, parts=[types.Part(text=found.text)]
        ),
        author=found.role or found.kind,
        timestamp=found.created_at.isoformat(),
    )


def as_turns(events: Iterable[Event], *, author: Author = "person") -> list[NewMessage]:
    """What the events say, for the hub, without thoughts and partial answers."""
    return [turn for event in events if not event.partial for turn in _turns(event, author)]


def _turns(event: Event, author: Author) -> list[NewMessage]:
    parts = _parts(event)
    text = _text(parts)[:LONGEST_TEXT]
    others = [one for one in map(_other, parts) if one]
    turns: list[dict[str, Any]] = []
    if event.author == PERSON:
        if text.strip() or others:
            said: Any = [*([{"type": "text", "text": text}] if text.strip() else []), *others] if others else text
            turns = [{"role": "user", "content": said, "author": author}]
    else:
        calls = [_call(part.function_call) for part in parts if part.function_call]
        if text.strip() or calls:
            turns = [{"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}]
    for part in parts:
        if answer := part.function_response:
            content = json.dumps(answer.response, ensure_ascii=False, default=str)[:LONGEST_TEXT]
            turns.append({"role": "tool", "content": content, "tool_call_id": str(answer.id or "")[:LONGEST_ID]})
    return [
        cast("NewMessage", sendable({**one, "external_id": f"{event.id}:{at}"[:LONGEST_ID]}))
        for at, one in enumerate(turns)
    ]


def _call(call: types.FunctionCall) -> dict[str, Any]:
    arguments = json.dumps(call.args or {}, ensure_ascii=False, default=str)[:LONGEST_TEXT]
    function = {"name": call.name or "tool", "arguments": arguments}
    return {"id": (call.id or "")[:LONGEST_ID], "type": "function", "function": function}


def _other(part: types.Part) -> dict[str, Any] | None:
    """Of a file its kind and address, not its bytes."""
    if part.file_data:
        address = part.file_data.file_uri or ""
        return {"type": "file", **({"url": address} if address.startswith("http") else {})}
    return {"type": (part.inline_data.mime_type or "file").split("/")[0]} if part.inline_data else None


def _text(parts: Iterable[types.Part] | None) -> str:
    return "\n".join(part.text for part in parts or () if part.text and not part.thought)


def _said(events: Iterable[Event], contents: Sequence[types.Content]) -> list[int]:
    """Which contents are what the user said: ADK also quotes other agents in role user."""
    waiting = deque(text for one in events if one.author == PERSON and (text := _text(_parts(one))).strip())
    found = []
    for at, content in enumerate(contents):
        text = _text(content.parts)
        if content.role != PERSON or text not in waiting:
            continue
        while waiting.popleft() != text:
            # A window of the session does not begin at its beginning.
            pass
        found.append(at)
    return found


def _parts(event: Event) -> list[types.Part]:
    return (event.content.parts if event.content else None) or []
