"""Reads memories that other systems keep as statements about people: mem0, LangGraph's store, DeerFlow's documents,
relations of Graphiti and Zep, what Hindsight, Honcho and Memobase answer, and a general form for facts.

Each comes as a fact of a memory document, as `PUT /memory` takes it, with whose it is and when it ends.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from memories.imports import moments, namespaces
from memories.imports.databases import is_sqlite, sqlite_rows, table_rows
from memories.imports.messages import objects_in
from memories.imports.places import Given
from memories.imports.raw_documents import CutOffError, RefusedDocumentError, document_in
from memories.imports.records import (
    ASSISTANTS,
    NO_TEXT,
    OTHER_FILE,
    OTHER_FORM,
    OTHERS,
    TOOLS,
    LeftOut,
    Owner,
    Record,
    StoredMemory,
)
from memories.imports.stating import memory, name_of, named_text, owner_of, text_in
from memories.imports.unpacking import Part

# How systems call what a general form of facts has.
_ID = ("id", "uuid", "key", "memory_id")
_PERSON = ("user_id", "user", "person", "bank_id", "group_id", "observed_id")
_SAID_AT = ("date", "created_at", "createdAt", "valid_from", "valid_at", "event_date", "mentioned_at", "timestamp")
_ENDS = ("ends", "expires_at", "expires", "expiration_date", "valid_to", "valid_until", "invalid_at", "expired_at")
# What says that a statement no longer holds.
_OVER = frozenset({"invalidated", "deleted", "archived", "superseded", "forgotten"})
_ASSISTANT = ("assistant", "ai", "model", "agent", "bot")
# What DeerFlow calls a memory document.
_MEMORY = "memory.json"
_LARGEST_CELL = 1024 * 1024
_LONGEST_LINE = 4 * _LARGEST_CELL
# Bytes that are no UTF-8.
_NO_UTF_8 = re.compile("[\udc80-\udcff]")
# Where the cells of a row are that have no column.
_MORE = "\0more"


def mem0(given: Given, parts: list[Part]) -> Iterator[Record]:
    """What `get_all` answers, an export, points of the vector store with their payload, its pgvector table, or the
    database of the history, of which each memory's last state counts."""
    if given.is_database:
        rows = table_rows(given, "SELECT id::text, payload FROM {}", table=given.table or "mem0")
        for row in rows:
            yield _mem0_memory(given, row)
        return
    for part in parts:
        if is_sqlite(part.path):
            yield from _mem0_history(given, part.path)
        else:
            for document in given.documents(part):
                yield document if isinstance(document, RefusedDocumentError) else _mem0_memory(given, document)


def _mem0_memory(given: Given, row: Mapping[str, Any]) -> Record:
    if "payload" in row:
        payload = row["payload"]
        row = {**row, **(payload if isinstance(payload, dict) else {}), "id": row.get("id")}
    found = row.get("metadata")
    metadata = found if isinstance(found, dict) else {}
    categories = row.get("categories") or [metadata.get("category") or row.get("category")]
    whose = owner_of(row.get("user_id"), row.get("agent_id"))
    if whose is None:
        return LeftOut(OTHER_FORM)
    told = {name: value for name, value in row.items() if value not in (None, "")}
    if reason := _whose_words({**metadata, **told}, whose.user_id or given.user):
        return LeftOut(reason)
    category = categories[0] if isinstance(categories, list) and categories else categories
    return memory(
        "mem0", row.get("id"), named_text(row), _said(given, row.get("created_at")),
        category=category, whose=whose, ends=given.end(row.get("expiration_date")),
    )  # fmt: skip


def _whose_words(row: Mapping[str, Any], person: str) -> str:
    """Why a statement is not the person's own: the source says who spoke. "" where it is, or nobody says it."""
    if any(not isinstance(row.get(name), str | None) for name in ("role", "attributed_to", "actor_id")):
        return OTHERS
    role, by = (str(row.get(name) or "").lower() for name in ("role", "attributed_to"))
    if role in _ASSISTANT or by in _ASSISTANT:
        return ASSISTANTS
    if role in ("system", "tool", "function"):
        return TOOLS
    speaker = str(row.get("actor_id") or "").strip()
    is_other = speaker and speaker.casefold() not in (person.casefold(), "user", "human")
    return OTHERS if is_other or by not in ("", "user", "human", person.lower()) else ""


def _mem0_history(given: Given, path: Path) -> Iterator[Record]:
    rows: Iterator[Any] = sqlite_rows(path, "SELECT rowid, * FROM history ORDER BY memory_id, rowid")
    last: dict[str, Any] = {}
    for row in chain(rows, [None]):
        if last and (row is None or row["memory_id"] != last["memory_id"]):
            gone = last["is_deleted"] or last["event"] == "DELETE"
            reason = "deleted" if gone else _whose_words(last, given.user)
            said = _said(given, last["first"])
            yield LeftOut(reason) if reason else memory("mem0", last["memory_id"], last["new_memory"], said)
            last = {}
        if row is not None:
            last = {**row, "first": last.get("first") or row["created_at"]}


def langgraph(given: Given, parts: list[Part]) -> Iterator[Record]:
    """The table of PostgresStore or SqliteStore, or a list of items as `Item.dict()` gives them."""
    for item in langgraph_rows(given, parts):
        if isinstance(item, RefusedDocumentError):
            yield item
            continue
        names = item["namespace"]
        whose = namespaces.whose_namespace(names, given.namespace)
        value = item.get("value")
        if whose is None:
            yield LeftOut("other_namespace")
        elif not isinstance(value, dict):
            yield LeftOut(NO_TEXT)
        elif "modified_at" in value:
            # deepagents keeps files in the same store.
            yield LeftOut("file")
        else:
            name = ".".join([*names, str(item["key"])])
            said, ends = _said(given, item.get("created_at")), given.end(item.get("expires_at"))
            yield memory(
                "langgraph", name, text_in(value), said, category=value.get("category"), whose=whose, ends=ends
            )


def langgraph_rows(given: Given, parts: list[Part], columns: str = "", beside: str = "") -> Iterator[Any]:
    """Items as mappings, each with its namespace as a list of texts and a key; what has another form is refused."""
    for found in _langgraph_rows(given, parts, columns, beside):
        yield found if isinstance(found, RefusedDocumentError) or _is_item(found) else RefusedDocumentError(OTHER_FORM)


def _is_item(row: Mapping[str, Any]) -> bool:
    names = row.get("namespace")
    is_named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return is_named and isinstance(row.get("key"), str | int)


def _langgraph_rows(given: Given, parts: list[Part], columns: str, beside: str) -> Iterator[Any]:
    if given.is_database:
        query = columns or (
            "SELECT string_to_array(prefix, '.') AS namespace, key, value, created_at, "
            "to_jsonb(s) ->> 'expires_at' AS expires_at FROM {} s ORDER BY prefix, key"
        )
        yield from table_rows(given, query, table=given.table or "store", beside=beside)
        return
    for part in parts:
        if not is_sqlite(part.path):
            yield from given.documents(part)
            continue
        table = (given.table or "store").replace('"', '""')
        for row in sqlite_rows(part.path, f'SELECT * FROM "{table}" ORDER BY prefix, key'):  # noqa: S608
            value = row.get("value")
            try:
                value = json.loads(value) if isinstance(value, str | bytes) else value
            except (ValueError, RecursionError):
                value = None
            yield {**row, "value": value, "namespace": str(row.get("prefix")).split(".")}


def are_of_several(given: Given, parts: list[Part]) -> bool:
    """Whether the items are in more than one namespace. Errors: as of langgraph()."""
    first: Any = None
    for item in langgraph_rows(given, parts):
        namespace = item.get("namespace") if isinstance(item, dict) else None
        if not isinstance(namespace, list):
            continue
        if first not in (None, namespace):
            return True
        first = namespace
    return False


def deerflow(given: Given, parts: list[Part]) -> Iterator[Record]:
    """A memory document, or a folder with one for each person and agent: `users/ID/memory.json` and
    `users/ID/agents/NAME/memory.json`."""
    for part in parts:
        if given.folder and part.parts[-1] != _MEMORY:
            yield LeftOut(OTHER_FILE)
            continue
        folders = part.parts[:-1] if given.folder else ()
        whose = Owner(_after("users", folders), _after("agents", folders))
        try:
            document = document_in(part.path)
        except RefusedDocumentError as error:
            yield error
            continue
        profile = {name: document[name] for name in ("user", "history") if isinstance(document.get(name), dict)}
        if profile:
            yield StoredMemory(sections=profile, whose=whose)
        facts, others = objects_in(document, "facts")
        others += sum(not isinstance(document.get(name), dict | None) for name in ("user", "history"))
        if others or not (profile or "facts" in document):
            yield LeftOut(OTHER_FORM, others or 1)
        for fact in facts:
            own = fact.get("id") or name_of("deerflow", None, fact.get("content"))
            yield StoredMemory(fact={**fact, "id": own}, whose=whose)


def _after(folder: str, folders: tuple[str, ...]) -> str:
    places = [place for place, name in enumerate(folders[:-1]) if name == folder]
    return folders[places[-1] + 1] if places else ""


def facts(given: Given, parts: list[Part], *, source: str = "facts") -> Iterator[Record]:
    """The general form: JSON lines, a JSON list, or CSV with a heading, with a text and what else is known of it."""
    for part in parts:
        rows = _cells(part.path) if part.path.suffix.lower() == ".csv" else given.documents(part)
        for row in rows:
            yield row if isinstance(row, RefusedDocumentError) else _fact(given, row, source)


def columns_of(path: Path) -> list[str]:
    """The columns of CSV by its heading. Errors: OSError, ValueError."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        heading = file.readline(_LARGEST_CELL)
    try:
        return [name.strip().lower() for name in next(csv.reader([heading], delimiter=_delimiter(heading)), [])]
    except csv.Error as error:
        raise ValueError("it has no heading") from error


def _delimiter(heading: str) -> str:
    """Programs of countries with a decimal comma write semicolons."""
    return max(",;\t", key=heading.count)


def _cells(path: Path) -> Iterable[dict[str, Any] | RefusedDocumentError]:
    """The rows; one that has more cells than the heading is refused, as nobody knows which is which, and one whose
    letters are no UTF-8."""
    csv.field_size_limit(_LARGEST_CELL)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        heading = file.readline(_LONGEST_LINE)
        file.seek(0)
        lines = _Lines(file)
        rows = csv.DictReader(lines, delimiter=_delimiter(heading), restkey=_MORE)
        columns = [str(name).strip().lower() for name in rows.fieldnames or ()]
        is_twice = len(set(columns)) < len(columns)
        count = 0
        while True:
            try:
                row = next(rows, None)
            except csv.Error:
                yield RefusedDocumentError("too_large")
                continue
            if row is None:
                return
            if lines.is_open and lines.is_over:
                # The quotes of the last cell have no end.
                yield CutOffError(path, path.stat().st_size, lines.began, whole=count)
            elif more := row.pop(_MORE, ()):
                found = len(columns) + len(more)
                yield RefusedDocumentError("columns", hint=f"expected {len(columns)} cells, found {found}")
            elif is_twice:
                yield RefusedDocumentError("columns", hint="two columns have one name")
            elif any(_NO_UTF_8.search(value) for value in row.values() if value):
                # A spreadsheet's: whoever wrote it can mend it.
                yield RefusedDocumentError("other_encoding", hint="save the file as UTF-8")
            else:
                count += 1
                yield {str(name).strip().lower(): value for name, value in row.items() if value}


class _Lines:
    """The lines of a file of CSV. `is_open`: whether a cell in quotes has no end yet; `began`: the byte at which the
    line stands that opened it; `is_over`: whether the file is."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._at = file, 0
        self.is_open = self.is_over = False
        self.began = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._file.readline(_LONGEST_LINE):
            if not self.is_open:
                self.began = self._at
            self._at += len(line.encode("utf-8", "surrogateescape"))
            self.is_open ^= bool(line.count('"') % 2)
            yield line
        self.is_over = True


def _fact(given: Given, row: Mapping[str, Any], source: str) -> Record:
    whose = owner_of(_first(row, _PERSON), row.get("agent_id"))
    if source == "facts" and (fault := _fault_in(row, whose)):
        return fault
    if whose is None:
        return LeftOut(OTHER_FORM)
    person = whose.user_id
    if str(row.get("state") or row.get("status") or "").lower() in _OVER:
        return LeftOut("no_longer_true")
    ends = given.end(_first(row, _ENDS))
    over = "no_longer_true" if row.get("invalid_at") or row.get("valid_to") else "expired"
    if reason := _whose_words(row, person or given.user) or (over if ends and ends <= given.now else ""):
        return LeftOut(reason)
    said = next((_said(given, row[name]) for name in _SAID_AT if row.get(name)), None)
    text, kind = named_text(row), _topic(row)
    own = _first(row, _ID)
    found = memory(
        source, own, f"{kind}: {text}" if kind and text else text, said,
        category=row.get("category"), confidence=row.get("confidence"), whose=whose, ends=ends,
    )  # fmt: skip
    if isinstance(found, StoredMemory) and source == "facts":
        return StoredMemory(found.fact, whose=found.whose, ends=found.ends, is_own=True)
    return found


def _fault_in(row: Mapping[str, Any], whose: Owner | None) -> RefusedDocumentError | None:
    """What somebody can mend in a row of their own."""
    until, said = _first(row, _ENDS), _first(row, _SAID_AT)
    if whose is None:
        return RefusedDocumentError("/user_id invalid")
    if until and moments.end(until) is None:
        return RefusedDocumentError("/ends invalid")
    if said and moments.moment(said) is None:
        return RefusedDocumentError("/date invalid", hint="expected ISO-8601, a day, or seconds since 1970")
    return None


def _topic(row: Mapping[str, Any]) -> str:
    """Memobase's profiles have a topic and a part of it beside their text."""
    found = row.get("attributes") if isinstance(row.get("attributes"), dict) else row
    names = [str(found.get(name) or "") for name in ("topic", "sub_topic")]  # type: ignore[union-attr]
    return " ".join(name.replace("_", " ") for name in names if name) if all(names) else ""


def _first(row: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _said(given: Given, value: Any) -> str | None:
    """As text; a time without a zone is UTC, where nobody names one."""
    found = given.moment(value)
    return found.isoformat() if found else None
