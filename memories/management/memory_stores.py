"""Reads memories that other systems keep: mem0, LangGraph's store, DeerFlow's documents, MemPalace's knowledge graph.

Each comes as a fact of a memory document, as `PUT /memory` takes it, with whose it is, for the serializers of the API
to check. What cannot be a fact comes with the reason.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from memories.management.raw_documents import RefusedDocumentError, document_in, documents_in
from memories.models import Category

# Without a word of the other system's own. A memory that it serves is believed, and no more than that.
CONFIDENCE = 0.7
USER, AGENT, ANYTHING = "{user}", "{agent}", "*"
# Why a file is left out whose name, or a folder of which, begins with a dot: tools keep their logins there.
HIDDEN = "hidden"
_DSN = ("postgres://", "postgresql://")
_SQLITE = b"SQLite format 3\0"
# Where a memory's text may be, in LangMem's form and in those of people's own.
_TEXTS = ("content", "text", "memory", "data", "fact")
_ROWS_AT_ONCE = 500


class Whose(NamedTuple):
    """Person and agent; "" where the system names nobody."""

    user_id: str = ""
    agent_id: str = ""


_NOBODY = Whose()


@dataclass(frozen=True)
class StoredMemory:
    """A memory of another system: a fact, the document with the sections of a profile, or the reason why it is none."""

    fact: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, Any] = field(default_factory=dict)
    left_out: str = ""
    whose: Whose = _NOBODY


class StoreLocation(NamedTuple):
    """Where the memories are: a file, a folder or the DSN of a database; how its table is called, and which part of a
    namespace names whom."""

    at: str
    table: str = ""
    namespace: str = ""

    @property
    def is_database(self) -> bool:
        return self.at.startswith(_DSN)


def read(source: str, place: StoreLocation, refused: Counter[str]) -> Iterator[StoredMemory]:
    """What is too much is counted in `refused`.

    Errors: OSError, ValueError, psycopg.Error and sqlite3.Error when it is not what the source should be.
    """
    return STORES[source](place, refused)


def _mem0(place: StoreLocation, refused: Counter[str]) -> Iterator[StoredMemory]:
    """What `get_all` answers, an export, points of the vector store with their payload, its pgvector table, or the
    database of the history, of which each memory's last state counts."""
    if place.is_database:
        rows = table_rows(place, "SELECT id::text, payload FROM {}", table=place.table or "mem0")
        yield from (_mem0_memory({**row["payload"], "id": row["id"]}) for row in rows)
    elif is_sqlite(place.at):
        yield from _mem0_history(place.at)
    else:
        yield from map(_mem0_memory, documents_in(Path(place.at), refused, lists=("results", "memories")))


def _mem0_memory(given: Mapping[str, Any]) -> StoredMemory:
    if isinstance(payload := given.get("payload"), dict):
        given = {**given, **payload, "id": given.get("id")}
    found = given.get("metadata")
    metadata = found if isinstance(found, dict) else {}
    categories = given.get("categories") or [metadata.get("category") or given.get("category")]
    whose = Whose(str(given.get("user_id") or ""), str(given.get("agent_id") or ""))
    if ends := given.get("expiration_date"):
        # A fact that ends by itself is stated by POST /facts.
        return StoredMemory(
            left_out="expired" if str(ends) <= datetime.now(UTC).isoformat() else "expires", whose=whose
        )
    text = given.get("memory") or given.get("data") or given.get("text")
    category = categories[0] if isinstance(categories, list) else categories
    return _memory("mem0", given.get("id"), text, given.get("created_at"), category=category, whose=whose)


def _mem0_history(path: str) -> Iterator[StoredMemory]:
    rows = sqlite_rows(path, "SELECT rowid, * FROM history ORDER BY memory_id, rowid")
    last: dict[str, Any] = {}
    for row in [*rows, None]:
        if last and (row is None or row["memory_id"] != last["memory_id"]):
            gone = last["is_deleted"] or last["event"] == "DELETE"
            made = _memory("mem0", last["memory_id"], last["new_memory"], last["first"])
            yield StoredMemory(left_out="deleted") if gone else made
            last = {}
        if row is not None:
            last = {**row, "first": last.get("first") or row["created_at"]}


def _langgraph(place: StoreLocation, refused: Counter[str]) -> Iterator[StoredMemory]:
    """The table of PostgresStore, or a list of items as `Item.dict()` gives them."""
    if place.is_database:
        columns = "SELECT string_to_array(prefix, '.') AS namespace, key, value, created_at FROM {}"
        items: Iterator[Mapping[str, Any]] = table_rows(place, columns, table=place.table or "store")
    else:
        items = documents_in(Path(place.at), refused, lists=("items",))
    for item in items:
        namespace = item.get("namespace")
        names = [str(part) for part in namespace] if isinstance(namespace, list) else []
        whose = whose_namespace(names, place.namespace)
        value = item.get("value")
        if whose is None:
            yield StoredMemory(left_out="other_namespace")
        elif not isinstance(value, dict):
            yield StoredMemory(left_out="no_text", whose=whose)
        elif "modified_at" in value:
            # deepagents keeps files in the same store.
            yield StoredMemory(left_out="file", whose=whose)
        else:
            name = ".".join([*names, str(item.get("key"))])
            yield _memory(
                "langgraph", name, _text_in(value), item.get("created_at"), category=value.get("category"), whose=whose
            )


def is_hidden(path: str | Sequence[str]) -> bool:
    """Whether a part of the path begins with a dot; `.` and `..` are no names. The root that was named is no part."""
    parts = path.replace("\\", "/").split("/") if isinstance(path, str) else path
    return any(part.startswith(".") and part not in (".", "..") for part in parts)


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts two paths have in common, from their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def whose_namespace(namespace: Sequence[str], pattern: str) -> Whose | None:
    """Whose a namespace is by a pattern like `memories,{user}`; None where it has another form."""
    parts = [part.strip() for part in pattern.split(",")] if pattern else [ANYTHING] * len(namespace)
    found = Whose()
    if len(parts) != len(namespace):
        return None
    for part, name in zip(parts, namespace, strict=True):
        if part in (USER, AGENT):
            found = found._replace(**{"user_id" if part == USER else "agent_id": name})
        elif part not in (ANYTHING, name):
            return None
    return found


def _text_in(value: Mapping[str, Any]) -> Any:
    inner = value.get("content")
    if isinstance(inner, dict):
        # LangMem's: {"kind": "Memory", "content": {"content": "…"}}
        return _text_in(inner)
    return next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), None)


def _deerflow(place: StoreLocation, refused: Counter[str]) -> Iterator[StoredMemory]:
    """A memory document, or a folder with one for each person and agent: `users/ID/memory.json` and
    `users/ID/agents/NAME/memory.json`. What is in hidden folders is left out."""
    base = Path(place.at)
    paths = sorted(base.glob("**/memory.json")) if base.is_dir() else [base]
    for path in paths:
        folders = path.relative_to(base).parts[:-1] if base.is_dir() else ()
        if is_hidden(folders):
            yield StoredMemory(left_out=HIDDEN)
            continue
        whose = Whose(_after("users", folders), _after("agents", folders))
        try:
            document = document_in(path)
        except RefusedDocumentError as error:
            refused[str(error)] += 1
            continue
        profile = {name: document[name] for name in ("user", "history") if isinstance(document.get(name), dict)}
        if profile:
            yield StoredMemory(sections=profile, whose=whose)
        facts = document.get("facts")
        for fact in facts if isinstance(facts, list) else ():
            named = fact if isinstance(fact, dict) else {}
            own = named.get("id") or _name("deerflow", None, named.get("content"))
            yield StoredMemory(fact=named | {"id": own}, whose=whose)


def _after(folder: str, folders: Sequence[str]) -> str:
    places = [place for place, name in enumerate(folders[:-1]) if name == folder]
    return folders[places[-1] + 1] if places else ""


def _mempalace(place: StoreLocation, _refused: Counter[str]) -> Iterator[StoredMemory]:
    """The database of the knowledge graph: each relation that still holds, as a sentence."""
    rows = sqlite_rows(
        place.at,
        """
        SELECT t.*, coalesce(s.name, t.subject) AS who, coalesce(o.name, t.object) AS what FROM triples t
        LEFT JOIN entities s ON s.id = t.subject LEFT JOIN entities o ON o.id = t.object ORDER BY t.rowid
        """,
    )
    for row in rows:
        if row["valid_to"]:
            yield StoredMemory(left_out="no_longer_true")
            continue
        text = f"{row['who']} {str(row['predicate']).replace('_', ' ')} {row['what']}"
        since = row["valid_from"] or row["extracted_at"]
        yield _memory("mempalace", row["id"], text, since, confidence=row["confidence"])


STORES: dict[str, Callable[[StoreLocation, Counter[str]], Iterator[StoredMemory]]] = {
    "mem0": _mem0,
    "langgraph": _langgraph,
    "deerflow": _deerflow,
    "mempalace": _mempalace,
}


def _name(source: str, key: Any, text: Any) -> str:
    """The id that a fact has here: its own there, or one made of its text."""
    digest = hashlib.sha256(str(text).encode("utf-8", "replace")).hexdigest()[:32]
    return f"{source}:{digest if key in (None, '') else key}"


def _memory(
    source: str,
    key: Any,
    text: Any,
    at: Any,
    *,
    category: Any = None,
    confidence: Any = None,
    whose: Whose = _NOBODY,
) -> StoredMemory:
    if not isinstance(text, str) or not text.strip():
        return StoredMemory(left_out="no_text", whose=whose)
    fact = {
        "id": _name(source, key, text),
        "content": text.strip(),
        "category": category if isinstance(category, str) and category else Category.OTHER.value,
        "confidence": CONFIDENCE if confidence is None else confidence,
        "createdAt": at.isoformat() if isinstance(at, datetime) else moment_of(at),
    }
    return StoredMemory(fact=fact, whose=whose)


def moment_of(value: Any) -> str | None:
    """A time as text; without a zone, as SQLite writes it, and as a day alone it is UTC."""
    if not isinstance(value, str) or not value:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return value
    return found.replace(tzinfo=found.tzinfo or UTC).isoformat()


def is_sqlite(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def sqlite_rows(path: str, query: str) -> Iterator[dict[str, Any]]:
    """Read only: a hub that imports changes nothing where it reads."""
    with closing(sqlite3.connect(f"{Path(path).resolve(strict=True).as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        for row in connection.execute(query):
            yield dict(row)


def table_rows(place: StoreLocation, query: str, *, table: str, beside: str = "") -> Iterator[dict[str, Any]]:
    """Rows of a table of another database, some at a time, read only. In the query `{}` is the table, `{beside}`
    another one."""
    with psycopg.connect(place.at, row_factory=dict_row) as connection:
        connection.read_only = True
        with connection.cursor(name="import") as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            names = {"beside": sql.Identifier(*beside.split("."))} if beside else {}
            yield from cursor.execute(sql.SQL(query).format(sql.Identifier(*table.split(".")), **names))


def has_table(place: StoreLocation, name: str) -> bool:
    with psycopg.connect(place.at) as connection:
        written = sql.Identifier(*name.split(".")).as_string()
        row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [written]).fetchone()
        return bool(row and row[0])
