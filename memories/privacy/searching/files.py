"""The hub's own files: everything under its home except the files of the database itself."""

import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext_noop

CHUNK_BYTES = 32 << 20
# Operators answer for their backups: the receipt says until when one may hold the person.
BACKUP = b"PGDMP"
LEDGER = "files:ledger"
# Of `manage.py export_user`: each is named after its case.
EXPORTS = "files:exports"
# Arrays behind a head that says whose they are, in so many bytes.
INDEXES, INDEX_HEAD = "files:indexes", 4_096


def skipped() -> dict[str, str]:
    """Place → why it is not read."""
    return {
        "files:postgres": gettext_noop(
            "bytes of tables and of the write-ahead log; the receipt says until when they hold text"
        ),
        "files:tiktoken": gettext_noop("the public vocabulary of a tokenizer"),
        "files:indexes": gettext_noop("numbers that the hub searches with, without text; whose they are is read"),
        "files:backups": gettext_noop(
            "copies that an operator keeps; the ledger erases again what is restored from one"
        ),
    }


def contents() -> Iterator[tuple[str, str, bytes]]:
    """(place, name, bytes) of every file, in parts that overlap when it is large.

    Places are `files:<folder or name>`. The ledger of erasures is read wherever it is; its place is LEDGER.
    """
    home, ledger = Path(settings.HOME).resolve(), Path(settings.MEMORYHUB_ERASURE_LEDGER).resolve()
    if home not in ledger.parents:
        yield from ((LEDGER, ledger.name, part) for part in _parts(ledger))
    unread = {home / "postgres", home / "tiktoken"}
    if settings.MEMORYHUB_ARCHIVE:
        # Backups, too.
        unread.add(Path(settings.MEMORYHUB_ARCHIVE).resolve())
    for folder, folders, names in os.walk(home):
        folders[:] = sorted(name for name in folders if Path(folder, name) not in unread)
        for path in (Path(folder, name) for name in sorted(names)):
            if path.is_file() and not path.is_symlink():
                place = LEDGER if path == ledger else f"files:{path.relative_to(home).parts[0]}"
                parts = _heads(path) if place == INDEXES else _parts(path)
                yield from ((place, path.name, part) for part in parts)


def _heads(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield file.read(INDEX_HEAD)
    except FileNotFoundError:
        return


def _parts(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            part = file.read(CHUNK_BYTES)
            while part and not part.startswith(BACKUP):
                yield part
                rest = file.read(CHUNK_BYTES)
                # What crosses the border is found in the second part.
                part = part[-4096:] + rest if rest else b""
    except FileNotFoundError:
        # A sweep was quicker.
        return
