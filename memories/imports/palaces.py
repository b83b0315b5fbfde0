"""Reads MemPalace: drawers, each of which is a piece of a file or a conversation as it was, and the knowledge graph.

Nobody knows whose words drawers are, so they come as a tool's: they are searched, and become nobody's statements.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any

from memories.imports.databases import is_sqlite, sqlite_rows, table_rows, tables_like, tables_of
from memories.imports.findings import OTHER_BACKEND, UnreadableError
from memories.imports.namespaces import is_hidden, shared
from memories.imports.places import Given
from memories.imports.raw_documents import RefusedDocumentError
from memories.imports.records import HIDDEN, NO_TEXT, OTHER_FILE, OTHER_FORM, LeftOut, Record, Said
from memories.imports.stating import memory
from memories.imports.unpacking import JSON, Part

CHROMA, EXACT = "chroma.sqlite3", "sqlite_exact.sqlite3"
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
# The exact backend keeps the members of a record as JSON.
_EXACT = """
    WITH drawers AS (
        SELECT d.id AS name, d.rowid AS place, document, json_extract(metadata_json, '$.wing') AS wing,
            json_extract(metadata_json, '$.room') AS room, json_extract(metadata_json, '$.source_file') AS source_file,
            json_extract(metadata_json, '$.chunk_index') AS chunk,
            json_extract(metadata_json, '$.filed_at') AS filed_at,
            json_extract(metadata_json, '$.authored_at') AS authored_at
        FROM documents d JOIN collections c ON c.id = d.collection_id
        WHERE c.name = 'mempalace_drawers' AND json_valid(metadata_json)
    )
    SELECT name, document, wing, room, coalesce(nullif(source_file, ''), room, '') AS source,
        coalesce(nullif(authored_at, ''), filed_at) AS said
    FROM drawers ORDER BY wing, source, chunk, place
"""
_BROKEN = """
    SELECT count(*) AS number FROM documents d JOIN collections c ON c.id = d.collection_id
    WHERE c.name = 'mempalace_drawers' AND NOT coalesce(json_valid(metadata_json), false)
"""
# pgvector has a table for each palace and collection.
_TABLES = "mempalace\\_%drawers%"
_PGVECTOR = """
    SELECT id AS name, document, metadata FROM {}
    ORDER BY metadata ->> 'wing', coalesce(nullif(metadata ->> 'source_file', ''), metadata ->> 'room', ''), id
"""
_TRIPLES = """
    SELECT t.*, coalesce(s.name, t.subject) AS who, coalesce(o.name, t.object) AS what FROM triples t
    LEFT JOIN entities s ON s.id = t.subject LEFT JOIN entities o ON o.id = t.object ORDER BY t.rowid
"""
_LONGEST_NAME = 255


def read(given: Given, parts: list[Part]) -> Iterator[Record]:
    """A palace's folder, a database of drawers, or that of the knowledge graph; drawers as the services of the other
    backends give them, as JSON. Errors: OSError, ValueError, sqlite3.Error, psycopg.Error."""
    if given.is_database:
        for table in [given.table] if given.table else tables_like(given, _TABLES):
            yield from _pieces(given, partial(_table_rows, given, table))
        return
    databases = _databases(given, parts)
    for part in [] if databases else parts:
        yield from _given_rows(given, part)
    for path in databases:
        tables = tables_of(path)
        if "triples" in tables:
            yield from _relations(given, path)
        elif "embedding_metadata" in tables:
            yield from _drawers(given, path, _DRAWERS)
        elif "documents" in tables:
            yield from _drawers(given, path, _EXACT)
            yield from (LeftOut(OTHER_FORM, row["number"]) for row in sqlite_rows(path, _BROKEN) if row["number"])
        else:
            raise sqlite3.DatabaseError("it is no palace")


def _databases(given: Given, parts: list[Part]) -> list[Path]:
    """Errors: UnreadableError, where a palace is kept in a way that cannot be read from here."""
    base = given.folder
    if base is None:
        return [part.path for part in parts if is_sqlite(part.path)]
    found = [base / name for name in (CHROMA, EXACT) if (base / name).is_file()]
    if not found and not any(part.path.suffix.lower() in JSON for part in parts):
        raise UnreadableError(OTHER_BACKEND)
    return found


def is_in(given: Given) -> bool:
    """Whether a database has drawers, in the table that was named where one was. Errors: psycopg.Error."""
    names = tables_like(given, _TABLES)
    return given.table in names if given.table else bool(names)


def is_drawer(document: Mapping[str, Any]) -> bool:
    """Whether it is a drawer as a service gives it: a point of Qdrant with its payload, or a row of Milvus."""
    payload = document.get("payload")
    about = document.get("metadata")
    is_point = isinstance(payload, dict) and "mempalace_id" in payload
    return is_point or ("document" in document and isinstance(about, dict) and "wing" in about)


def _table_rows(given: Given, table: str) -> Iterator[dict[str, Any]]:
    return map(_row, table_rows(given, _PGVECTOR, table=table))


def _given_rows(given: Given, part: Part) -> Iterator[Record]:
    if part.path.suffix.lower() not in JSON:
        yield LeftOut(OTHER_FILE)
        return
    documents = given.documents(part)
    yield from (one for one in documents if isinstance(one, RefusedDocumentError))
    yield from _pieces(given, lambda: (_row(one) for one in documents if isinstance(one, dict)))


def _row(found: Mapping[str, Any]) -> dict[str, Any]:
    """A drawer with its places, as the databases have them."""
    payload = found.get("payload")
    whole: Mapping[str, Any] = payload if isinstance(payload, dict) else found
    about = whole.get("metadata")
    known = {name: value for name, value in about.items() if isinstance(value, str)} if isinstance(about, dict) else {}
    return {
        "name": whole.get("mempalace_id") or found.get("name") or found.get("id"),
        "document": whole.get("document"),
        "wing": known.get("wing"),
        "room": known.get("room"),
        "source": known.get("source_file") or known.get("room") or "",
        "said": known.get("authored_at") or known.get("filed_at"),
    }


def _drawers(given: Given, path: Path, query: str) -> Iterator[Record]:
    yield from _pieces(given, lambda: sqlite_rows(path, query))


def _pieces(given: Given, rows: Callable[[], Iterator[dict[str, Any]]]) -> Iterator[Record]:
    """A conversation for each of the sources; drawers of hidden files are left out. `rows` reads them anew."""
    folders = _folders_of_wings(rows())
    for source, pieces in groupby(rows(), key=itemgetter("wing", "source")):
        if is_hidden(_parts_of(source[1])[len(folders[source[0]]) :]):
            yield LeftOut(HIDDEN, sum(1 for _ in pieces))
            continue
        name = hashlib.sha256(json.dumps(source).encode()).hexdigest()[:32]
        drawers = [_drawer(given, piece) for piece in pieces]
        yield Said({"session_id": f"mempalace-{name}"}, [one for one in drawers if one])
        if empty := drawers.count(None):
            yield LeftOut(NO_TEXT, empty)


def _drawer(given: Given, piece: dict[str, Any]) -> dict[str, Any] | None:
    text, name = piece["document"], str(piece["name"])
    if not (isinstance(text, str) and text.strip()) or piece["name"] in (None, ""):
        return None
    if len(name) > _LONGEST_NAME:
        name = hashlib.sha256(name.encode()).hexdigest()
    # Of the source its name: the rest of a path says where it was on somebody's machine.
    places = {**piece, "source": PurePath(str(piece["source"]).replace("\\", "/")).name}
    metadata = {place: str(places[place]) for place in ("wing", "room", "source") if places[place]}
    # MemPalace writes the time of its machine, without the zone.
    moment = given.moment(piece["said"], zone=None)
    timestamp = {"timestamp": moment.isoformat()} if moment else {}
    return {"role": "tool", "content": text, "external_id": name, "metadata": metadata, **timestamp}


def _relations(given: Given, path: Path) -> Iterator[Record]:
    """Each relation that still holds, as a sentence; one that ends some day, with its end."""
    for row in sqlite_rows(path, _TRIPLES):
        if not all(isinstance(row[name], str | int | float) for name in ("who", "predicate", "what")):
            yield LeftOut(OTHER_FORM)
            continue
        ends = given.end(row["valid_to"])
        if ends and ends <= given.now:
            yield LeftOut("no_longer_true")
            continue
        text = f"{row['who']} {str(row['predicate']).replace('_', ' ')} {row['what']}"
        said = given.moment(row["valid_from"]) or given.moment(row["extracted_at"], zone=None)
        yield memory("mempalace", row["id"], text, said, confidence=row["confidence"], ends=ends)


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
