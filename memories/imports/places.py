"""What was given to an import: files, folders, archives or the address of a database, and how to read them.

An archive is unpacked beside the hub's temporary files as long as the import runs: what it holds is read more than
once, and no archive can be read from its middle. Names in it are never used as paths.
"""

import io
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from django.utils import timezone

from memories.imports import moments
from memories.imports.raw_documents import Documents, Outcome, Place, RefusedDocumentError, built_at, found_in

_DSN = ("postgres://", "postgresql://")
# What can hold something to import; the rest are pictures and sound.
JSON = frozenset({".json", ".jsonl", ".ndjson"})
READ = JSON | {".csv", ".md", ".markdown", ".txt", ""}
# The lists of an answer or an export of which each member is a document of its own.
LISTS = ("conversations", "results", "memories", "items", "edges", "conclusions", "profiles")
# No export of a person's is larger, and a small archive can hold more than any disk.
MOST_UNPACKED = 50 * 1024**3
# Conversations that are put in order.
MOST_DATED = 1_000_000
# Of the list of an archive's files, in bytes: some hundred thousand of them.
_LONGEST_LIST = 16 * 1024 * 1024
# zipfile unpacks others without a bound of what it holds at once.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class _ArchiveFile(io.FileIO):
    """zipfile reads the list of an archive's files at once, and makes an object of each."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Errors: BadZipFile."""
        if size is not None and size > _LONGEST_LIST:
            raise zipfile.BadZipFile("its list is too long")
        return super().read(size)


class Part(NamedTuple):
    """A file, with its name below what was given."""

    name: str
    path: Path

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.name).parts


@dataclass(frozen=True)
class Given:
    """What was given, and how to read it: `table` and `namespace` of a database, `to_folder` and `agent` of files,
    `zone` of times that name none (None: each source's own), `user` of what names nobody."""

    at: str = ""
    roots: tuple[Part, ...] = ()
    table: str = ""
    namespace: str = ""
    to_folder: str = "/memories"
    agent: str | None = None
    user: str = ""
    zone: tzinfo | None = None
    now: datetime = field(default_factory=timezone.now)
    # Names in archives of what is nothing to read.
    skipped: int = 0
    # Where the documents of the files are that were looked at.
    known: dict[Path, Documents] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_database(self) -> bool:
        return self.at.startswith(_DSN)

    @property
    def folder(self) -> Path | None:
        """The folder that was given, as it is on the disk."""
        path = None if self.is_database or len(self.roots) != 1 else self.roots[0].path
        return path if path and path.is_dir() else None

    @property
    def path(self) -> Path:
        """The one file or folder. Errors: ValueError with several."""
        if len(self.roots) != 1:
            raise ValueError("it is one file")
        return self.roots[0].path

    @cached_property
    def parts(self) -> list[Part]:
        """All files, in the order of their names; those that are hidden below what was given are none."""
        found: list[Part] = []
        for root in self.roots:
            if not root.path.is_dir():
                found.append(root)
                continue
            below = sorted(one for one in root.path.rglob("*") if one.is_file())
            names = ((one, one.relative_to(root.path)) for one in below)
            found += [Part(name.as_posix(), one) for one, name in names if not _is_hidden(name.parts)]
        return found

    def documents(self, part: Part) -> Documents:
        """Errors: OSError, ValueError."""
        if part.path not in self.known:
            self.known[part.path] = found_in(part.path, lists=LISTS)
        return self.known[part.path]

    def moment(self, value: Any, *, zone: tzinfo | None = UTC) -> datetime | None:
        """When something was said, never later than now; `zone`: of a time without one, if nobody names it."""
        found = moments.moment(value, self.zone or zone)
        return min(found, self.now) if found else None

    def end(self, value: Any) -> datetime | None:
        """When something ends; a day ends when it is over. What is no time has ended: nothing shall stay for ever that
        was to end."""
        return (moments.end(value, self.zone or UTC) or self.now) if value else None


@contextmanager
def opened(
    paths: Sequence[str],
    *,
    name: str = "",
    within: Path | None = None,
    most_unpacked: int = 0,
    **options: Any,
) -> Iterator[Given]:
    """What was given under these names. `name` is what one file was called, where it lies under another name; archives
    are unpacked in a folder `within` that one, up to so many bytes; 0: MOST_UNPACKED. Errors: OSError, ValueError."""
    if paths[0].startswith(_DSN):
        yield Given(paths[0], **options)
        return
    with ExitStack() as stack:
        roots: list[Part] = []
        skipped = 0
        for one in map(Path, paths):
            if one.is_dir() or not zipfile.is_zipfile(one):
                one.stat()
                roots.append(Part(name or one.name, one))
                continue
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=within)))
            unpacked = list(_unpacked(one, folder, most_unpacked or MOST_UNPACKED))
            roots += [part for part in unpacked if part]
            skipped += unpacked.count(None)
        yield Given(paths[0], tuple(roots), skipped=skipped, **options)


def dated(given: Given, parts: Sequence[Part], date: Callable[[dict[str, Any]], Any]) -> Iterator[Outcome]:
    """The documents of these files, the oldest first: a text without a date comes before those with one.

    They are read twice, and one at a time is in memory. What is refused comes first. Errors: OSError, ValueError.
    """
    places: list[tuple[str, int, Place]] = []
    for which, part in enumerate(parts):
        with part.path.open("rb") as file:
            for place in given.documents(part).places:
                found = built_at(file, place)
                if isinstance(found, RefusedDocumentError):
                    yield found
                elif found and len(places) == MOST_DATED:
                    raise ValueError("it holds too many conversations")
                elif found:
                    places.append((str(given.moment(date(found)) or ""), which, place))
    places.sort(key=lambda one: one[0])
    with ExitStack() as stack:
        files = {which: stack.enter_context(parts[which].path.open("rb")) for _, which, _ in places}
        for _, which, place in places:
            yield built_at(files[which], place)


def _unpacked(archive: Path, into: Path, most: int) -> Iterator[Part | None]:
    """Each file that may hold something; None for what does not. Errors: OSError, ValueError."""
    left = most
    try:
        with _ArchiveFile(archive) as file, zipfile.ZipFile(file) as packed:
            for number, member in enumerate(sorted(packed.infolist(), key=lambda one: one.filename)):
                name = PurePosixPath(member.filename.replace("\\", "/"))
                if member.is_dir():
                    continue
                if name.suffix.lower() not in READ or _is_hidden(name.parts) or "__MACOSX" in name.parts:
                    yield None
                    continue
                if member.compress_type not in _METHODS:
                    raise NotImplementedError
                path = into / f"{number}{name.suffix.lower()}"
                with packed.open(member) as source, path.open("wb") as target:
                    # What the archive says of the size may be wrong.
                    while left > 0 and (chunk := source.read(1024 * 1024)):
                        left -= len(chunk)
                        target.write(chunk)
                if left <= 0:
                    raise ValueError("it holds too much")
                yield Part(name.as_posix(), path)
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError, RuntimeError) as error:
        shutil.rmtree(into, ignore_errors=True)
        raise ValueError("it is no archive that can be read") from error


def _is_hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith(".") for part in parts)
