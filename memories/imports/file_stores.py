"""Reads what stays as it is: memory files of deepagents and folders of Markdown, and items of LangGraph's store."""

import base64
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from memories.exceptions import FileTooLarge
from memories.files import paths
from memories.imports import moments
from memories.imports.databases import has_table
from memories.imports.memory_stores import langgraph_rows
from memories.imports.namespaces import is_hidden, shared, whose_namespace
from memories.imports.places import Given
from memories.imports.raw_documents import RefusedDocumentError
from memories.imports.records import HIDDEN, OTHER_FILE, KeptFile, LeftOut, Owner, Record, StoredItem
from memories.imports.unpacking import Part, text_as_utf8

# What deepagents' command line reads before each conversation; older ones wrote it in small letters.
_NOTES = ("AGENTS.md", "agent.md")
_NO_MEMORY = "skills"
_MARKDOWN = (".md", ".markdown", ".txt")
_COLUMNS = """
    SELECT string_to_array(prefix, '.') AS namespace, key, value, to_jsonb(s) ->> 'created_at' AS created_at,
        to_jsonb(s) ->> 'updated_at' AS updated_at, to_jsonb(s) ->> 'expires_at' AS expires_at,
        (to_jsonb(s) ->> 'ttl_minutes')::float8 AS ttl_minutes%s
    FROM {} s ORDER BY prefix, key
"""
# PostgresStore has a vector of each text that it embedded, with its path in the value.
_EMBEDDED = """,
        ARRAY(SELECT field_name FROM {beside} v WHERE v.prefix = s.prefix AND v.key = s.key) AS embedded"""
_VECTORS = "{}_vectors"
# It numbers the texts of a path that has several.
_NUMBERED = re.compile(r"\.\d+\Z")


def read_files(given: Given, parts: list[Part]) -> Iterator[Record]:
    """The folder of deepagents' command line, the table of a PostgresStore under its StoreBackend, or a JSON list of
    that store's items. What is not below `given.to_folder` already goes there. `given.agent`: whose all of them are, ""
    for none; a folder is that agent's then, whatever its name.

    Errors: OSError, ValueError, psycopg.Error.
    """
    if given.folder:
        yield from _command_line_files(given.folder, given.to_folder, given.agent)
        return
    for item in _items(given, parts):
        yield item if isinstance(item, RefusedDocumentError) else _file_of(item, given)


def read_markdown(given: Given, parts: list[Part]) -> Iterator[Record]:
    """A folder of Markdown: each file goes to its place below `given.to_folder`, for the agent that is named, or for
    none."""
    for part in parts:
        if part.path.suffix.lower() not in _MARKDOWN or not part.name:
            yield LeftOut(OTHER_FILE)
        elif part.path.stat().st_size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            yield RefusedDocumentError(FileTooLarge.code)
        else:
            changed = datetime.fromtimestamp(part.path.stat().st_mtime, UTC)
            path = f"{paths.folder(given.to_folder)}{part.name}"
            yield KeptFile(Owner(agent_id=given.agent or ""), path, part.path.read_bytes(), None, changed)


def read_items(given: Given, parts: list[Part]) -> Iterator[Record]:
    """The table of a PostgresStore or SqliteStore, or a JSON list of what `Item.dict()` gives. Errors: as
    read_files()."""
    for item in _items(given, parts):
        if isinstance(item, RefusedDocumentError):
            yield item
        elif whose_namespace(item.namespace, given.namespace) is None:
            yield LeftOut("other_namespace")
        elif (expires := given.end(item.expires_at)) and expires <= given.now:
            yield LeftOut("expired")
        elif _is_path(item) and is_hidden(item.key):
            yield LeftOut(HIDDEN)
        else:
            yield item


def _file_of(item: StoredItem, given: Given) -> Record:
    whose = whose_namespace(item.namespace, given.namespace)
    value = item.value if isinstance(item.value, dict) else {}
    if whose is None:
        return LeftOut("other_namespace")
    if "content" not in value or "modified_at" not in value:
        return LeftOut("no_file")
    if is_hidden(item.key.removeprefix(paths.folder(given.to_folder))):
        return LeftOut(HIDDEN)
    if (path := _below(given.to_folder, item.key)).startswith(paths.SCRATCH):
        return LeftOut("scratch")
    if (data := _data(value)) is None:
        return LeftOut("unreadable")
    whose = whose if given.agent is None else whose._replace(agent_id=given.agent)
    return KeptFile(whose, path, data, moments.moment(value.get("created_at")), moments.moment(value["modified_at"]))


def _is_path(item: StoredItem) -> bool:
    """Whether the key names a file, as deepagents keeps them; other keys may begin with a dot."""
    is_file = isinstance(item.value, dict) and {"content", "modified_at"} <= item.value.keys()
    return is_file or "/" in item.key


def _items(given: Given, parts: list[Part]) -> Iterator[StoredItem | RefusedDocumentError]:
    for row in langgraph_rows(given, parts, *_columns(given) if given.is_database else ()):
        if isinstance(row, RefusedDocumentError):
            yield row
            continue
        embedded = row.get("embedded")
        yield StoredItem(
            row["namespace"],
            str(row["key"]),
            row.get("value"),
            created_at=row.get("created_at"),
            updated_at=row.get("updated_at"),
            expires_at=row.get("expires_at"),
            ttl_minutes=row.get("ttl_minutes"),
            index=_paths_of(embedded) if isinstance(embedded, list) and given.is_database else None,
        )


def _columns(given: Given) -> tuple[str, str]:
    """The statement that reads the table, and the table of the vectors where the store keeps them."""
    vectors = _VECTORS.format(given.table or "store")
    return (_COLUMNS % _EMBEDDED, vectors) if has_table(given, vectors) else (_COLUMNS % "", "")


def _paths_of(names: Sequence[str]) -> list[str]:
    """The paths of the vectors of an item: of `tags.0` and `tags.1` it is `tags`."""
    stems = Counter(_NUMBERED.sub("", name) for name in names)
    several = {stem for stem, count in stems.items() if count > 1}
    return sorted({stem if (stem := _NUMBERED.sub("", name)) in several else name for name in names})


def _command_line_files(base: Path, folder: str, own: str | None) -> Iterator[Record]:
    """`~/.deepagents`, with a folder for each agent, or one of these folders: notes, and what the agent keeps beside
    them. Skills and hidden files are left out; the folder that was named may have a dot itself. With an `own` name it
    is the folder of that agent."""
    has_notes = any((base / name).is_file() for name in _NOTES)
    agents = [base] if has_notes or own is not None else sorted(path for path in base.iterdir() if path.is_dir())
    # Beside the agents are files of the program's own.
    for path in () if agents == [base] else sorted(path for path in base.iterdir() if path.is_file()):
        yield LeftOut(HIDDEN if _leads_to_hidden(path, base) else "no_memory")
    for agent in agents:
        # A project's own notes are in a folder with a dot, and no agent's.
        named = "" if agent.name.startswith(".") else agent.resolve().name
        name = named if own is None else own
        for path in sorted(one for one in agent.rglob("*") if one.is_file()):
            parts = path.relative_to(agent).parts
            if _leads_to_hidden(path, base):
                yield LeftOut(HIDDEN)
                continue
            if parts[0] == _NO_MEMORY:
                yield LeftOut("no_memory")
                continue
            if path.stat().st_size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
                yield RefusedDocumentError(FileTooLarge.code)
                continue
            inside = _NOTES[0] if len(parts) == 1 and parts[0] in _NOTES else "/".join(parts)
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            data = text_as_utf8(path.read_bytes())
            yield KeptFile(Owner(agent_id=name), _below(folder, inside), data, None, changed)


def _leads_to_hidden(path: Path, base: Path) -> bool:
    """Whether the path below `base` is hidden, or that to which it links. Folders above `base` do not count."""
    target, root = path.resolve().parts, base.resolve().parts
    return is_hidden(path.relative_to(base).parts) or is_hidden(target[shared(target, root) :])


def _below(folder: str, key: str) -> str:
    path, base = f"/{key.removeprefix('/')}", paths.folder(folder)
    # A CompositeBackend takes its route away, and a backend of everything does not.
    return path if path.startswith((base, paths.SCRATCH)) else f"{base}{path[1:]}"


def _data(value: Mapping[str, Any]) -> bytes | None:
    """The bytes of a file: a list of lines in the first format, a text or base64 in the second."""
    content = value["content"]
    if isinstance(content, list) and all(isinstance(line, str) for line in content):
        content = "\n".join(content)
    try:
        if isinstance(content, str) and value.get("encoding") == "base64":
            return base64.b64decode(content, validate=True)
        return content.encode() if isinstance(content, str) else None
    except ValueError:
        return None
