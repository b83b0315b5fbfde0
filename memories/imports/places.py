"""What was given to an import: files, folders, archives or the address of a database, and how to read them."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Any

from django.utils import timezone

from memories.imports import moments
from memories.imports.findings import TOO_MANY, UnreadableError
from memories.imports.raw_documents import Documents, Outcome, Place, RefusedDocumentError, built_at, found_in
from memories.imports.unpacking import ARCHIVE, Part, Unpacking, as_utf8, is_archive, is_hidden

_DSN = ("postgres://", "postgresql://")
# The lists of an answer or an export of which each member is a document of its own.
LISTS = ("conversations", "results", "memories", "items", "edges", "conclusions", "profiles")
# Conversations that are put in order.
MOST_DATED = 1_000_000


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
    # Names in archives of what is nothing to read, and their files that cannot be read.
    skipped: int = 0
    faults: Sequence[RefusedDocumentError] = ()
    # Where files may be written as long as it is open.
    scratch: Path | None = None
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
        """All files, in the order of their names, as UTF-8 where they are other texts; those that are hidden below what
        was given are none."""
        found = [part for part in self._all if part not in self._hidden]
        return [as_utf8(part, self.scratch) for part in found] if self.scratch else found

    @property
    def hidden(self) -> int:
        """How many files are hidden below what was given."""
        return len(self._hidden)

    @cached_property
    def _all(self) -> list[Part]:
        found: list[Part] = []
        for root in self.roots:
            if not root.path.is_dir():
                found.append(root)
                continue
            below = sorted(one for one in root.path.rglob("*") if one.is_file())
            found += [Part(one.relative_to(root.path).as_posix(), one) for one in below]
        return found

    @cached_property
    def _hidden(self) -> frozenset[Part]:
        """Also links to what is hidden."""
        roots = [root.path.resolve() for root in self.roots if root.path.is_dir()]
        return frozenset(part for part in self._all if part not in self.roots and _leads_to_hidden(part, roots))

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
        return None if value in (None, "") else moments.end(value, self.zone or UTC) or self.now


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
    are unpacked in a folder `within` that one, up to so many bytes; 0: as many as any export has. Errors: OSError,
    ValueError, UnreadableError of an archive."""
    if paths[0].startswith(_DSN):
        yield Given(paths[0], **options)
        return
    with ExitStack() as stack:
        roots: list[Part] = []
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=within)))
        skipped, faults = 0, list[RefusedDocumentError]()
        for one in _with_batches(map(Path, paths)):
            if one.is_dir() or not is_archive(one):
                one.stat()
                roots.append(Part(name or one.name, one))
                continue
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=within)))
            unpacking = Unpacking(folder, most_unpacked)
            roots += unpacking.unpack(one)
            skipped, faults = skipped + unpacking.skipped, faults + unpacking.faults
        yield Given(paths[0], tuple(roots), skipped=skipped, faults=faults, scratch=scratch, **options)


def _with_batches(paths: Iterable[Path]) -> Iterator[Path]:
    """These, and instead of a folder that holds nothing but archives the archives: exports come in batches."""
    for path in paths:
        inside = sorted(one for one in path.iterdir() if not is_hidden([one.name])) if path.is_dir() else []
        is_of_archives = inside and all(one.suffix.lower() == ARCHIVE and is_archive(one) for one in inside)
        yield from inside if is_of_archives else [path]


def _leads_to_hidden(part: Part, roots: Sequence[Path]) -> bool:
    target = part.path.resolve()
    # Folders above what was given do not count.
    shared = max(len(Path(os.path.commonpath([target, root])).parts) for root in roots)
    return is_hidden(part.parts) or is_hidden(target.parts[shared:])


def strangers(given: Given, parts: Sequence[Part], owner: Callable[[dict[str, Any]], str]) -> frozenset[str]:
    """Whose documents are not taken: of a file with those of several accounts, as an administrator exports it, each but
    `given.user`, and "". `owner` says whose a document is, "" where nobody says it. Errors: OSError, ValueError."""
    found: set[str] = set()
    for part in parts:
        owners = {owner(one) for one in given.documents(part) if isinstance(one, dict)} - {""}
        found |= owners | {""} if len(owners) > 1 else set()
    return frozenset(found - {given.user})


def dated(given: Given, parts: Sequence[Part], date: Callable[[dict[str, Any]], Any]) -> Iterator[Outcome]:
    """The documents of these files, the oldest first: a text without a date comes before those with one.

    They are read twice, and one at a time is in memory. What is refused comes first, with why files end early. Errors:
    OSError, ValueError.
    """
    places: list[tuple[str, int, Place]] = []
    for which, part in enumerate(parts):
        with part.path.open("rb") as file:
            documents = given.documents(part)
            for place in documents.places:
                found = built_at(file, place)
                if isinstance(found, RefusedDocumentError):
                    yield found
                elif len(places) == MOST_DATED:
                    raise UnreadableError(TOO_MANY)
                else:
                    places.append((str(given.moment(date(found)) or ""), which, place))
            if documents.fault:
                yield documents.fault
    places.sort(key=lambda one: one[0])
    with ExitStack() as stack:
        files = {which: stack.enter_context(parts[which].path.open("rb")) for _, which, _ in places}
        for _, which, place in places:
            yield built_at(files[which], place)
