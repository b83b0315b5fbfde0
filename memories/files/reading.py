"""What files of a person there are: lists of folders, matches of patterns and of texts, and single files.

All reads are of one `FileTree`: a person's files for one agent, or for requests that name none. Paths that are not
stored but seeded are among them.
"""

import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import merge
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db.models import F, Func, TextField, Value
from django.db.models.functions import Left, StrIndex, Substr

from memories import budgets
from memories.db import binary_rows
from memories.files import globs, paths, seeds, texts
from memories.models import Encoding, EndUser, MemoryFile, MemoryFileQuerySet, Tenant
from memories.models.memories.files import LONGEST_PATH

# A search ends when it has looked at so many characters of names for each one of its pattern: a second at worst.
MOST_STEPS = 200_000_000
MOST_MATCHES = 10_000
MOST_CHARACTERS = 2_000_000
# So many files are no more than a request may have.
_FEW = 8
# Files whose texts are read in one go.
_STEP = 200
_LISTED = ("path", "size", "moment", "version", "locked")
_MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"


class _MomentText(Func):
    """A moment as text."""

    template = "to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
    output_field = TextField()


class Entry(NamedTuple):
    """A file in a list, or a folder, whose path ends with a slash and which has no size and no time of its own.

    `modified_at` is text as JSON has it, in UTC with microseconds, so that the order of texts is that of moments.
    """

    path: str
    size: int
    modified_at: str | None
    version: int | None
    locked: bool = False

    @property
    def is_dir(self) -> bool:
        return self.version is None


_PATH, _MODIFIED = attrgetter("path"), attrgetter("modified_at")


class Match(NamedTuple):
    path: str
    line: int
    text: str


@dataclass(frozen=True)
class FoundFiles:
    """Files that match a pattern, the newest first; truncated if the search ended before it had seen all."""

    entries: Sequence[Entry]
    truncated: bool = False


@dataclass(frozen=True)
class Matches:
    lines: Sequence[Match]
    truncated: bool = False


@dataclass(frozen=True)
class FileTree:
    """The files of a person for one agent; `person` is None where nobody is known by that id.

    `given`: path → files of the hub that are shown among them, such as skills; a stored file takes the place of one.
    """

    tenant: Tenant
    person: EndUser | None
    agent_id: str
    now: datetime
    given: Mapping[str, MemoryFile] = field(default_factory=dict)

    @property
    def rows(self) -> MemoryFileQuerySet:
        """Stored files, also deleted ones."""
        if self.person is None:
            return MemoryFile.objects.none()
        return MemoryFile.objects.of(self.tenant, self.person).filter(agent_id=self.agent_id)

    @property
    def present(self) -> MemoryFileQuerySet:
        return self.rows.present(now=self.now)

    @property
    def lasting_texts(self) -> MemoryFileQuerySet:
        """Those of text, without scratch files, which belong to a conversation."""
        return self.present.filter(encoding=Encoding.UTF_8).exclude(path__startswith=paths.SCRATCH)

    def beginnings(
        self, ordered: MemoryFileQuerySet, columns: Sequence[str], *, most: int, characters: int
    ) -> list[tuple[Any, ...]]:
        """Of the first `most` files their columns, of which the first is pk, and the beginning of the text."""
        # The order first: the database would read every text to sort the rows.
        chosen = list(ordered.values_list("pk", flat=True)[:most])
        read = self.present.filter(pk__in=chosen).annotate(start=Left("content", characters))
        found = {row[0]: row for row in read.values_list(*columns, "start")} if chosen else {}
        return [found[pk] for pk in chosen if pk in found]

    def file(self, path: str) -> MemoryFile | None:
        """The file at this path, perhaps the seeded one, which is not saved and has version 0."""
        row = self.rows.filter(path=path).first() if path == seeds.SEEDED else self.present.filter(path=path).first()
        if row is None:
            return self.seeded() if path == seeds.SEEDED else self.given.get(path)
        return row if row.trashed_at is None else None

    def files(self, wanted: Sequence[str]) -> dict[str, MemoryFile]:
        """Those of these paths that are files."""
        found = {row.path: row for row in self.rows.filter(path__in=set(wanted))}
        if seeds.SEEDED in wanted and seeds.SEEDED not in found and (seeded := self.seeded()):
            found[seeds.SEEDED] = seeded
        found = {path: row for path, row in found.items() if is_present(row, self.now)}
        return found | {path: self.given[path] for path in wanted if path in self.given and path not in found}

    def contents(self, wanted: Sequence[str]) -> dict[str, MemoryFile]:
        """The same, out of the request's budget; a path counts as often as it is named. Errors: RequestTooCostly."""
        sizes = dict(self.rows.filter(path__in=set(wanted)).values_list("path", "size")) if len(wanted) > _FEW else {}
        budgets.spend(rows=len(wanted), size=sum(sizes.get(path, 0) for path in wanted))
        return self.files(wanted)

    def is_folder(self, path: str) -> bool:
        below = paths.folder(path)
        is_given = any(one.startswith(below) for one in self.given)
        return path == paths.ROOT or is_given or self.present.below(below).exists()

    def seeded(self) -> MemoryFile | None:
        """The first file as the tenant has it, whether or not somebody wrote it since."""
        text = seeds.seed_of(self.tenant)
        if not text:
            return None
        return MemoryFile(
            tenant=self.tenant,
            end_user=self.person,
            agent_id=self.agent_id,
            path=seeds.SEEDED,
            content=text,
            size=len(text.encode()),
            version=0,
            actor_kind="",
            trust="",
            created_at=self.tenant.created_at,
            updated_at=self.tenant.created_at,
        )

    def list_folder(self, path: str) -> list[Entry]:
        """Direct children in the order of their paths; empty where there is no such folder."""
        base = paths.folder(path)
        rows = self.present.below(base).order_by()
        # The database tells the folders apart: below them may be thousands of files.
        inner = rows.annotate(name=Substr("path", len(base) + 1)).annotate(slash=StrIndex("name", Value("/")))
        names = inner.filter(slash__gt=0).values_list(Left("name", F("slash") - 1), flat=True).distinct()
        folders = {f"{base}{name}/" for name in names}
        files = list(map(Entry._make, _listed(inner.filter(slash=0))))
        if seed := self._seed_below(base):
            name, slash, _ = seed.path[len(base) :].partition("/")
            folders |= {f"{base}{name}/"} if slash else set()
            files += [] if slash else [seed]
        for one in self._given_below(base):
            name, slash, _ = one.path[len(base) :].partition("/")
            folders |= {f"{base}{name}/"} if slash else set()
            files += [] if slash else [_entry_of(one)]
        return sorted([*files, *(Entry(name, 0, None, None) for name in folders)])

    def glob(self, pattern: str, *, path: str = paths.ROOT) -> FoundFiles:
        """Errors: globs.InvalidPattern."""
        matches = globs.compiled(pattern)
        base, is_file = self._scope(path)
        below = base + globs.literal_folder(pattern)
        rows = self.present.filter(path=path) if is_file else self.present.below(below)
        seed = self._seed_below(base if is_file else below)
        seed = None if is_file and path != seeds.SEEDED else seed
        # The database passes over most others faster than they are read.
        listed = _listed(rows.filter(path__endswith=end) if (end := globs.literal_end(pattern)) else rows)
        looked_at = _within(MOST_STEPS // len(pattern), listed)
        start = len(base)
        found = [Entry._make(row) for row in looked_at if matches(row[0][start:])]
        if seed and matches(_relative(seed.path, base)):
            found.append(seed)
        given = [one for one in self._given_below(below) if not is_file or one.path == path]
        found += [_entry_of(one) for one in given if matches(_relative(one.path, base))]
        # The newest first; of one moment, by path. Folders have no moment, and are not among them.
        found.sort(key=_PATH)
        found.sort(key=_MODIFIED, reverse=True)
        return FoundFiles(found, truncated=len(looked_at) < len(listed))

    def grep(self, pattern: str, *, path: str = paths.ROOT, glob: str = "", most: int | None = None) -> Matches:
        """Lines that contain the pattern as it is, by path; at most so many. Errors: globs.InvalidPattern."""
        matches = globs.compiled(glob) if glob else None
        limit = min(most if most is not None else MOST_MATCHES, MOST_MATCHES)
        base, _ = self._scope(path)
        found: list[Match] = []
        characters = 0
        is_wanted = (lambda name: matches(_relative(name, base))) if matches else None
        for name, text in self._texts(path, pattern, is_wanted):
            budgets.check_time()
            for number, line in texts.matching_lines(text, pattern):
                if len(found) >= limit or characters > MOST_CHARACTERS:
                    return Matches(found, truncated=True)
                found.append(Match(name, number, line))
                characters += len(line)
        return Matches(found)

    def _scope(self, path: str) -> tuple[str, bool]:
        """The folder that names are relative to, and whether the path is a file, which is then searched alone."""
        if not path.endswith("/") and self.file(path):
            return path[: path.rfind("/") + 1], True
        return paths.folder(path), False

    def _seed_below(self, base: str) -> Entry | None:
        """The first file, if it is below this folder and nobody wrote it."""
        # Not `present`: a deleted first file is not seeded again.
        has_seed = seeds.SEEDED.startswith(base) and not self.rows.filter(path=seeds.SEEDED).exists()
        seeded = self.seeded() if has_seed else None
        if seeded is None:
            return None
        return Entry(seeded.path, seeded.size, seeded.updated_at.astimezone(UTC).strftime(_MOMENT), 0)

    def _given_below(self, base: str) -> list[MemoryFile]:
        """The hub's files below this folder in whose place nobody wrote one."""
        below = [path for path in self.given if path.startswith(base)]
        stored = set(self.present.filter(path__in=below).values_list("path", flat=True)) if below else set()
        return [self.given[path] for path in sorted(below) if path not in stored]

    def _texts(self, path: str, pattern: str, is_wanted: Callable[[str], object] | None) -> Iterator[tuple[str, str]]:
        """Path and text of the text files in which the database finds the pattern, in the order of their paths."""
        base, is_file = self._scope(path)
        rows = self.present.filter(encoding=Encoding.UTF_8)
        rows = rows.filter(path=path) if is_file else rows.below(base)
        if pattern:
            rows = rows.annotate(place=StrIndex("content", Value(pattern))).filter(place__gt=0)
        found = self._texts_of_wanted(rows, is_wanted) if is_wanted else _texts_in_order(rows)
        seeded = self.file(seeds.SEEDED) if path == seeds.SEEDED or seeds.SEEDED.startswith(base) else None
        if seeded and seeded.version == 0 and not (is_file and path != seeded.path):
            seed = [(seeded.path, seeded.content)] if is_wanted is None or is_wanted(seeded.path) else []
            found = merge(found, seed)
        given = [one for one in self._given_below(base) if not is_file or one.path == path]
        own = sorted((one.path, one.content) for one in given if is_wanted is None or is_wanted(one.path))
        return merge(found, own) if own else found

    def _texts_of_wanted(
        self, rows: MemoryFileQuerySet, is_wanted: Callable[[str], object]
    ) -> Iterator[tuple[str, str]]:
        """The same of the files that a pattern names: without the texts of others."""
        names = [name for name in rows.order_by("path").values_list("path", flat=True) if is_wanted(name)]
        for start in range(0, len(names), _STEP):
            step = self.present.filter(path__in=names[start : start + _STEP], encoding=Encoding.UTF_8)
            yield from step.order_by("path").values_list("path", "content")


def _entry_of(file: MemoryFile) -> Entry:
    moment = file.updated_at.astimezone(UTC).strftime(_MOMENT)
    return Entry(file.path, file.size, moment, file.version, file.locked)


def _texts_in_order(rows: MemoryFileQuerySet) -> Iterator[tuple[str, str]]:
    """Path and text of these rows, so many at a time: who has enough matches reads no further. Django writes the
    statement once: that takes as long as to find what it asks for."""
    # Nobody can have asked for the same text.
    mark = uuid.uuid4().hex
    wanted = rows.order_by("path").filter(path__gt=mark).values_list("path", "content")[:_STEP]
    try:
        statement, given = wanted.query.sql_with_params()
    except EmptyResultSet:
        return
    at, after = given.index(mark), ""
    while found := binary_rows.fetched(statement, [*given[:at], after, *given[at + 1 :]]):
        yield from found
        after = found[-1][0]


def _listed(rows: MemoryFileQuerySet) -> list[Any]:
    """What an Entry is made of, in its order. The database writes the moment: Python takes longer for that than for
    all the rest."""
    wanted = rows.order_by().annotate(moment=_MomentText("updated_at")).values_list(*_LISTED)
    try:
        return binary_rows.fetched(*wanted.query.sql_with_params())
    except EmptyResultSet:
        return []


def _within(most: int, listed: Sequence[Any]) -> Sequence[Any]:
    """The first of these rows, whose paths have so many characters together."""
    if len(listed) * LONGEST_PATH <= most:
        return listed
    return listed[: bisect_right(list(accumulate(len(row[0]) for row in listed)), most)]


def is_present(row: MemoryFile, now: datetime) -> bool:
    """Whether agents find the file."""
    return row.trashed_at is None and (row.expires_at is None or row.expires_at > now)


def _relative(path: str, base: str) -> str:
    return path[len(base) :]
