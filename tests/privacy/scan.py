"""A scan of everything, written apart from memories/privacy/verification.py: simple, slow, for a small hub of a test.

Each table goes out by COPY, is unpacked value by value with the standard library, and files beside it.
"""

import base64
import binascii
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

from django.db import connection

_TABLES = """
SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'
"""
# What the planner itself keeps, without the walls of pg_stats.
_BESIDE = {
    "samples": "SELECT stavalues1::text, stavalues2::text, stavalues3::text, stavalues4::text FROM pg_statistic",
    "statements": "SELECT query FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
}
_TOKEN = re.compile(rb"[A-Za-z0-9+/=_-]{12,}")


def marks_in(wanted: Iterable[str], home: Path) -> dict[str, set[str]]:
    """Marker → where it was found: tables, `statistics`, files."""
    forms = {mark: {mark.encode(), json.dumps(mark)[1:-1].encode()} for mark in wanted}
    found: dict[str, set[str]] = {}
    for place, value in _values(home):
        for data in unpacked(value):
            for mark, written in forms.items():
                if any(form in data for form in written):
                    found.setdefault(mark, set()).add(place)
    return found


def _values(home: Path) -> Iterator[tuple[str, bytes]]:
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        tables = [name for (name,) in cursor.fetchall()]
    statements = {name: f"TABLE {name}" for name in tables} | _BESIDE
    for name, statement in statements.items():
        with connection.cursor() as cursor, cursor.copy(f"COPY ({statement}) TO STDOUT (FORMAT csv)") as copy:
            yield name, b"".join(bytes(line) for line in copy)
    for path in home.rglob("*"):
        if path.is_file():
            yield f"file {path.name}", path.read_bytes()


def unpacked(data: bytes, depth: int = 5) -> Iterator[bytes]:
    yield data
    if depth:
        for inner in _inside(data):
            yield from unpacked(inner, depth - 1)


def _inside(data: bytes) -> Iterator[bytes]:
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from (archive.read(name) for name in archive.namelist())
    for magic in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data):
        try:
            yield zlib.decompressobj().decompress(data[magic.start() :])
        except zlib.error:
            continue
    if b"%" in data and _is_text(data):
        yield unquote_to_bytes(data)
    for token in _TOKEN.findall(data):
        yield from _tokens(token)


def _is_text(data: bytes) -> bool:
    """Bytes of an archive would no longer be one."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _tokens(token: bytes) -> Iterator[bytes]:
    text = token.lstrip(b"x")
    if re.fullmatch(rb"(?:[0-9a-f]{2})+", text):
        yield binascii.unhexlify(text)
    if not re.fullmatch(rb"[0-9a-f-]+", text) and any(letter in text for letter in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        try:
            yield base64.b64decode(token.replace(b"-", b"+").replace(b"_", b"/") + b"==")
        except binascii.Error:
            return
