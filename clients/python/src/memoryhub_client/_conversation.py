"""A session of the hub as a list of a framework's own items: added, read back exactly, taken off its end, cleared.

A turn has a role and a text, by which the hub extracts and recalls. An item that is more than these is kept beside
them, in the turn's metadata, or as a part of its content where it is larger than metadata may be.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, cast

from memoryhub_client.client import MemoryHub
from memoryhub_client.errors import ConflictError, NotFoundError
from memoryhub_client.models import NewMessage, Session, Turn

Item = dict[str, Any]
# Of a turn's metadata: what has the item.
KEPT: Final = "memoryhub_client"
# The type of the content part that has it.
PART: Final = "memoryhub_client.item"
# The hub takes 64 kB of metadata. A secret's mark can be longer than the secret.
METADATA_BYTES = 56_000
MOST_MESSAGES = 500
# Of a page. The few more than one are for turns that were deleted.
MOST_TURNS, FEWEST_TURNS = 200, 10
# The hub takes 10 MB.
MOST_BYTES = 8_000_000
# PostgreSQL has no NUL, and half a surrogate pair is no UTF-8.
UNSENDABLE: Final = {0: "\ufffd", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


class StoredSession:
    """The session `session_id` of a person and an agent (or none)."""

    def __init__(self, hub: MemoryHub, *, session_id: str, user_id: str | None, agent_id: str | None) -> None:
        self._hub = hub
        self.names: dict[str, Any] = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}

    def add(self, messages: Sequence[NewMessage]) -> None:
        """Store them at the end. In one request, unless they are more than one may have."""
        for some in batches(messages):
            self._hub.post_turns(**self.names, messages=some)

    def turns(self) -> Iterator[Turn]:
        """What it says, in order: without turns whose content was deleted, and branches that were left."""
        return self._turns("number", MOST_TURNS)

    def newest(self, count: int) -> Iterator[Turn]:
        """As `turns`, from the last one back. About so many are wanted."""
        return self._turns("-number", min(MOST_TURNS, max(FEWEST_TURNS, count)))

    def _turns(self, sort: Literal["number", "-number"], page_size: int) -> Iterator[Turn]:
        session = self._session()
        if session is None:
            return
        for one in self._hub.list_turns(session.id, sort=sort, page_size=page_size):
            if one.left_at is None and not (one.redacted_at and is_empty(one)):
                yield one

    def take(self, turn: Turn) -> bool:
        """Delete what the turn says. Of several who do so at once one gets True."""
        try:
            self._hub.redact_turn(turn.id, once=True)
        except NotFoundError:
            return False
        except ConflictError as error:
            if error.code != "already_redacted":
                raise
            return False
        return True

    def end(self) -> None:
        """Say that the conversation is over: the hub makes an episode of it now. A new message reopens it."""
        with suppress(NotFoundError):  # nothing of it was stored
            self._hub.end_session(**self.names)

    def clear(self) -> None:
        """Delete the session, with what rests on it alone."""
        if session := self._session():
            self._hub.delete_session(session.id)

    def _session(self) -> Session | None:
        named = self._hub.list_sessions(
            user_id=self.names["user_id"], agent_id=self.names["agent_id"], session_id=self.names["session_id"]
        )
        # Without an agent the list has the sessions of all of them.
        return next((one for one in named if one.agent_id == lowered(self.names["agent_id"])), None)


def lowered(agent_id: str | None) -> str | None:
    """As the hub keeps it."""
    return agent_id.lower() if agent_id else None


def batches(messages: Sequence[NewMessage]) -> Iterator[list[NewMessage]]:
    """As many as a request takes, in order."""
    some: list[NewMessage] = []
    size = 0
    for message in messages:
        own = len(json.dumps(message, default=str))
        if some and (len(some) == MOST_MESSAGES or size + own > MOST_BYTES):
            yield some
            some, size = [], 0
        some.append(message)
        size += own
    if some:
        yield some


def packed(message: NewMessage, item: Item | None, *, named: str) -> NewMessage:
    """The message with the item in it, as `named`, for `unpacked`; with an id, so that it is stored once, and again
    after it was deleted."""
    kept = cast("NewMessage", {"external_id": str(uuid.uuid4()), **message})
    if item is None:
        return kept
    if len(json.dumps(item).encode()) <= METADATA_BYTES:
        return {**kept, "metadata": {**(message.get("metadata") or {}), KEPT: {"item": item, "of": named}}}
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content or [])
    return {**kept, "content": [*cast("list[Any]", parts), {"type": PART, "item": item, "of": named}]}


def unpacked(turn: Turn, *, named: str) -> Item | None:
    """The item as it was packed, but for secrets that the hub has cut out of it; None for a turn without one."""
    parts = turn.content if isinstance(turn.content, list) else []
    kept = turn.metadata.get(KEPT) or next((one for one in parts if one.get("type") == PART), {})
    return kept["item"] if kept.get("of") == named else None


def sendable(value: Any) -> Any:
    """The value without letters that no hub can keep."""
    if isinstance(value, str):
        return value.translate(UNSENDABLE)
    if isinstance(value, dict):
        return {sendable(name): sendable(one) for name, one in value.items()}
    return [sendable(one) for one in value] if isinstance(value, list | tuple) else value


def text_of(content: Any, *, kinds: Sequence[str] = ("text", "input_text", "output_text")) -> str:
    """What a message's content says: a text, or its parts of these kinds."""
    if isinstance(content, str):
        return content
    texts = [one if isinstance(one, str) else _text_of_part(one, kinds) for one in content or ()]
    return "\n".join(one for one in texts if one)


def _text_of_part(part: Any, kinds: Sequence[str]) -> str:
    return str(part.get("text") or "") if isinstance(part, dict) and part.get("type") in kinds else ""


def is_empty(turn: Turn) -> bool:
    """Whether nothing of it is left."""
    return not turn.content and not turn.tool_calls and not turn.metadata


def missing(extra: str, error: ImportError) -> ImportError:
    """The error of an integration without its libraries: it says what to install."""
    how = f"In the hub's repository: pip install './clients/python[{extra}]'"
    return ImportError(f"This needs the extra '{extra}'. {how} ({error})", name=error.name)
