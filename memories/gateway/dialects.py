"""What the gateway reads of a request and writes into it, whichever protocol the client speaks."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memories.capture.ingest import LONGEST_NAME, PostedMessage
from memories.capture.resent import ANSWER_ID
from memories.models import Author, Role
from memories.text import authorship

# A longer text is cut when it is stored; the request goes on whole.
LONGEST_TEXT = 256 * 1024
# A context is looked up by the person's words of now; of longer ones by both ends.
LONGEST_QUERY = 2_000
_DATA = "data:"
# Roles of the application's own words, which nobody said: they go on to the endpoint and are not stored.
SYSTEM_ROLES = ("system", "developer")


class UnreadableRequest(Exception):
    """The request is not what the protocol says: the endpoint shall say so."""


@dataclass(frozen=True)
class ChatRequest:
    """A request: what was said in it so far (system prompts left out), and how it is to be answered."""

    messages: Sequence[PostedMessage]
    streams: bool = False
    # The client's own wish that nothing of it is kept.
    store: bool = True
    user: str = ""
    # What the body calls the conversation.
    session: str = ""
    # The answer that it follows, where the endpoint keeps the conversation.
    follows: str = ""
    # The application's own prompt, and whether it offers the model tools.
    instructions: str = ""
    has_tools: bool = False
    # Whether the endpoint keeps the conversation, and the request has only what is new.
    is_kept_there: bool = False
    # For each message the place of its item in the request's own list.
    places: Sequence[int] = ()


def shortened_query(words: str) -> str:
    """The beginning and the end of what a context is looked up by."""
    half = LONGEST_QUERY // 2
    return words if len(words) <= LONGEST_QUERY else f"{words[:half]}\n{words[-half:]}"


@dataclass
class StreamedReply:
    """What the endpoint has said so far. `is_whole`: it came to its end. `in_items`: clients send text and each call
    again as messages of their own, or name the answer alone (`id`)."""

    text: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    id: str = ""
    is_whole: bool = False
    in_items: bool = False

    def messages(self) -> list[PostedMessage]:
        """The answer as turns; none without a word."""
        metadata: dict[str, Any] = {} if self.is_whole else {"cut": True}
        if self.in_items and self.id:
            metadata[ANSWER_ID] = storable(self.id)[:LONGEST_NAME]
        if not self.in_items:
            has_content = self.text.strip() or self.tool_calls
            return [self._message(self.text, self.tool_calls, metadata)] if has_content else []
        texts = [self._message(self.text, [], metadata)] if self.text.strip() else []
        return texts + [self._message("", [call], metadata) for call in self.tool_calls]

    def _message(self, text: str, calls: list[dict[str, Any]], metadata: dict[str, Any]) -> PostedMessage:
        return message(Role.ASSISTANT, text, tool_calls=slim(calls) or None, metadata=metadata)


class Dialect(ABC):
    """A protocol: the gateway calls nothing else of it."""

    path: str
    # The header in which the endpoint takes its key, and what stands before the key.
    key_header: tuple[str, str] = ("authorization", "Bearer ")

    @abstractmethod
    def read(self, document: Mapping[str, Any]) -> ChatRequest:
        """Errors: UnreadableRequest."""

    @abstractmethod
    def with_memory(self, document: Mapping[str, Any], stable: str, before: Mapping[int, str]) -> dict[str, Any]:
        """The request with a block that the model reads as the system's, "" for none, and with blocks before what a
        user says in the items at these places of its list.

        Blocks are added as they are, and nothing else changes: so the requests of a conversation begin alike.
        """

    def new_answer(self) -> StreamedReply:
        return StreamedReply()

    @abstractmethod
    def add_event(self, answer: StreamedReply, event: Mapping[str, Any]) -> None:
        """Add one event of a stream."""

    @abstractmethod
    def read_answer(self, document: Mapping[str, Any]) -> StreamedReply:
        """An answer that came in one piece."""

    def error(self, status: int, code: str, detail: str) -> dict[str, Any]:
        """The gateway's own errors, in the shape that the client's library reads."""
        return {"error": {"message": detail, "type": error_type(status), "param": None, "code": code}}


def in_front(content: Any, block: str, *, kind: str = "text", after: int = 0) -> Any:
    """A user's content with the block before it, or behind its first `after` parts."""
    if not isinstance(content, list):
        return f"{block}\n\n{content}" if content else block
    return [*content[:after], {"type": kind, "text": block}, *content[after:]]


def error_type(status: int) -> str:
    names = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
    return names.get(status, "rate_limit_error" if status == 429 else "api_error")


def message(
    role: str,
    text: str,
    *,
    parts: list[Any] | None = None,
    tool_calls: list[Any] | None = None,
    tool_call_id: str = "",
    name: str = "",
    metadata: dict[str, Any] | None = None,
) -> PostedMessage:
    """A message as ingest takes it: without what no column holds, and not longer than it may be."""
    return PostedMessage(
        role=role,
        content=storable(text)[:LONGEST_TEXT],
        parts=parts,
        tool_calls=tool_calls,
        tool_call_id=storable(tool_call_id)[:LONGEST_NAME],
        name=storable(name)[:LONGEST_NAME],
        metadata=metadata or {},
    )


def storable(text: str) -> str:
    """Without NUL and halves of characters, which PostgreSQL refuses."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def slim(value: Any) -> Any:
    """Without the data of pictures and files: how much it was, and a hash that tells one from another."""
    if isinstance(value, Mapping):
        return {storable(str(name)): slim(member) for name, member in value.items()}
    if isinstance(value, list):
        return [slim(item) for item in value]
    if not isinstance(value, str):
        return value
    is_data = value.startswith(_DATA)
    if not is_data and len(value) <= LONGEST_TEXT:
        return storable(value)
    kind = value[len(_DATA) :].partition(";")[0][:50] if is_data else "text"
    digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:16]
    return storable(f"[{kind}, {len(value)} characters, {digest}]")


def text_of(content: Any, *, kinds: Sequence[str] = ("text",)) -> tuple[str, list[Any] | None]:
    """Text and parts of a message's content: a string, or a list of parts. Errors: UnreadableRequest."""
    if content is None:
        return "", None
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list) or not all(isinstance(part, (dict, str)) for part in content):
        raise UnreadableRequest
    texts, parts, others = [], [], False
    for part in content:
        text = part if isinstance(part, str) else part.get("text") if part.get("type") in kinds else None
        others = others or not isinstance(text, str)
        if isinstance(text, str):
            texts.append(text)
            parts.append({"type": "text", "text": storable(text)[:LONGEST_TEXT]})
        else:
            parts.append(slim(part))
    return "\n\n".join(texts), parts if others else None


def by_author(content: Any) -> list[Any]:
    """A user's content, divided where its parts are by turns a program's and the person's: a harness puts its own
    texts beside what was typed."""
    if not isinstance(content, list) or len(content) < 2:
        return [content]
    groups: list[tuple[bool, list[Any]]] = []
    for part in content:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        is_material = isinstance(text, str) and authorship.read(text).author != Author.PERSON
        if groups and groups[-1][0] == is_material:
            groups[-1][1].append(part)
        else:
            groups.append((is_material, [part]))
    return [parts for _, parts in groups]


def noted_parts(messages: Iterable[PostedMessage]) -> list[PostedMessage]:
    """What one message was divided into, with a note that it came as one."""
    parts = list(messages)
    return [replace(part, is_part=True) for part in parts] if len(parts) > 1 else parts


def numbered(
    items: Sequence[Any], messages_of: Callable[[Any], Iterable[PostedMessage]]
) -> tuple[list[PostedMessage], list[int]]:
    """The messages of a request's items, and for each the place of its item."""
    found = [(message, place) for place, item in enumerate(items) for message in messages_of(item)]
    return [message for message, _ in found], [place for _, place in found]


def system_text(messages: Any) -> str:
    """What the application tells the model in messages of its own."""
    given = [one for one in messages if isinstance(one, dict) and one.get("role") in SYSTEM_ROLES]
    return "\n".join(_text_alone(one.get("content")) for one in given)


def _text_alone(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def name_of(document: Mapping[str, Any], *names: str) -> str:
    """The first of these that the body has as a text."""
    return next((value for name in names if isinstance(value := document.get(name), str) and value), "")


def canonical(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
