"""Files with the turns of heavy people: one for a person, written once for all processes of a host, which map it.

A file is the arrays of TurnRows, one after the other, behind a head that says whose they are and where each stands.
It is written as a draft under a lock of the host, and gets its name when it is whole and on the disk. So a reader sees
all of it or nothing, and what a killed process leaves is a draft, which the next one deletes. Turns that come later are
kept by each process beside it, until a new file takes its place.

Nothing depends on a file: one that is lost, cut, of another hub or out of date is made again from rows. On a full disk
the arrays stay in the memory of the process.
"""

import json
import mmap
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from memories.db import binary_rows, tenancy
from memories.exceptions import HubBusy
from memories.models import EmbeddingSpace, EndUser
from memories.retrieval.turn_rows import PLAIN, TurnRows
from memories.scoring.bits import Bits
from memories.scoring.dense import Rows
from memories.scoring.levels import Levels
from memories.scoring.lexical import Postings
from memoryhub.embedded_postgres import locks

FOLDER = "indexes"
# The first bytes of a file. Raise the number with every change of the arrays, or of what they mean.
MAGIC = b"MHTURNS5"
# Those of a draft whose turns are read from the database.
DRAFT_MAGIC = b"MHDRAFT1"
# Room for the head; the arrays begin at multiples of the second number.
HEAD, ALIGNED = 4_096, 64
# A person of so many turns has a file. The arrays of fewer take some 10 MiB in each process, and a tenth of a second.
FILE_FROM = 8_192
# With so many turns it has the levels of the vectors, too, and a search reads few of the vectors themselves; with so
# many their signs, and a search whose question resembles something reads few of the levels.
LEVELS_FROM, SIGNS_FROM = 16_384, 262_144
# A file that nobody used for so long goes; a used one is marked once a minute.
UNUSED_SECONDS, MARKED_SECONDS = 86_400.0, 60.0
# So long the next one goes on with a draft that a killed process left.
RESUMED_SECONDS = 900.0
# A web process sweeps so often; a worker twice a minute.
SWEPT_SECONDS = 600.0
# Requests of one process that make a file or wait for another process that does.
BUILDERS = 2
_LOCK, _SUFFIX, _DRAFT = "lock", ".turns", ".draft"
_POLL_SECONDS = 0.05
POSTINGS = ("ids", "starts", "units", "counts", "lengths")
VECTORS, LEVELS = ("raw", "codes", "squares", "sums"), ("numbers", "steps", "closeness", "means", "moved")
_builders = threading.BoundedSemaphore(BUILDERS)
_marked: dict[Path, float] = {}
_swept_at = 0.0


class Progress(NamedTuple):
    """How far a session was when its turns were written."""

    turn_count: int
    embedded: int
    deleted: int
    redactions: int


class KeptTurns(NamedTuple):
    """What a file holds; the arrays are those of the mapped file."""

    path: Path
    rows: TurnRows
    progress: list[Progress]


def folder() -> Path:
    return Path(settings.HOME) / FOLDER


def is_heavy(turns: int) -> bool:
    """Whether a person of so many turns has a file."""
    return turns >= FILE_FROM and most_bytes() > 0


def opened(person: EndUser, space: EmbeddingSpace | None) -> KeptTurns | None:
    """The person's file in that space, if there is one that this version reads, and whose turns are still there."""
    path = path_of(person, space)
    try:
        kept = mapped(path, head_of(person, space))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if kept is None or not last_turns_stand(person, kept.rows):
        return None
    used(path)
    return kept


def exists(person: EndUser, space: EmbeddingSpace | None) -> bool:
    """Whether there is a file of that name, which may be out of date."""
    return path_of(person, space).exists()


def used(path: Path) -> None:
    """Mark a file as used; the least recently used goes first."""
    now = time.monotonic()
    if now - _marked.get(path, -MARKED_SECONDS) >= MARKED_SECONDS:
        _marked[path] = now
        with suppress(OSError):
            os.utime(path)


@contextmanager
def building(*, patience: float | None) -> Iterator[None]:
    """Lets one process of the host at a time make a file. HubBusy for whoever would wait longer than `patience`
    seconds (None: for as long as it takes), and for a request that finds enough others of its process here."""
    if not _builders.acquire(blocking=patience is None):
        raise HubBusy
    try:
        with _host_lock(patience):
            yield
    finally:
        _builders.release()


@contextmanager
def _host_lock(patience: float | None) -> Iterator[None]:
    try:
        folder().mkdir(mode=0o700, exist_ok=True)
        descriptor = locks.open_lock(folder() / _LOCK)
    except OSError:
        # A disk that is full or not writable: the processes do without files, and without this lock.
        yield
        return
    try:
        until = None if patience is None else time.monotonic() + patience
        while not locks.try_lock(descriptor):
            if until is not None and time.monotonic() >= until:
                raise HubBusy
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def sweep() -> None:
    """Delete the files of who was erased or merged, of whose turns some were deleted or redacted, those that nobody
    uses, and drafts of killed processes; and the least recently used until the others fit."""
    if not folder().is_dir():
        return
    _sweep(_files(), UNUSED_SECONDS, MAGIC)
    with suppress(OSError), _free_lock() as is_free:
        # Otherwise a draft is somebody's.
        if is_free:
            _sweep(list(folder().glob(f"*{_DRAFT}.*")), RESUMED_SECONDS, DRAFT_MAGIC)
    evict()


def sweep_now_and_then() -> None:
    """For a host whose worker does not: a host may have web servers alone."""
    global _swept_at  # noqa: PLW0603
    now = time.monotonic()
    if now - _swept_at > SWEPT_SECONDS:
        _swept_at = now
        sweep()


def clear() -> None:
    """Delete all files: the database is another one from now on."""
    for path in folder().glob(f"*{_SUFFIX}*"):
        path.unlink(missing_ok=True)


def _sweep(paths: Sequence[Path], seconds: float, magic: bytes) -> None:
    for path in paths:
        with suppress(OSError), tenancy.everything():
            if time.time() - path.stat().st_mtime > seconds or not _may_stay(path, magic):
                path.unlink(missing_ok=True)


@contextmanager
def _free_lock() -> Iterator[bool]:
    """Whether nobody makes a file, and nobody begins to in here."""
    descriptor = locks.open_lock(folder() / _LOCK)
    try:
        yield locks.try_lock(descriptor)
    finally:
        os.close(descriptor)


def _may_stay(path: Path, magic: bytes) -> bool:
    try:
        head, sessions, progress = states_of(path, magic)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    whose = {"tenant": head["tenant"], "pk": head["person"], "generation": head["generation"]}
    person = EndUser.objects.filter(**whose).first()
    if person is None:
        return False
    statement = """
        SELECT count(*) FROM memories_session
        JOIN unnest(%s::uuid[], %s::int[], %s::int[]) AS kept (id, deleted, redacted) USING (id)
        WHERE tenant_id = %s AND end_user_id = %s AND deleted_number = deleted AND redactions = redacted"""
    states = [sessions, [one.deleted for one in progress], [one.redactions for one in progress]]
    [[unchanged]] = binary_rows.fetched(statement, [*states, person.tenant_id, person.pk])
    return bool(unchanged == len(progress))


def states_of(path: Path, magic: bytes) -> tuple[dict[str, Any], list[uuid.UUID], list[Progress]]:
    """The head of a file or draft, and how far its sessions are. Errors: OSError, ValueError, KeyError, TypeError for
    one that is damaged."""
    with path.open("rb") as file:
        head = _head(file.read(HEAD), magic)
        sessions, progress = (_section(file, *head["sections"][name]) for name in ("sessions", "progress"))
    return head, _uuids(sessions), _progress(progress)


def _section(file: BinaryIO, kind: str, shape: Sequence[int], at: int) -> NDArray[Any]:
    file.seek(at)
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    return np.frombuffer(file.read(size), np.dtype(kind)).reshape(shape)


def _uuids(packed: NDArray[np.uint8]) -> list[uuid.UUID]:
    return [uuid.UUID(bytes=one.tobytes()) for one in packed]


def _progress(packed: NDArray[Any]) -> list[Progress]:
    return [Progress(*one) for one in packed.tolist()]


def evict(keep: Path | None = None) -> None:
    """Delete the least recently used until the others fit."""
    found = []
    for path in _files():
        with suppress(OSError):
            state = path.stat()
            found.append((path != keep, -state.st_mtime, state.st_size, path))
    total = 0
    for _, _, size, path in sorted(found):
        total += size
        if total > most_bytes():
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _files() -> list[Path]:
    return [path for path in folder().glob(f"*{_SUFFIX}") if path.is_file()]


def path_of(person: EndUser, space: EmbeddingSpace | None) -> Path:
    """Its name begins with the id of the person: so an erasure finds it."""
    return folder() / f"{person.pk}.{space.pk if space else 0}{_SUFFIX}"


def draft_of(path: Path, name: str) -> Path:
    """Where a draft of a file is."""
    return path.with_name(f"{path.name}{_DRAFT}.{name}")


def head_of(person: EndUser, space: EmbeddingSpace | None) -> dict[str, Any]:
    """What must be in the head of a file that is read."""
    return {
        "tenant": str(person.tenant_id),
        "person": str(person.pk),
        "generation": person.generation,
        "space": [space.pk, space.model, space.dimensions] if space else None,
    }


def _head(read: bytes, magic: bytes = MAGIC) -> dict[str, Any]:
    if not read.startswith(magic):
        raise ValueError("Not a file of turns, or one of another version")
    found: dict[str, Any] = json.loads(read[len(magic) :])
    return found


def mapped(path: Path, wanted: dict[str, Any]) -> KeptTurns | None:
    """None for a file of another state. Errors: OSError, ValueError, KeyError, TypeError for one that is damaged."""
    with path.open("rb") as file:
        room = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    head = _head(room[:HEAD])
    if any(head[name] != value for name, value in wanted.items()) or head["size"] > len(room):
        return None
    arrays = {
        name: np.frombuffer(room, np.dtype(kind), int(np.prod(shape)), at).reshape(shape)
        for name, (kind, shape, at) in head["sections"].items()
    }
    vectors, let_go = None, None
    if head["space"]:
        of_rows: dict[str, Any] = {name: arrays[f"vectors.{name}"] for name in VECTORS}
        vectors = Rows(**of_rows)
    if vectors is not None and "levels.numbers" in arrays:
        vectors = replace(vectors, levels=Levels(*(arrays[f"levels.{name}"] for name in LEVELS)))
        if "signs.planes" in arrays:
            vectors = replace(vectors, bits=Bits(arrays["signs.planes"], *arrays["signs.noise"].tolist()))
        let_go = partial(_let_go, room, vectors.raw.nbytes)
    rows = TurnRows(
        sessions=_uuids(arrays["sessions"]),
        postings=Postings(*(arrays[f"postings.{name}"] for name in POSTINGS)),
        vectors=vectors,
        mapped=True,
        let_go=let_go,
        **{name: arrays[name] for name in PLAIN},
    )
    return KeptTurns(path, rows, _progress(arrays["progress"]))


def _let_go(room: mmap.mmap, size: int) -> None:
    """Unmap the vectors: the system maps sixteen pages around each that is looked at, and those of few questions are as
    many as all. It keeps them as long as it has room, but they do not count as memory of the process any more."""
    if hasattr(mmap, "MADV_DONTNEED"):
        room.madvise(mmap.MADV_DONTNEED, 0, (HEAD + size) // mmap.PAGESIZE * mmap.PAGESIZE)


def last_turns_stand(person: EndUser, rows: TurnRows) -> bool:
    """Whether the last indexed turn of each session is there under its id: then those before it are, too. Of a database
    that was restored or exchanged, turns have the same numbers and other ids."""
    if not len(rows):
        return False
    last = np.append(np.flatnonzero(rows.session_of[1:] != rows.session_of[:-1]), len(rows) - 1)
    ids = _array(one.tobytes().hex() for one in rows.ids[last])
    sessions = _array(rows.sessions[at].hex for at in rows.session_of[last].tolist())
    # Each is looked up: of 20,000 a join would read the index of all turns of the hub.
    statement = """
        SELECT count(*) FROM unnest(%s::uuid[], %s::uuid[], %s::int[]) AS kept (id, session_id, number)
        CROSS JOIN LATERAL (
            SELECT FROM memories_turn turn WHERE turn.id = kept.id AND turn.session_id = kept.session_id
                AND turn.number = kept.number AND turn.tenant_id = %s AND turn.end_user_id = %s OFFSET 0
        ) turn"""
    numbers = _array(map(str, rows.numbers[last].tolist()))
    [[found]] = binary_rows.fetched(statement, [ids, sessions, numbers, person.tenant_id, person.pk])
    return bool(found == len(last))


def _array(values: Iterable[str]) -> str:
    """As PostgreSQL writes it: of 20,000 values one parameter each takes long to make."""
    return "{" + ",".join(values) + "}"


def is_current(person: EndUser) -> bool:
    whose = {"tenant": person.tenant_id, "pk": person.pk, "generation": person.generation}
    return EndUser.objects.filter(**whose).exists()


def most_bytes() -> int:
    return int(settings.MEMORYHUB_INDEX_MEGABYTES) << 20
