"""Files with the turns of heavy people: one for a person, written once for all processes of a host, which map it.

A file is the arrays of TurnRows, one after the other, behind a head that says whose they are and where each stands.
It is written as a draft under a lock of the host, and gets its name when it is whole and on the disk. So a reader sees
all of it or nothing, and what a killed process leaves is a draft, which the next one deletes. Turns that come later are
kept by each process beside it, until a new file takes its place.

Nothing depends on a file: one that is lost, cut, of another hub or out of date is made again from rows. On a full disk
the arrays stay in the memory of the process.
"""

import ctypes
import json
import logging
import mmap
import os
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from memories.db import binary_rows, tenancy
from memories.exceptions import HubBusy
from memories.models import EmbeddingSpace, EndUser
from memories.retrieval.turn_rows import TurnRows, blocks_of
from memories.scoring.bits import Bits
from memories.scoring.constants import DEFAULT
from memories.scoring.dense import Rows
from memories.scoring.lexical import Postings
from memoryhub.embedded_postgres import locks

logger = logging.getLogger(__name__)

FOLDER = "indexes"
# The first bytes of a file. Raise the number with every change of the arrays, or of what they mean.
MAGIC = b"MHTURNS3"
# Room for the head; the arrays begin at multiples of the second number.
HEAD, ALIGNED = 4_096, 64
# A person of so many turns has a file. The arrays of fewer take some 10 MiB in each process, and a tenth of a second.
FILE_FROM = 8_192
# With so many turns it has the signs of the vectors, too, and a search reads few of the vectors themselves.
SIGNS_FROM = 65_536
# Then so many of their bytes stay mapped: the system maps some pages around each.
MOST_MAPPED, MAPPED_AT_ONCE = 256 << 20, 64 << 10
# A file that nobody used for so long goes; a used one is marked once a minute.
UNUSED_SECONDS, MARKED_SECONDS = 86_400.0, 60.0
# A web process sweeps so often; a worker twice a minute.
SWEPT_SECONDS = 600.0
# Requests of one process that make a file or wait for another process that does.
BUILDERS = 2
_LOCK, _SUFFIX, _DRAFT = "lock", ".turns", ".draft"
_POLL_SECONDS = 0.05
_POSTINGS = ("ids", "starts", "units", "counts", "lengths")
_VECTORS, _SIGNS = ("raw", "codes", "squares", "sums"), ("planes", "lengths", "noise")
_PLAIN = ("session_of", "numbers", "times", "roles", "token_counts", "ids")
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
    return turns >= FILE_FROM and _most_bytes() > 0


def opened(person: EndUser, space: EmbeddingSpace | None) -> KeptTurns | None:
    """The person's file in that space, if there is one that this version reads, and whose turns are still there."""
    path = _path(person, space)
    try:
        kept = _mapped(path, _head_of(person, space))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    # Of a database that was restored or exchanged, turns have the same numbers and other ids.
    if kept is None or not _last_turns_stand(person, kept.rows):
        return None
    used(path)
    return kept


def exists(person: EndUser, space: EmbeddingSpace | None) -> bool:
    """Whether there is a file of that name, which may be out of date."""
    return _path(person, space).exists()


def used(path: Path) -> None:
    """Mark a file as used; the least recently used goes first."""
    now = time.monotonic()
    if now - _marked.get(path, -MARKED_SECONDS) >= MARKED_SECONDS:
        _marked[path] = now
        with suppress(OSError):
            os.utime(path)


def give_back() -> None:
    """Give the system what glibc keeps of the memory of arrays that are gone. Other libraries do so by themselves."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


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


class Draft:
    """A file that is being made. Whoever makes it stands in building()."""

    def __init__(self, person: EndUser, space: EmbeddingSpace | None) -> None:
        self._person, self._space = person, space
        self._path, self._head = _path(person, space), _head_of(person, space)
        self._draft = self._path.with_name(f"{self._path.name}{_DRAFT}.{uuid.uuid4().hex}")
        self._file: int | None = None
        self._room: mmap.mmap | None = None

    def room(self, count: int, dimensions: int) -> NDArray[np.float16]:
        """An array of zeros for vectors, in the draft as long as the disk has room for it, else in memory."""
        size = count * dimensions * 2
        try:
            self._file = os.open(self._draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            # Without it a full disk would end the process when it writes to the mapped array.
            _allocate(self._file, HEAD + size)
            self._room = mmap.mmap(self._file, HEAD + size)
        except OSError as error:
            _gave_up(error)
            self.discard()
            return np.zeros((count, dimensions), np.float16)
        return np.frombuffer(self._room, np.float16, count * dimensions, HEAD).reshape(count, dimensions)

    def publish(self, rows: TurnRows, progress: Sequence[Progress]) -> KeptTurns | None:
        """The same arrays in a file that other processes find. None if it cannot be, or the person was erased or merged
        meanwhile: then they stay in memory."""
        if self._file is None or self._room is None:
            return None
        try:
            if self._space and rows.vectors is not None and len(rows) >= SIGNS_FROM:
                rows = replace(rows, vectors=rows.vectors.with_bits(blocks_of(self._space), DEFAULT))
            self._write(rows, progress)
            if os.fstat(self._file).st_size > _most_bytes() or not _is_current(self._person):
                return None
            self._draft.replace(self._path)
            if not _is_current(self._person):
                # The erasure may have looked before the file had its name.
                self._path.unlink(missing_ok=True)
                return None
            _evict(keep=self._path)
            return _mapped(self._path, self._head)
        except (OSError, ValueError) as error:
            _gave_up(error)
            return None
        finally:
            self.discard()

    def discard(self) -> None:
        """What was not published goes."""
        with suppress(OSError):
            self._draft.unlink(missing_ok=True)
        if self._file is not None:
            os.close(self._file)
        self._file = self._room = None

    def _write(self, rows: TurnRows, progress: Sequence[Progress]) -> None:
        assert self._file is not None and self._room is not None  # noqa: S101, PT018 - publish() has looked
        sections: dict[str, tuple[str, Sequence[int], int]] = {}
        at = os.lseek(self._file, len(self._room), os.SEEK_SET)
        for name, array in _arrays(rows, progress):
            if name == "vectors.raw":
                sections[name] = (array.dtype.str, array.shape, HEAD)
                continue
            at += _write_all(self._file, bytes(-at % ALIGNED))
            sections[name] = (array.dtype.str, array.shape, at)
            at += _write_all(self._file, np.ascontiguousarray(array))
        head = json.dumps({**self._head, "size": at, "sections": sections}).encode()
        if len(MAGIC) + len(head) > HEAD:
            raise ValueError("The head of a file of turns has no room")
        self._room.flush()
        os.pwrite(self._file, MAGIC + head.ljust(HEAD - len(MAGIC)), 0)
        os.fsync(self._file)


def sweep() -> None:
    """Delete the files of who was erased or merged, of whose turns some were deleted or redacted, those that nobody
    uses, and drafts of killed processes; and the least recently used until the others fit."""
    if not folder().is_dir():
        return
    for path in _files():
        with suppress(OSError), tenancy.everything():
            if time.time() - path.stat().st_mtime > UNUSED_SECONDS or not _may_stay(path):
                path.unlink(missing_ok=True)
    _sweep_drafts()
    _evict()


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


def _sweep_drafts() -> None:
    """A draft is somebody's as long as the lock is held."""
    with suppress(OSError):
        descriptor = locks.open_lock(folder() / _LOCK)
        try:
            if locks.try_lock(descriptor):
                for path in folder().glob(f"*{_DRAFT}.*"):
                    path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _may_stay(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = _head(file.read(HEAD))
        kept = _mapped(path, head)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if kept is None:
        return False
    whose = {"tenant": head["tenant"], "pk": head["person"], "generation": head["generation"]}
    person = EndUser.objects.filter(**whose).first()
    if person is None:
        return False
    statement = """
        SELECT count(*) FROM memories_session
        JOIN unnest(%s::uuid[], %s::int[], %s::int[]) AS kept (id, deleted, redacted) USING (id)
        WHERE tenant_id = %s AND end_user_id = %s AND deleted_number = deleted AND redactions = redacted"""
    states = [kept.rows.sessions, [one.deleted for one in kept.progress], [one.redactions for one in kept.progress]]
    [[unchanged]] = binary_rows.fetched(statement, [*states, person.tenant_id, person.pk])
    return bool(unchanged == len(kept.progress))


def _evict(keep: Path | None = None) -> None:
    """Delete the least recently used until the others fit."""
    found = []
    for path in _files():
        with suppress(OSError):
            state = path.stat()
            found.append((path != keep, -state.st_mtime, state.st_size, path))
    total = 0
    for _, _, size, path in sorted(found):
        total += size
        if total > _most_bytes():
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _files() -> list[Path]:
    return [path for path in folder().glob(f"*{_SUFFIX}") if path.is_file()]


def _path(person: EndUser, space: EmbeddingSpace | None) -> Path:
    """Its name begins with the id of the person: so an erasure finds it."""
    return folder() / f"{person.pk}.{space.pk if space else 0}{_SUFFIX}"


def _head_of(person: EndUser, space: EmbeddingSpace | None) -> dict[str, Any]:
    """What must be in the head of a file that is read."""
    return {
        "tenant": str(person.tenant_id),
        "person": str(person.pk),
        "generation": person.generation,
        "space": [space.pk, space.model, space.dimensions] if space else None,
    }


def _head(read: bytes) -> dict[str, Any]:
    if not read.startswith(MAGIC):
        raise ValueError("Not a file of turns, or one of another version")
    found: dict[str, Any] = json.loads(read[len(MAGIC) :])
    return found


def _mapped(path: Path, wanted: dict[str, Any]) -> KeptTurns | None:
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
    vectors, looked_at = None, None
    if head["space"]:
        of_rows: dict[str, Any] = {name: arrays[f"vectors.{name}"] for name in _VECTORS}
        vectors = Rows(**of_rows)
    if vectors is not None and "signs.planes" in arrays:
        planes, lengths, noise = (arrays[f"signs.{name}"] for name in _SIGNS)
        vectors = replace(vectors, bits=Bits(planes, lengths, *noise.tolist()))
        looked_at = _Looks(room, vectors.raw.nbytes)
    rows = TurnRows(
        sessions=[uuid.UUID(bytes=one.tobytes()) for one in arrays["sessions"]],
        postings=Postings(*(arrays[f"postings.{name}"] for name in _POSTINGS)),
        vectors=vectors,
        mapped=True,
        looked_at=looked_at,
        **{name: arrays[name] for name in _PLAIN},
    )
    return KeptTurns(path, rows, [Progress(*one) for one in arrays["progress"].tolist()])


class _Looks:
    """Lets go of the vectors of a mapped file when so many were looked at that most of them may be mapped. The system
    keeps them as long as it has room, but they do not count as memory of the process any more."""

    def __init__(self, room: mmap.mmap, size: int) -> None:
        self._room, self._end, self._mapped = room, HEAD + size, 0

    def __call__(self, vectors: int) -> None:
        self._mapped += vectors * MAPPED_AT_ONCE
        if self._mapped > MOST_MAPPED:
            self._mapped = 0
            self._let_go()

    def _let_go(self) -> None:
        if hasattr(mmap, "MADV_DONTNEED"):
            self._room.madvise(mmap.MADV_DONTNEED, 0, self._end // mmap.PAGESIZE * mmap.PAGESIZE)


def _arrays(rows: TurnRows, progress: Sequence[Progress]) -> Iterator[tuple[str, NDArray[Any]]]:
    if rows.vectors is not None:
        for name in _VECTORS:
            yield f"vectors.{name}", getattr(rows.vectors, name)
        if rows.vectors.bits is not None:
            yield "signs.planes", rows.vectors.bits.planes
            yield "signs.lengths", rows.vectors.bits.lengths
            yield "signs.noise", np.array([rows.vectors.bits.noise, rows.vectors.bits.second_noise])
    for name in _PLAIN:
        yield name, getattr(rows, name)
    for name in _POSTINGS:
        yield f"postings.{name}", getattr(rows.postings, name)
    yield "sessions", np.frombuffer(b"".join(one.bytes for one in rows.sessions), np.uint8).reshape(-1, 16)
    yield "progress", np.array(progress, np.int32).reshape(-1, len(Progress._fields))


def _write_all(file: int, content: bytes | NDArray[Any]) -> int:
    view = memoryview(content if isinstance(content, bytes) else content.reshape(-1).view(np.uint8).data)
    written = 0
    while written < len(view):
        written += os.write(file, view[written:])
    return written


def _allocate(file: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    zeros = bytes(1 << 20)
    for start in range(0, size, len(zeros)):
        _write_all(file, zeros[: size - start])


def _last_turns_stand(person: EndUser, rows: TurnRows) -> bool:
    """Whether the last indexed turn of each session is there under its id: then those before it are, too."""
    if not len(rows):
        return False
    last = np.append(np.flatnonzero(rows.session_of[1:] != rows.session_of[:-1]), len(rows) - 1)
    ids = [uuid.UUID(bytes=one.tobytes()) for one in rows.ids[last]]
    sessions = [rows.sessions[at] for at in rows.session_of[last].tolist()]
    statement = """
        SELECT count(*) FROM unnest(%s::uuid[], %s::uuid[], %s::int[]) AS kept (id, session_id, number)
        JOIN memories_turn turn USING (id, session_id, number) WHERE turn.tenant_id = %s AND turn.end_user_id = %s"""
    given = [ids, sessions, rows.numbers[last].tolist(), person.tenant_id, person.pk]
    [[found]] = binary_rows.fetched(statement, given)
    return bool(found == len(ids))


def _is_current(person: EndUser) -> bool:
    whose = {"tenant": person.tenant_id, "pk": person.pk, "generation": person.generation}
    return EndUser.objects.filter(**whose).exists()


def _most_bytes() -> int:
    return int(settings.MEMORYHUB_INDEX_MEGABYTES) << 20


def _gave_up(error: Exception) -> None:
    logger.warning("An index stays in the memory of its process: its file cannot be written (%s)", type(error).__name__)
