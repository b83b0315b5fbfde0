"""The sources: how each is read, and by which shape it is recognised.

A source is recognised by what is in its files, not by their names: the first objects of a JSON file, the heading of
CSV, the tables of a database, the files of a folder.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg

from memories.imports import (
    chat_clients,
    chatgpt,
    claude,
    coding_agents,
    file_stores,
    memory_stores,
    palaces,
)
from memories.imports.databases import has_table, is_sqlite, tables_of
from memories.imports.findings import Found
from memories.imports.own_exports import reading
from memories.imports.places import Given
from memories.imports.raw_documents import CutOffError, RefusedDocumentError, member_names, unended_in
from memories.imports.records import HIDDEN, NO_TEXT, OTHER_FILE, OTHER_FORM, OTHERS, LeftOut, Record
from memories.imports.stating import TEXTS
from memories.imports.unpacking import JSON, Part

Read = Callable[[Given, list[Part]], Iterator[Record]]
Document = Mapping[str, Any]
AUTO, ITEMS = "auto", "items"
# So many documents of a file show what it is.
_SAMPLE = 20
_CSV = ".csv"
_SQLITE = {"history": "mem0", "triples": "mempalace", "embedding_metadata": "mempalace", "documents": "mempalace"}
_TABLES = {"store": "langgraph", "mem0": "mem0"}
_CREATED = re.compile(rb"CREATE TABLE\s+(?:IF NOT EXISTS\s+)?[\"'`\[]?(\w{1,40})", re.IGNORECASE)
_SCHEMA = 64 * 1024
# How files begin that no reader takes.
_FORMS = (
    (b"<!DOCTYPE HTML", "html"), (b"<HTML", "html"), (b"%PDF", "pdf"), (b"\x1f\x8b", "packed"),
    (b"7Z\xbc\xaf", "packed"), (b"RAR!", "packed"), (b"\x28\xb5\x2f\xfd", "packed"),
)  # fmt: skip
# Files of a folder or an archive that belong to a source, and hold nothing of the person's words.
_BESIDE = ("user", "users", "message_feedback", "shared_conversations", "model_comparisons", "settings", "metadata")
# Reasons that say nothing of what a file is.
UNRECOGNISED = frozenset({OTHER_FILE, OTHER_FORM, HIDDEN, NO_TEXT})
# In these others speak in the person's role.
_OF_SEVERAL = re.compile(r"group_chats(?:-\d+)?")
_PROJECTS, _REMEMBERED = "claude projects", "claude memories"


@dataclass(frozen=True)
class Source:
    """`read` is given the files that have its shape; `expects` says which that is. `names_people`: whether its records
    say whose they are."""

    read: Read
    expects: str
    names_people: bool = False


def _claude(given: Given, parts: list[Part]) -> Iterator[Record]:
    shapes = {part: shape_of(given, part) for part in parts}

    def called(shape: str) -> list[Part]:
        return [part for part in parts if shapes[part] == shape]

    yield from claude.read(given, [part for part in parts if shapes[part] not in (_PROJECTS, _REMEMBERED)])
    yield from claude.read_projects(given, called(_PROJECTS))
    yield from claude.read_memories(given, called(_REMEMBERED), claude.project_names(given, called(_PROJECTS)))


SOURCES: dict[str, Source] = {
    "chatgpt": Source(chatgpt.read, "conversations with `mapping`"),
    "claude": Source(_claude, "conversations with `chat_messages`"),
    "claude-code": Source(coding_agents.claude_code, "lines with `sessionId` and `message`"),
    "codex": Source(coding_agents.codex, "lines with `payload`"),
    "deepseek": Source(
        chat_clients.reader(chat_clients.deepseek, "inserted_at", holds=lambda one: one.get("mapping")),
        "`mapping` with `fragments`",
    ),
    "gemini": Source(chat_clients.gemini, "activities of Gemini with `header` and `title`"),
    "grok": Source(
        chat_clients.reader(chat_clients.grok, holds=lambda one: one.get("responses")),
        "`conversations` with `responses`",
    ),
    "mistral": Source(chat_clients.mistral, "messages with `chatId`"),
    "open-webui": Source(chat_clients.open_webui, "`chat` with `history`"),
    "librechat": Source(
        chat_clients.reader(chat_clients.librechat, "createdAt", holds=lambda one: one.get("messages")),
        "`conversationId` and `messages`",
    ),
    "lobechat": Source(
        chat_clients.reader(chat_clients.lobechat, holds=chat_clients.lobechat_messages), "`state` with `messages`"
    ),
    "cherry-studio": Source(
        chat_clients.reader(chat_clients.cherry, holds=lambda one: one.get("indexedDB")), "`indexedDB` with `topics`"
    ),
    reading.SOURCE: Source(reading.read, "`format` memory-hub-export", names_people=True),
    "jsonl": Source(chat_clients.jsonl, "lines with `session_id` and `messages`", names_people=True),
    "facts": Source(memory_stores.facts, "rows with `text` and `user_id`", names_people=True),
    "mem0": Source(memory_stores.mem0, "rows with `memory` and `user_id`", names_people=True),
    "langgraph": Source(memory_stores.langgraph, "items with `namespace`, `key` and `value`"),
    "deerflow": Source(memory_stores.deerflow, "an object with `facts`", names_people=True),
    "mempalace": Source(palaces.read, "a palace, or its knowledge graph"),
    "graphiti": Source(
        lambda given, parts: memory_stores.facts(given, parts, source="graphiti"),
        "edges with `fact`",
        names_people=True,
    ),
    "hindsight": Source(
        lambda given, parts: memory_stores.facts(given, parts, source="hindsight"),
        "memories with `bank_id`",
        names_people=True,
    ),
    "honcho": Source(
        lambda given, parts: memory_stores.facts(given, parts, source="honcho"),
        "conclusions with `observed_id`",
        names_people=True,
    ),
    "memobase": Source(
        lambda given, parts: memory_stores.facts(given, parts, source="memobase"), "profiles with `topic`"
    ),
    "deepagents": Source(file_stores.read_files, "a folder of agents, or a store of files"),
    "markdown": Source(file_stores.read_markdown, "a folder of Markdown"),
}
CHATS = frozenset({"chatgpt", "claude", "deepseek", "gemini", "grok", "mistral", "open-webui", "librechat", "lobechat",
                    "cherry-studio", "claude-code", "codex", "jsonl"})  # fmt: skip


FILES = frozenset({"deepagents", "markdown"})
# Their rows somebody wrote for the hub, and can mend.
OWN = frozenset({"jsonl", "facts"})
# Namespaces can say whose their items are.
NAMESPACED = frozenset({"deepagents", "langgraph"})


def _has(document: Document, *names: str) -> bool:
    return all(name in document for name in names)


def _nodes(document: Document) -> list[Document]:
    nodes = document.get("mapping")
    found = (
        (node.get("message") for node in nodes.values() if isinstance(node, dict)) if isinstance(nodes, dict) else ()
    )
    return [one for one in islice(found, 200) if isinstance(one, dict)]


def _holds(document: Document, name: str, kind: type, *inner: str) -> bool:
    found = document.get(name)
    return isinstance(found, kind) and all(isinstance(found, dict) and one in found for one in inner)


# A message has a text, too.
_OF_MESSAGES = ("role", "sender", "author", "messages", "parent", "from", "ts", "channel", "channel_id")
_OF_FACTS = ("user_id", "person", "user", "ends", "expires_at", "category", "confidence", "valid_from", "agent_id")


def _is_fact(document: Document) -> bool:
    has_text = any(isinstance(document.get(name), str) for name in TEXTS)
    is_message = any(name in document for name in _OF_MESSAGES)
    return has_text and not is_message and any(name in document for name in _OF_FACTS)


# In this order: the first that fits.
_SHAPES: dict[str, Callable[[Document], bool]] = {
    "deepseek": lambda one: any("fragments" in node for node in _nodes(one)),
    "chatgpt": lambda one: _holds(one, "mapping", dict),
    "claude": lambda one: _holds(one, "chat_messages", list),
    _REMEMBERED: lambda one: _has(one, "conversations_memory") or _has(one, "memory_files"),
    _PROJECTS: lambda one: _has(one, "prompt_template") or _has(one, "docs", "is_private"),
    "open-webui": lambda one: _holds(one, "chat", dict) and ("history" in one["chat"] or "messages" in one["chat"]),
    "cherry-studio": lambda one: _holds(one, "indexedDB", dict),
    "grok": lambda one: _holds(one, "responses", list),
    "codex": lambda one: _has(one, "payload", "type"),
    "claude-code": lambda one: _has(one, "sessionId", "type") or _has(one, "leafUuid", "summary"),
    "jsonl": lambda one: _has(one, "session_id", "messages"),
    "librechat": lambda one: _has(one, "conversationId", "messages"),
    "lobechat": lambda one: any(_holds(one, name, dict, "messages") for name in ("state", "data")),
    "mistral": lambda one: _has(one, "chatId", "role"),
    "gemini": lambda one: _has(one, "header", "title", "time") and chat_clients.is_of_gemini(one),
    "deepagents": lambda one: _has(one, "namespace", "key") and _holds(one, "value", dict, "content", "modified_at"),
    "langgraph": lambda one: _has(one, "namespace", "key", "value"),
    "graphiti": lambda one: _has(one, "fact") and (_has(one, "group_id") or _has(one, "source_node_uuid")),
    "honcho": lambda one: _has(one, "observed_id", "content"),
    "hindsight": lambda one: _has(one, "text") and (_has(one, "bank_id") or _has(one, "mentioned_at")),
    "memobase": lambda one: _has(one, "content") and (_has(one, "topic") or _holds(one, "attributes", dict, "topic")),
    "mempalace": palaces.is_drawer,
    "mem0": lambda one: (
        _has(one, "payload")
        or (_has(one, "memory") and any(name in one for name in ("hash", "user_id", "agent_id", "run_id", "metadata")))
    ),
    "deerflow": lambda one: _holds(one, "facts", list) or _holds(one, "user", dict),
    "facts": _is_fact,
}


def shape_of(given: Given, part: Part) -> str:
    """The source whose shape a file has; "" for none that is known."""
    suffix = part.path.suffix.lower()
    try:
        if is_sqlite(part.path):
            tables = _tables_in(part.path)
            named = _SQLITE | ({"store": "langgraph"} if {"prefix", "key"} <= tables.get("store", set()) else {})
            return next((source for table, source in named.items() if table in tables), "")
        if suffix == _CSV:
            return "facts" if _is_fact(dict.fromkeys(memory_stores.columns_of(part.path), "")) else ""
        if suffix in (".md", ".markdown", ".txt"):
            return "markdown"
        if suffix not in JSON and part.path.stat().st_size == 0:
            return ""
        return _shape_of_json(given, part)
    except (OSError, ValueError, sqlite3.Error):
        return ""


def _tables_in(path: Path) -> dict[str, set[str]]:
    """The tables with their columns; of a file that ends early the names alone that stand at its beginning."""
    try:
        return tables_of(path)
    except RefusedDocumentError:
        with path.open("rb") as file:
            return {name.decode(): {"prefix", "key"} for name in _CREATED.findall(file.read(_SCHEMA))}


def _shape_of_json(given: Given, part: Part) -> str:
    """That of most of its first documents; a hub's own export says what it is."""
    if reading.is_export(part):
        return reading.SOURCE
    documents = given.documents(part)
    found = [one for one in islice(documents, _SAMPLE) if isinstance(one, dict)] or [unended_in(documents)]
    shapes = [next((name for name, fits in _SHAPES.items() if fits(one)), "") for one in found]
    known = [shape for shape in shapes if shape]
    return max(known, key=known.count) if known else ""


def detected(given: Given) -> str:
    """The source that this is; "" for none that is known. Errors: OSError, psycopg.Error."""
    if given.is_database:
        named = next((source for table, source in _TABLES.items() if has_table(given, given.table or table)), "")
        return "mempalace" if palaces.is_in(given) else named
    if (folder := given.folder) and (source := _of_folder(folder)):
        return source
    shapes = [plain_shape_of(given, part) for part in given.parts if _stem(part) not in _BESIDE]
    known = [shape for shape in shapes if shape and shape != "markdown"]
    # An archive holds notes beside what it is.
    return (
        max(set(known), key=lambda one: (known.count(one), one))
        if known
        else "markdown"
        if "markdown" in shapes
        else ""
    )


def _stem(part: Part) -> str:
    # What an archive held has another name on the disk.
    return Path(part.name).stem.lower()


def _of_folder(folder: Path) -> str:
    if any((folder / name).is_file() for name in (palaces.CHROMA, palaces.EXACT)):
        return "mempalace"
    if any(folder.glob("users/*/**/memory.json")):
        return "deerflow"
    inside = [one for one in folder.iterdir() if one.is_dir()]
    has_notes = any((one / name).is_file() for one in [folder, *inside] for name in ("AGENTS.md", "agent.md"))
    return "deepagents" if has_notes else ""


def plain_shape_of(given: Given, part: Part) -> str:
    """The source that a file is of; "" for none that is known."""
    shape = shape_of(given, part)
    return "claude" if shape in (_REMEMBERED, _PROJECTS) else shape


def chosen(given: Given, source: str) -> tuple[list[Part], list[LeftOut]]:
    """The files of what was given that the source reads; the others are left out. A file that was named is read
    whatever it is, but for one in which others speak, too."""
    if given.is_database:
        return [], []
    own = [part for part in given.parts if source != "chatgpt" or not _OF_SEVERAL.fullmatch(_stem(part))]
    if source in ("deepagents", "markdown", "mempalace", "deerflow") or len(given.parts) == 1:
        mine = own
    else:
        mine = [part for part in own if plain_shape_of(given, part) == source]
    # The reader of the folder of agents counts its own.
    hidden = 0 if source == "deepagents" and given.folder else given.hidden
    several = len(given.parts) - len(own)
    counts = {OTHERS: several, OTHER_FILE: len(own) - len(mine) + given.skipped, HIDDEN: hidden}
    return mine, [LeftOut(reason, count) for reason, count in counts.items() if count]


def found_instead(given: Given) -> Found:
    """What this looks like, without any of its texts."""
    try:
        source = detected(given)
    except (OSError, psycopg.Error):
        source = ""
    if given.is_database or not given.parts:
        return Found(source, form="no_text" if given.skipped else "")
    try:
        part = given.parts[0]
        if form := _form_of(part.path):
            return Found(source, form=form)
        documents = given.documents(part)
        ends_at = documents.fault.at if isinstance(documents.fault, CutOffError) else 0
        first = next((one for one in documents if isinstance(one, dict) and one), None) or unended_in(documents)
        return Found(source, names=list(first or member_names(part.path)), ends_at=ends_at)
    except (OSError, ValueError):
        return Found(source)


def _form_of(path: Path) -> str:
    """What a file is written or packed as that no reader takes, by how it begins."""
    with path.open("rb") as file:
        head = file.read(512).lstrip()
    return next((form for begins, form in _FORMS if head[: len(begins)].upper() == begins), "")
