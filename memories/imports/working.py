"""Uploaded files as work: a worker reads the file of an import under a lease, a slice at a time, and stores it.

The file lies in the database. A worker writes it to a folder of its own below the hub's home, reads it there and
deletes the folder; what a killed one leaves is swept. The row says how many records were taken. What was stored after
it said so last is found by its ids, so each is stored once, and counted once: what an import made is listed
(`ImportedRow`) in the transactions that made it. These renew the lease: once it is taken away, as by an erasure,
nothing more is stored.
"""

import errno
import logging
import re
import shutil
import sqlite3
import tempfile
import time
import uuid
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Count, F, Sum

from memories import audit
from memories.audit import Actor
from memories.capture import get_or_create
from memories.curation.imports import people, taking_back, verbs
from memories.curation.imports.verbs import ImportOptions
from memories.db import tenancy
from memories.db.sessions import own_session
from memories.db.statement_timeouts import unbounded
from memories.exceptions import Erased, LeaseLost, NotFound, PersonRestricted
from memories.imports import sources
from memories.imports.findings import Finding, UnreadableError, together, unknown_source
from memories.imports.namespaces import USER
from memories.imports.places import Given, opened
from memories.imports.previews import Preview
from memories.imports.raw_documents import RefusedDocumentError
from memories.imports.runs import Run, UnknownSourceError, UnsaidPersonError
from memories.imports.sources import SOURCES
from memories.imports.unpacking import text_as_utf8
from memories.kinds import PLAIN
from memories.models import ActorKind, EndUser, Import, ImportedRow, ImportSource
from memories.models.ids import parse_uuid
from memories.queue import leases
from memories.queue.leases import Lease

FOLDER = "imports"
# A slice is at least so long, and longer where the file takes long to be laid out: a fifth of the time goes there.
SLICE_SECONDS, TIMES = 20.0, 4.0
# The row says so often how far it is.
SAID_SECONDS = 1.0
PAUSE = timedelta(seconds=10)
# An archive may hold so many times what an upload may.
UNPACKED = 4
UNKNOWN, UNREADABLE, USER_NEEDED = "unknown_source", "unreadable", "user_needed"
NAMESPACE_NEEDED = "namespace_needed"
DISK = "disk"
# Faults of this host, and not of the file.
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
GOT_ON: Mapping[str, Any] = {"attempts": 0, "failure": ""}
_CODE = re.compile(r"[a-z][a-z_]{0,39}")
State, Kind = Import.State, ImportedRow.Kind
# What is counted by the rows that an import made, and by which kinds of them; messages are counted by their numbers.
_BY_ROWS: Mapping[str, tuple[ImportedRow.Kind, ...]] = {
    "facts": (Kind.FACT,), "files": (Kind.FILE,), "items": (Kind.ITEM,),
}  # fmt: skip
_BY_ROWS_OF_EXPORTS: Mapping[str, tuple[ImportedRow.Kind, ...]] = {
    **_BY_ROWS,
    "sections": (Kind.PROFILE,), "episodes": (Kind.EPISODE,), "diary": (Kind.DIARY,), "relations": (Kind.TRIPLE,),
    "in_groups": (Kind.SAID,),
}  # fmt: skip
# Lists of a hub's own export, by the outcome that counts their rows.
_LISTS: Mapping[str, Sequence[str]] = {
    "conversations": ["sessions"], "messages": ["turns"], "facts": ["facts"], "sections": ["profile_sections"],
    "files": ["files"], "episodes": ["episodes"], "diary": [kind.plural for kind in PLAIN],
    "relations": ["graph_triples"], "in_groups": ["said_in_groups"],
}  # fmt: skip

logger = logging.getLogger(__name__)


class ImportStoppedError(Exception):
    """Somebody paused or undid the import, or another worker has it."""


class _PiecesGoneError(Exception):
    """Pieces of the file are missing."""


@dataclass(kw_only=True)
class _Work(Lease[Import]):
    """An import that is ours. `until`: when its slice is over, by the monotonic clock."""

    until: float = 0.0

    @property
    def options(self) -> ImportOptions:
        return ImportOptions(**self.row.options)

    @property
    def is_check(self) -> bool:
        return self.row.state == State.CHECKING


def run_slice(*, now: datetime, seconds: float = SLICE_SECONDS) -> bool:
    """Carry on imports that nobody holds, the oldest first, for a slice; True when more is left to do now."""
    until = time.monotonic() + seconds
    for import_id in Import.objects.to_run().free().order_by("created_at").values_list("pk", flat=True):
        work = claim(import_id)
        if work and (not run(work, now=now, seconds=seconds) or time.monotonic() > until):
            return True
    return False


@transaction.atomic
def claim(import_id: uuid.UUID) -> _Work | None:
    """Lease the import; None when it has nothing to do, or another worker has it."""
    row = leases.lock(Import.objects.to_run().free().select_related("tenant"), import_id)
    if row is None:
        return None
    token = leases.take(row, give_up=_give_up)
    return _Work(row=row, token=token) if token else None


def run(work: _Work, *, now: datetime, seconds: float = SLICE_SECONDS) -> bool:
    """Carry on the import; False when the slice is over, and the rest is left to the next claim.

    A worker that lost its lease stops silently. Errors: DatabaseError, OSError, which were noted.
    """
    began = time.monotonic()
    try:
        with own_session(), unbounded(), leases.keep_alive(work), tenancy.of_tenant(work.row.tenant_id):
            if work.row.state == State.UNDOING:
                return _undo(work, now=now, until=began + seconds)
            with _laid_out(work.row) as path:
                work.until = time.monotonic() + max(seconds, TIMES * (time.monotonic() - began))
                return _import(work, path, now=now)
    except (LeaseLost, ImportStoppedError):
        return True
    except _PiecesGoneError:
        # An erasure took some, of a file that came after it had ended what waited; an undo took the lease, too.
        with suppress(LeaseLost):
            _fail(work, "erased", now=now)
        return True
    except (DatabaseError, InterfaceError):
        _retry(work, "database")
        raise
    except OSError:
        _retry(work, DISK)
        raise


def sweep_folders() -> int:
    """Delete what workers of this host that were killed left on the disk; how many folders."""
    folder = Path(settings.HOME) / FOLDER
    found = [one for one in folder.iterdir() if one.is_dir()] if folder.is_dir() else []
    held = Import.objects.filter(lease_token__isnull=False)
    ids = {pk for pk, token in held.values_list("pk", "lease_token") if token and not leases.is_orphaned(token)}
    left = [one for one in found if parse_uuid(one.name[:36]) not in ids]
    for one in left:
        shutil.rmtree(one, ignore_errors=True)
    return len(left)


def _give_up(row: Import) -> None:
    failed = {"state": State.FAILED, "failure": row.failure or leases.WORKER_LOST, "attempts": 0}
    leases.revoke(Import.objects.filter(pk=row.pk), **failed, finished_at=row.clock)


def _retry(work: _Work, failure: str) -> None:
    try:
        leases.release(work, pause=PAUSE * max(1, work.row.attempts), failure=failure)
    except (LeaseLost, DatabaseError, InterfaceError) as error:
        # The lease ends by itself, and the attempt was counted before it began.
        logger.warning("Import %s: its failure could not be noted: %s", work.row.pk, type(error).__name__)


@contextmanager
def _laid_out(row: Import) -> Iterator[Path]:
    """The file on the disk, in a folder of its own that goes with the block. Its name is not used."""
    home = Path(settings.HOME) / FOLDER
    home.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{row.pk}.", dir=home) as folder:
        path = Path(folder) / "file"
        with path.open("wb") as file:
            file.writelines(verbs.pieces_of(row))
        if path.stat().st_size != row.size:
            raise _PiecesGoneError
        named = path.with_suffix(_suffix(path, str(row.options.get("name", ""))))
        path.rename(named)
        yield named


def _suffix(path: Path, name: str) -> str:
    """What readers know a file by: of its name, else of how it begins."""
    suffix = Path(name).suffix.lower()
    if zipfile.is_zipfile(path):
        return ".zip"
    if suffix in verbs.SUFFIXES and suffix != ".zip":
        return suffix
    with path.open("rb") as file:
        head = text_as_utf8(file.read(4096)).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith((b"{", b"[")):
        return ".json"
    return ".csv" if re.search(b"[,;\t]", head.partition(b"\n")[0]) and b"\0" not in head else ""


def _import(work: _Work, path: Path, *, now: datetime) -> bool:
    """Take records until the slice is over; False when some are left. Errors: ImportStoppedError, LeaseLost."""
    options = work.options
    given = {
        "namespace": options.namespace,
        "to_folder": options.folder,
        "agent": options.agent_id or None,
        "user": options.user_id or (f"import-{work.row.pk}" if work.is_check else ""),
        "zone": ZoneInfo(options.zone) if options.zone else None,
        # The same in each slice, so that the records come in the same order.
        "now": work.row.created_at,
    }
    most = UNPACKED * verbs.most_bytes()
    name = Path(options.name.replace("\\", "/")).name
    try:
        with opened([str(path)], name=name, within=path.parent, most_unpacked=most, **given) as found:
            source = options.source if options.source != verbs.AUTO else sources.detected(found)
            if failure := _cannot_begin(source, options, is_check=work.is_check):
                why = [unknown_source(source, "", sources.found_instead(found))] if failure == UNKNOWN else []
                _fail(work, failure, now=now, source=source, keep_file=failure == USER_NEEDED, findings=why)
                return True
            leases.renew(work, source=source)
            # Nobody stands in where the run can begin: it leaves out what names nobody, too.
            is_ready = not _cannot_begin(source, options, is_check=False)
            read = replace(found, user=options.user_id) if is_ready else found
            with get_or_create.noting_created() as created:
                return _Importing(work, read, source, created).carry_on(now=now)
    except UnsaidPersonError:
        _fail(work, NAMESPACE_NEEDED, now=now)
    except UnknownSourceError as error:
        _fail(work, UNKNOWN, now=now, findings=[error.finding])
    except (Erased, PersonRestricted) as error:
        _fail(work, error.code, now=now)
    except NotFound:
        # The person of a hub's own export, while their rows were stored.
        _fail(work, Erased.code, now=now)
    except (ValueError, RecursionError, OSError, sqlite3.Error, EOFError) as error:
        if isinstance(error, OSError) and error.errno in _OF_DISK:
            raise
        logger.info("Import %s cannot be read: %s", work.row.pk, type(error).__name__)
        why = [{"code": error.code}] if isinstance(error, UnreadableError) else []
        _fail(work, UNREADABLE, now=now, findings=why)
    return True


def _cannot_begin(source: str, options: ImportOptions, *, is_check: bool) -> str:
    if source not in ImportSource.values:
        return UNKNOWN
    names = SOURCES[source].names_people or options.items or USER in options.namespace
    return "" if options.user_id or options.authors or names or is_check else USER_NEEDED


class _Importing:
    """The run of one slice, and what it and those before it counted."""

    def __init__(self, work: _Work, given: Given, source: str, created: list[uuid.UUID]) -> None:
        """`created`: ids of people, as they are created."""
        self._work, self._row, self._created = work, work.row, created
        self._codes = Counter[str]()
        self._preview = Preview(work.options)
        self._run = Run(
            work.row.tenant,
            given,
            source,
            as_items=work.options.items,
            dry_run=work.is_check,
            is_trusted=work.options.vouched,
            tell=lambda line: self._codes.update([_code_of(line)]),
            note=self._note,
            read_as=self._preview.see if work.is_check else self._preview.mapped,
        )

    def carry_on(self, *, now: datetime) -> bool:
        """False when some records are left. Errors: those of Run.steps(), ImportStoppedError, LeaseLost."""
        # One that is taken from the start each time goes to its end: a slice of it might never get further.
        is_whole = self._work.is_check or self._run.is_from_the_start
        after = 0 if is_whole else self._row.position
        taken, said = after, time.monotonic()
        for taken in self._run.steps(after=after):
            if time.monotonic() - said > SAID_SECONDS:
                self._work.check()
                self._say(taken)
                said = time.monotonic()
            if not is_whole and time.monotonic() > self._work.until:
                self._say(taken)
                leases.release(self._work, attempts=0, kept_until=now + verbs.KEPT)
                return False
        self._say(taken)
        self._end(now=now)
        return True

    def _note(self, rows: Sequence[ImportedRow]) -> None:
        """In each transaction that stores something, also where nothing of it is new. Errors: ImportStoppedError."""
        # Of transactions that were rolled back nobody is there.
        new = EndUser.objects.filter(pk__in=self._created) if self._created else ()
        made = [*rows, *map(people.person_row, new)]
        self._created.clear()
        for one in made:
            one.made_by_id = self._row.pk
        ImportedRow.objects.bulk_create(made)
        try:
            leases.renew(self._work)
        except LeaseLost as error:
            # Importers take other errors of the hub for those of a record.
            raise ImportStoppedError from error

    def _say(self, taken: int) -> None:
        """Store how far it is, once nothing waits to be stored with others. Errors: LeaseLost."""
        self._run.flush()
        left_out, refused = self._run.counted()
        refused = sum((Counter({_code_of(name): count}) for name, count in refused.items()), Counter(self._codes))
        is_anew = self._work.is_check or self._run.is_from_the_start
        found = {
            "counts": Counter({} if is_anew else self._row.counts) + _outcomes(self._run),
            "left_out": Counter({} if is_anew else self._row.left_out) + left_out,
            "refused": Counter({} if is_anew else self._row.refused) + refused,
            "findings": together([] if is_anew else self._row.findings, self._run.findings),
        }
        expected = self._run.expected_records(taken)
        # A dry run begins anew each time: it has got on only when it ends. What is taken from the start has got on when
        # it is where no worker was before.
        before = self._row.position if self._run.is_from_the_start else -1
        got_on: Mapping[str, Any] = GOT_ON if not self._work.is_check and taken > before else {}
        leases.renew(self._work, position=max(taken, before), expected=expected, **got_on, **found)

    def _end(self, *, now: datetime) -> None:
        """Errors: LeaseLost."""
        with transaction.atomic():
            row = leases.fence(self._work)
            if row.state == State.CHECKING:
                seen = self._preview.as_json()
                kept: dict[str, Any] = {"preview": seen, "position": 0, "kept_until": now + verbs.KEPT}
                leases.release(self._work, state=State.CHECKED, **kept, **GOT_ON)
                return
            counts = counts_of(row)
            leases.release(self._work, state=State.DONE, counts=counts, finished_at=now)
            Import.objects.filter(pk=row.pk).drop_files()
            _record("complete", row, counts, now=now)


def counts_of(row: Import) -> dict[str, int]:
    """The outcomes of an import as its rows tell them: a worker that was killed had not counted the last."""
    counts = Counter(row.counts)
    made = Counter(dict(row.rows.values_list("kind").annotate(number=Count("id"))))
    turns = row.rows.filter(kind=Kind.TURNS).aggregate(number=Sum(F("last") - F("first") + 1))["number"] or 0
    kinds = _BY_ROWS_OF_EXPORTS if row.source == ImportSource.MEMORY_HUB else _BY_ROWS
    told = {"messages": turns, **{name: sum(made[kind] for kind in some) for name, some in kinds.items()}}
    for name, number in told.items():
        # They were met again, as what is there already.
        counts["duplicates"] -= number - counts[name]
        counts[name] = number
    return {name: number for name, number in counts.items() if number > 0}


def _outcomes(run: Run) -> Counter[str]:
    said, facts, files, items = (one.done for one in (run.conversations, run.facts, run.files, run.items))
    rows = Counter({name: sum(run.rows.stored[one] for one in lists) for name, lists in _LISTS.items()})
    rows["conversations"] += run.rows.there["sessions"]
    rows["duplicates"] = sum(
        run.rows.there[one] for name, lists in _LISTS.items() for one in lists if name != "conversations"
    )
    return rows + Counter(
        {
            "conversations": said["conversations"],
            "messages": said["accepted"],
            "left": said["left"],
            "facts": facts["facts"],
            "sections": facts["sections"],
            "waiting": facts["waiting"] + run.rows.waiting,
            "files": files["stored"],
            "items": items["stored"],
            "duplicates": sum(one["duplicates"] for one in (said, facts, files, items)),
            "secrets": said["redactions"] + files["redactions"],
        }
    )


def _code_of(told: str) -> str:
    """The code of the first fault. Its place is in words of the file, and these may look like anything."""
    code = RefusedDocumentError(told.partition(" – ")[0]).code
    return code if _CODE.fullmatch(code) else "invalid"


def _undo(work: _Work, *, now: datetime, until: float) -> bool:
    for _step in taking_back.steps(work, now=now):
        if time.monotonic() > until:
            leases.release(work, attempts=0)
            return False
    with transaction.atomic():
        row = leases.fence(work)
        row.rows.all().delete()
        leases.release(work, state=State.UNDONE, undone_at=now, failure="", attempts=0)
        undone = {name: count for name, count in row.counts.items() if name.endswith(("undone", "kept"))}
        _record("undo", row, undone, now=now)
    return True


def _fail(
    work: _Work,
    failure: str,
    *,
    now: datetime,
    source: str = "",
    keep_file: bool = False,
    findings: Sequence[Finding] = (),
) -> None:
    """End the import; what it stored stays, and can be undone. Errors: LeaseLost."""
    with transaction.atomic():
        row = leases.fence(work)
        named: dict[str, Any] = {"source": source} if source else {}
        named |= {"findings": together(row.findings, findings)} if findings else {}
        counts = counts_of(row) if row.state == State.RUNNING else {}
        leases.release(work, state=State.FAILED, failure=failure, finished_at=now, attempts=0, counts=counts, **named)
        if not keep_file:
            Import.objects.filter(pk=row.pk).drop_files()
        _record("fail", row, {failure: 1}, now=now)


def _record(verb: str, row: Import, counts: dict[str, int], *, now: datetime) -> None:
    actor = Actor(kind=ActorKind.RUN, id=str(row.pk))
    audit.record(actor=actor, verb=verb, target=row, object_id=row.pk, tenant=row.tenant, now=now, counts=counts)
