"""The file of an export in pieces: no process holds more than one, and no row more than the database can read."""

from collections.abc import Iterator
from typing import IO

from memories.models import PrivacyExport

# What is unpacked of one stays below what a verification unpacks at a time.
PIECE_BYTES = 4 << 20


def cut(file: IO[bytes]) -> Iterator[bytes]:
    """The rest of the file in pieces."""
    while piece := file.read(PIECE_BYTES):
        yield piece


def add(export: PrivacyExport, number: int, content: bytes) -> None:
    """Store a piece, in the caller's transaction."""
    export.pieces.create(tenant_id=export.tenant_id, number=number, content=content)


def of(export: PrivacyExport) -> Iterator[bytes]:
    """The pieces of the file in order, read one by one."""
    number = 0
    while piece := export.pieces.filter(number=number).values_list("content", flat=True).first():
        yield bytes(piece)
        number += 1
