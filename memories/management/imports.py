"""Reads conversations from files: exports of ChatGPT and Claude, JSON lines of the form of `POST /turns`, and the
drawers of MemPalace, each of which is a piece of a file or a conversation as it was.

Each conversation comes in the form of a request, for the serializers of the API to check: a file may be damaged, and
each damaged conversation is refused by itself.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any

from memories.management.memory_stores import HIDDEN, is_hidden, is_sqlite, shared, sqlite_rows
from memories.management.raw_documents import Outcome, RefusedDocumentError, lines_in, list_in

Request = dict[str, Any]
CHROMA = "chroma.sqlite3"
_IS_CHROMA = "SELECT 1 FROM sqlite_master WHERE name = 'embedding_metadata'"
# Chroma keeps each member of a record in a row of its own, the text among them. What is in a palace's other collections
# points to drawers. A drawer that was filed by hand has no source: those of a room belong together.
_DRAWERS = """
    WITH drawers AS (
        SELECT e.id AS place, e.embedding_id AS name,
            max(CASE m.key WHEN 'chroma:document' THEN m.string_value END) AS document,
            max(CASE m.key WHEN 'wing' THEN m.string_value END) AS wing,
            max(CASE m.key WHEN 'room' THEN m.string_value END) AS room,
            max(CASE m.key WHEN 'source_file' THEN m.string_value END) AS source_file,
            max(CASE m.key WHEN 'chunk_index' THEN coalesce(m.int_value, m.float_value) END) AS chunk,
            max(CASE m.key WHEN 'filed_at' THEN m.string_value END) AS filed_at,
            max(CASE m.key WHEN 'authored_at' THEN m.string_value END) AS authored_at
        FROM collections c JOIN segments s ON s.collection = c.id AND s.scope = 'METADATA'
        JOIN embeddings e ON e.segment_id = s.id JOIN embedding_metadata m ON m.id = e.id
        WHERE c.name = 'mempalace_drawers' GROUP BY e.id
    )
    SELECT name, document, wing, room, coalesce(nullif(source_file, ''), room, '') AS source,
        coalesce(nullif(authored_at, ''), filed_at) AS said
    FROM drawers ORDER BY wing, source, chunk, place
"""
_SOURCES = f"SELECT DISTINCT wing, source FROM ({_DRAWERS})"  # noqa: S608
_LONGEST_NAME = 255
# What a person and an assistant said to each other; calls of tools and thoughts are of other types.
_SPOKEN = ("text", "multimodal_text")
_SENDERS = {"human": "user", "user": "user", "assistant": "assistant"}


def read(source: str, path: Path) -> Iterator[Outcome]:
    """The conversations of a file of that source, the oldest first if they have dates, or why one is too much. Errors:
    OSError, ValueError."""
    return SOURCES[source](path)


def drawers(path: Path, left_out: Counter[str]) -> Iterator[Request]:
    """The drawers in Chroma's database of a palace, a conversation for each of its sources. Those of hidden files are
    counted in `left_out`.

    Nobody knows whose words they are, so they come as a tool's: they are searched, and become nobody's statements.
    """
    database = str(path / CHROMA if path.is_dir() else path)
    folders = _folders_of_wings(sqlite_rows(database, _SOURCES))
    for source, pieces in groupby(sqlite_rows(database, _DRAWERS), key=itemgetter("wing", "source")):
        if is_hidden(_parts_of(source[1])[len(folders[source[0]]) :]):
            left_out[HIDDEN] += sum(1 for _ in pieces)
            continue
        name = hashlib.sha256(json.dumps(source).encode()).hexdigest()[:32]
        yield _request(f"mempalace-{name}", (_drawer(piece) for piece in pieces))


def _folders_of_wings(rows: Iterable[dict[str, Any]]) -> dict[Any, list[str]]:
    """By wing the folder that all its sources share: somebody named it, or one above it, whatever it is called."""
    folders: dict[Any, list[str]] = {}
    for row in rows:
        above = _parts_of(row["source"])[:-1]
        known = folders.get(row["wing"]) or above
        # What was filed by hand has no folder.
        folders[row["wing"]] = known[: shared(known, above or known)]
    return folders


def _parts_of(source: Any) -> list[str]:
    return str(source).replace("\\", "/").split("/")


def is_palace(path: Path) -> bool:
    """Whether it is a palace with drawers: its folder, or Chroma's database in it. Errors: OSError, sqlite3.Error."""
    if path.is_dir():
        return (path / CHROMA).is_file()
    return is_sqlite(str(path)) and any(sqlite_rows(str(path), _IS_CHROMA))


def _chatgpt(path: Path) -> Iterator[Outcome]:
    """`conversations.json`: each conversation is a tree of messages, of which one branch was shown at last."""
    for conversation in _by_date(list_in(path), "create_time"):
        if isinstance(conversation, RefusedDocumentError):
            yield conversation
            continue
        branch = _branch(conversation)
        messages = (_chatgpt_message(message, conversation) for message in branch)
        yield _request(conversation.get("conversation_id") or conversation.get("id"), messages)


def _claude(path: Path) -> Iterator[Outcome]:
    """`conversations.json`: each conversation has a list of messages."""
    for conversation in _by_date(list_in(path), "created_at"):
        if isinstance(conversation, RefusedDocumentError):
            yield conversation
            continue
        entries = conversation.get("chat_messages")
        entries = entries if isinstance(entries, list) else []
        messages = (_claude_message(one) for one in entries if isinstance(one, dict))
        yield _request(conversation.get("uuid"), messages)


def _jsonl(path: Path) -> Iterator[Outcome]:
    """Each line is a conversation. A message without an id gets its place in its session, so that it is stored once."""
    places: dict[tuple[str, str, str], int] = {}
    for given in lines_in(path):
        if isinstance(given, RefusedDocumentError):
            yield given
            continue
        key = (str(given.get("user_id")), str(given.get("agent_id")), str(given.get("session_id")))
        messages = given.get("messages")
        for message in messages if isinstance(messages, list) else ():
            places[key] = places.get(key, 0) + 1
            if isinstance(message, dict) and not message.get("external_id"):
                message["external_id"] = f"import-{places[key]}"
        yield given


SOURCES: dict[str, Callable[[Path], Iterator[Outcome]]] = {
    "chatgpt": _chatgpt,
    "claude": _claude,
    "jsonl": _jsonl,
}


def _drawer(piece: dict[str, Any]) -> Request | None:
    text, name = piece["document"], str(piece["name"])
    if not (isinstance(text, str) and text.strip()):
        return None
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode()).hexdigest()
    # Of the source its name: the rest of a path says where it was on somebody's machine.
    places = {**piece, "source": PurePath(str(piece["source"]).replace("\\", "/")).name}
    metadata = {place: str(places[place]) for place in ("wing", "room", "source") if places[place]}
    moment = _moment(piece["said"])
    timestamp = {"timestamp": moment.isoformat()} if moment else {}
    return {"role": "tool", "content": text, "external_id": name, "metadata": metadata, **timestamp}


def _by_date(conversations: Iterable[Outcome], name: str) -> list[Outcome]:
    """What was refused comes first."""
    found = [one for one in conversations if one]
    return sorted(found, key=lambda one: str(_moment(one.get(name)) or "") if isinstance(one, dict) else "")


def _request(session_id: Any, messages: Iterable[Request | None]) -> Request:
    return {"session_id": session_id, "messages": [message for message in messages if message]}


def _branch(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages from the root to the node that was shown at last, or to the newest one."""
    nodes = conversation.get("mapping")
    if not isinstance(nodes, dict):
        return []
    at = conversation.get("current_node")
    if at not in nodes:
        at = max(nodes, key=lambda name: str(_moment(_message_of(nodes[name]).get("create_time")) or ""), default=None)
    seen: dict[Any, dict[str, Any]] = {}
    while isinstance(at, str) and at in nodes and at not in seen:
        seen[at] = _message_of(nodes[at])
        at = nodes[at].get("parent") if isinstance(nodes[at], dict) else None
    return [message for message in reversed(seen.values()) if message]


def _message_of(node: Any) -> dict[str, Any]:
    message = node.get("message") if isinstance(node, dict) else None
    return message if isinstance(message, dict) else {}


def _chatgpt_message(message: dict[str, Any], conversation: dict[str, Any]) -> Request | None:
    """What was said: no instructions of the system, calls of tools, their results, thoughts or hidden messages."""
    author, content, metadata = (message.get(name) or {} for name in ("author", "content", "metadata"))
    if not all(isinstance(part, dict) for part in (author, content, metadata)):
        return None
    is_hidden = metadata.get("is_visually_hidden_from_conversation") or message.get("recipient") not in (None, "all")
    parts = content.get("parts")
    if is_hidden or content.get("content_type") not in _SPOKEN or not isinstance(parts, list):
        return None
    text = "\n".join(part for part in parts if isinstance(part, str)).strip()
    at = message.get("create_time") or conversation.get("create_time")
    return _message(author.get("role"), text, message.get("id"), at)


def _claude_message(message: dict[str, Any]) -> Request | None:
    """What was said; texts of attachments belong to their session."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    text = "\n".join(one for one in texts if isinstance(one, str)).strip() or message.get("text")
    return _message(message.get("sender"), text, message.get("uuid"), message.get("created_at"))


def _message(role: Any, text: Any, external_id: Any, at: Any) -> Request | None:
    sender = _SENDERS.get(role) if isinstance(role, str) else None
    if not (sender and isinstance(text, str) and text.strip()):
        return None
    moment = _moment(at)
    timestamp = {"timestamp": moment.isoformat()} if moment else {}
    return {"role": sender, "content": text, "external_id": external_id, **timestamp}


def _moment(value: Any) -> datetime | None:
    """Seconds since 1970, or ISO-8601."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC) if found else None
