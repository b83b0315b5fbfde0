"""What files of a person there are: lists of folders, matches of patterns and of texts, and single files.

All reads are of one `Shelf`: a person's files for one agent, or for requests that name none. Paths that are not stored
but seeded are among them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import F, Value
from django.db.models.functions import Left, StrIndex, Substr

from memories.files import globs, paths, seeds, texts
from memories.models import Encoding, EndUser, MemoryFile, MemoryFileQuerySet, Tenant

# A search ends when it has looked at so many characters of names for each one of its pattern: a second at worst.
MOST_STEPS = 200_000_000
MOST_MATCHES = 10_000
MOST_CHARACTERS = 2_000_000
# Files whose texts are read in one go.
_STEP = 200
# Matches that are looked up by their paths.
_FEW = 500
# The columns of an Entry; whether it is a folder comes after its path.
_SHOWN = ("path", "size", "updated_at", "version", "locked")


class Entry(NamedTuple):
    """A file in a list, or a folder, whose path ends with a slash and which has no size and no time of its own."""

    path: str
    is_dir: bool
    size: int
    modified_at: datetime | None
    version: int | None = None
    locked: bool = False


class Match(NamedTuple):
    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Found:
    """Files that match a pattern, the newest first; truncated if the search ended before it had seen all."""

    entries: Sequence[Entry]
    truncated: bool = False


@dataclass(frozen=True)
class Matches:
    lines: Sequence[Match]
    truncated: bool = False


@dataclass(frozen=True)
class Shelf:
    """The files of a person for one agent; `person` is None where nobody is known by that id."""

    tenant: Tenant
    person: EndUser | None
    agent_id: str
    now: datetime

    @property
    def rows(self) -> MemoryFileQuerySet:
        """Stored files, also deleted ones."""
        if self.person is None:
            return MemoryFile.objects.none()
        return MemoryFile.objects.of(self.tenant, self.person).filter(agent_id=self.agent_id)

    @property
    def present(self) -> MemoryFileQuerySet:
        return self.rows.present(now=self.now)

    def file(self, path: str) -> MemoryFile | None:
        """The file at this path, perhaps the seeded one, which is not saved and has version 0."""
        row = self.rows.filter(path=path).first() if path == seeds.SEEDED else self.present.filter(path=path).first()
        if row is None:
            return self.seeded() if path == seeds.SEEDED else None
        return row if row.trashed_at is None else None

    def files(self, wanted: Sequence[str]) -> dict[str, MemoryFile]:
        """Those of these paths that are files."""
        found = {row.path: row for row in self.rows.filter(path__in=set(wanted))}
        if seeds.SEEDED in wanted and seeds.SEEDED not in found and (seeded := self.seeded()):
            found[seeds.SEEDED] = seeded
        return {path: row for path, row in found.items() if _is_present(row, self.now)}

    def is_folder(self, path: str) -> bool:
        return path == paths.ROOT or self.present.below(paths.folder(path)).exists()

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
        files = [Entry(name, False, *rest) for name, *rest in inner.filter(slash=0).values_list(*_SHOWN)]
        if seed := self._seed_below(base):
            name, slash, _ = seed.path[len(base) :].partition("/")
            folders |= {f"{base}{name}/"} if slash else set()
            files += [] if slash else [seed]
        return sorted([*files, *(Entry(name, True, 0, None) for name in folders)])

    def glob(self, pattern: str, *, path: str = paths.ROOT) -> Found:
        """Errors: globs.InvalidPattern."""
        matches = globs.compiled(pattern)
        base, is_file = self._scope(path)
        below = base + globs.literal_folder(pattern)
        rows = self.present.filter(path=path) if is_file else self.present.below(below)
        seed = self._seed_below(base if is_file else below)
        seed = None if is_file and path != seeds.SEEDED else seed
        found: list[str] = []
        steps, is_truncated = 0, False
        for name in (*rows.order_by().values_list("path", flat=True), *([seed.path] if seed else [])):
            steps += len(name) * len(pattern)
            if is_truncated := steps > MOST_STEPS:
                break
            if matches(_relative(name, base)):
                found.append(name)
        return Found(_newest_first(self._completed(rows, found, seed)), is_truncated)

    def grep(self, pattern: str, *, path: str = paths.ROOT, glob: str = "", most: int | None = None) -> Matches:
        """Lines that contain the pattern as it is, by path; at most so many. Errors: globs.InvalidPattern."""
        matches = globs.compiled(glob) if glob else None
        limit = min(most if most is not None else MOST_MATCHES, MOST_MATCHES)
        base, _ = self._scope(path)
        found: list[Match] = []
        characters = 0
        for name, text in self._texts(path, pattern, lambda name: matches is None or matches(_relative(name, base))):
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
        return Entry(seeded.path, False, seeded.size, seeded.updated_at, 0) if seeded else None

    def _completed(self, rows: MemoryFileQuerySet, found: Sequence[str], seed: Entry | None) -> list[Entry]:
        """The files of these paths, which are among the rows, or the first one. What is gone meanwhile is left out."""
        # Many paths would be sent back to the database: then it is cheaper to read all rows.
        few = rows.filter(path__in=found) if len(found) <= _FEW else rows
        wanted = set(found)
        entries = [Entry(name, False, *rest) for name, *rest in few.order_by().values_list(*_SHOWN) if name in wanted]
        return [*entries, seed] if seed and seed.path in wanted else entries

    def _texts(self, path: str, pattern: str, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """Path and text of the text files in which the database finds the pattern, in the order of their paths."""
        base, is_file = self._scope(path)
        rows = self.present.filter(encoding=Encoding.UTF_8)
        rows = rows.filter(path=path) if is_file else rows.below(base)
        if pattern:
            rows = rows.annotate(place=StrIndex("content", Value(pattern))).filter(place__gt=0)
        names = [name for name in rows.order_by("path").values_list("path", flat=True) if is_wanted(name)]
        seeded = self.file(seeds.SEEDED) if path == seeds.SEEDED or seeds.SEEDED.startswith(base) else None
        if seeded and seeded.version == 0 and is_wanted(seeded.path) and not (is_file and path != seeded.path):
            names = sorted([*names, seeded.path])
        for start in range(0, len(names), _STEP):
            step = names[start : start + _STEP]
            found = dict(self.present.filter(path__in=step).values_list("path", "content"))
            if seeded:
                found.setdefault(seeded.path, seeded.content)
            yield from ((name, found[name]) for name in step if name in found)


def _is_present(row: MemoryFile, now: datetime) -> bool:
    return row.trashed_at is None and (row.expires_at is None or row.expires_at > now)


def _relative(path: str, base: str) -> str:
    return path[len(base) :]


def _newest_first(entries: list[Entry]) -> list[Entry]:
    """Of one moment, by path. Folders have no moment, and are not among them."""
    entries.sort(key=lambda entry: entry.path)
    return sorted(entries, key=lambda entry: entry.modified_at.timestamp() if entry.modified_at else 0, reverse=True)
