"""Reads MemPalace: drawers, each of which is a piece of a file or a conversation as it was, and the knowledge graph.

Nobody knows whose words drawers are, so they come as a tool's: they are searched, and become nobody's statements.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any

from memories.imports.databases import is_sqlite, sqlite_rows, tables_of
from memories.imports.namespaces import is_hidden, shared
from memories.imports.places import Given, Part
from memories.imports.records import HIDDEN, NO_TEXT, OTHER_FORM, LeftOut, Record, Said
from memories.imports.stating import memory

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
_TRIPLES = """
    SELECT t.*, coalesce(s.name, t.subject) AS who, coalesce(o.name, t.object) AS what FROM triples t
    LEFT JOIN entities s ON s.id = t.subject LEFT JOIN entities o ON o.id = t.object ORDER BY t.rowid
"""
_LONGEST_NAME = 255


def read(given: Given, parts: list[Part]) -> Iterator[Record]:
    """A palace's folder, a database of drawers, or that of the knowledge graph. Errors: OSError, ValueError,
    sqlite3.Error."""
    for path in _databases(given, parts):
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


def _databases(given: Given, parts: list[Part]) -> Iterator[Path]:
    """Errors: ValueError, where a palace is kept in a way that cannot be read from here."""
    base = given.folder
    if base is None:
        yield from (part.path for part in parts if is_sqlite(part.path))
        return
    found = [base / name for name in (CHROMA, EXACT) if (base / name).is_file()]
    if not found:
        raise ValueError("of a palace's backends those of Chroma and of SQLite can be read")
    yield from found


def _drawers(given: Given, path: Path, query: str) -> Iterator[Record]:
    """A conversation for each of the sources; drawers of hidden files are left out."""
    sources = f"SELECT DISTINCT wing, source FROM ({query})"  # noqa: S608
    folders = _folders_of_wings(sqlite_rows(path, sources))
    for source, pieces in groupby(sqlite_rows(path, query), key=itemgetter("wing", "source")):
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
    if not (isinstance(text, str) and text.strip()):
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
