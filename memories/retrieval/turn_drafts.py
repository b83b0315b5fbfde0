"""Drafts of the files of heavy people. A killed process leaves what it had read; the next one reads only the rest.

A draft has the vectors behind its head, as the file will have, then the sessions whose turns are read and how far each
was, then the slices: of each the other arrays, and a checksum of these and of its vectors. So a slice counts if it is
whole, also after the machine has lost power. If something of these sessions was deleted or redacted since, or the
database was restored, nothing counts. At the end all other arrays take the place of the slices.

On a full disk the arrays stay in the memory of the process.
"""

import io
import json
import logging
import mmap
import os
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.models import EmbeddingSpace, EndUser
from memories.retrieval import turn_files, turn_rows
from memories.retrieval.turn_files import (
    ALIGNED,
    DRAFT_MAGIC,
    HEAD,
    LEVELS,
    MAGIC,
    POSTINGS,
    VECTORS,
    KeptTurns,
    Progress,
)
from memories.retrieval.turn_rows import PLAIN, Slice, TurnRows, blocks_of
from memories.scoring.constants import DEFAULT
from memories.scoring.lexical import Postings
from memoryhub.embedded_postgres import locks

logger = logging.getLogger(__name__)

# What stands before each slice: how many bytes it has, and their checksum.
_MARK = np.dtype([("size", "<i8"), ("sum", "<u4"), ("vectors", "<u4")])


class Plan(NamedTuple):
    """The sessions whose turns a draft has, and how far each was when reading began."""

    sessions: Sequence[Any]
    progress: Sequence[Progress]


class Draft:
    """A file that is being made. Whoever makes it stands in building()."""

    def __init__(self, person: EndUser, space: EmbeddingSpace | None) -> None:
        self._person, self._space = person, space
        self._path, self._head = turn_files.path_of(person, space), turn_files.head_of(person, space)
        self._draft = turn_files.draft_of(self._path, uuid.uuid4().hex)
        self._file: int | None = None
        self._room: mmap.mmap | None = None
        self._raw = np.empty((0, 0), np.float16)
        self._plan: Plan | None = None
        # Where the next slice goes, and how many turns stand before it. None: no slice is kept any more.
        self._end: int | None = None
        self._turns = 0

    def left(self) -> Plan | None:
        """What a killed process planned, if it left a draft of this file; this is that draft then."""
        for path in sorted(self._path.parent.glob(turn_files.draft_of(self._path, "*").name)):
            with suppress(OSError):
                file = os.open(path, os.O_RDWR)
                if not locks.try_lock(file):
                    os.close(file)
                elif plan := self._plan_of(path):
                    self._draft, self._file, self._plan = path, file, plan
                    return plan
                else:
                    os.close(file)
                    path.unlink(missing_ok=True)
        return None

    def _plan_of(self, path: Path) -> Plan | None:
        with suppress(OSError, ValueError, KeyError, TypeError):
            head, sessions, progress = turn_files.states_of(path, DRAFT_MAGIC)
            if head["slice"] == turn_rows.SLICE and all(head[name] == value for name, value in self._head.items()):
                return Plan(sessions, progress)
        return None

    def follow(self, plan: Plan) -> None:
        """The turns of this plan will be read. What was read by another one goes."""
        if self._plan and self._plan != plan:
            self.discard()
            self._draft = turn_files.draft_of(self._path, uuid.uuid4().hex)
        self._plan = plan

    def room(self, count: int, dimensions: int) -> NDArray[np.float16]:
        """An array for vectors, in the draft as long as the disk has room for it, else in memory. It is zero where
        nothing was read before."""
        size = HEAD + count * dimensions * 2
        try:
            if self._file is None:
                self._file = os.open(self._draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                locks.try_lock(self._file)
            # Without it a full disk would end the process when it writes to the mapped array.
            _allocate(self._file, size)
            self._room = mmap.mmap(self._file, size)
            self._end = self._write_plan(self._plan) if self._plan else None
        except OSError as error:
            _gave_up(error)
            self.discard()
            return np.zeros((count, dimensions), np.float16)
        self._raw = np.frombuffer(self._room, np.float16, count * dimensions, HEAD).reshape(count, dimensions)
        return self._raw

    def found(self) -> Sequence[Slice]:
        """The slices that a killed process read, up to the last whole one, if their turns are still there."""
        if self._file is None or self._plan is None or self._end is None:
            return ()
        begin, slices = self._end, []
        while one := self._next_slice(self._file, self._plan, self._end):
            slices.append(one)
        if all(turn_files.last_turns_stand(self._person, one.rows) for one in slices if len(one.rows)):
            # Of the next slice some vectors may be there.
            self._raw[self._turns : self._turns + turn_rows.SLICE] = 0
        else:
            slices, self._end, self._turns = [], begin, 0
            self._raw[:] = 0
        os.truncate(self._file, self._end)
        return slices

    def add(self, one: Slice) -> None:
        """Keep a slice whose vectors are in the array. What the disk has no room for is not kept."""
        if self._file is None or self._end is None:
            return
        content = io.BytesIO()
        for array in (one.codes, *_of_slice(one.rows)):
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
        packed = content.getvalue()
        mark = np.array([(len(packed), zlib.crc32(packed), self._sum_of_next(len(one.rows)))], _MARK)
        try:
            # The mark comes last: without it there is no slice.
            _write_all(self._file, packed, self._end + len(mark.tobytes()))
            self._end += _write_all(self._file, mark, self._end) + len(packed)
            self._turns += len(one.rows)
        except OSError:
            self._end = None

    def publish(self, rows: TurnRows, progress: Sequence[Progress]) -> KeptTurns | None:
        """The same arrays in a file that other processes find. None if it cannot be, or the person was erased or merged
        meanwhile: then they stay in memory."""
        if self._file is None or self._room is None:
            return None
        try:
            if self._space and rows.vectors is not None and len(rows) >= turn_files.LEVELS_FROM:
                signs = len(rows) >= turn_files.SIGNS_FROM
                rows = replace(rows, vectors=rows.vectors.with_levels(blocks_of(self._space), DEFAULT, signs=signs))
            size = self._write(rows, progress)
            if size > turn_files.most_bytes() or not turn_files.is_current(self._person):
                return None
            self._draft.replace(self._path)
            if not turn_files.is_current(self._person):
                # The erasure may have looked before the file had its name.
                self._path.unlink(missing_ok=True)
                return None
            turn_files.evict(keep=self._path)
            return turn_files.mapped(self._path, self._head)
        except (OSError, ValueError) as error:
            _gave_up(error)
            return None
        finally:
            self.discard()

    def discard(self) -> None:
        """What was not published goes."""
        with suppress(OSError):
            self._draft.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """What was read stays, for the next one who makes the file."""
        if self._file is not None:
            os.close(self._file)
        self._file = self._room = self._end = None

    def _write_plan(self, plan: Plan) -> int:
        """Where the slices begin."""
        assert self._file is not None and self._room is not None  # noqa: S101, PT018 - room() has opened it
        sections, at = {}, len(self._room)
        for name, array in _states(plan.sessions, plan.progress):
            sections[name] = (array.dtype.str, array.shape, at)
            at += _write_all(self._file, array, at)
        self._write_head(DRAFT_MAGIC, {"slice": turn_rows.SLICE, "sections": sections})
        return at

    def _next_slice(self, file: int, plan: Plan, at: int) -> Slice | None:
        read = os.pread(file, _MARK.itemsize, at)
        if len(read) < _MARK.itemsize:
            return None
        size, expected, of_vectors = np.frombuffer(read, _MARK)[0].tolist()
        packed = os.pread(file, size, at + len(read)) if size > 0 else b""
        if not packed or len(packed) != size or zlib.crc32(packed) != expected:
            return None
        content = io.BytesIO(packed)
        codes, *arrays = (np.lib.format.read_array(content, allow_pickle=False) for _ in range(1 + _ARRAYS))
        plain: dict[str, Any] = dict(zip(PLAIN, arrays[: len(PLAIN)], strict=True))
        rows = TurnRows(list(plan.sessions), **plain, postings=Postings(*arrays[len(PLAIN) :]), vectors=None)
        if self._sum_of_next(len(rows)) != of_vectors:
            return None
        self._end = at + len(read) + size
        self._turns += len(rows)
        return Slice(rows, codes)

    def _sum_of_next(self, count: int) -> int:
        """The checksum of the vectors of so many turns after those of the slices."""
        return zlib.crc32(self._raw[self._turns : self._turns + count].view(np.uint8).data)

    def _write(self, rows: TurnRows, progress: Sequence[Progress]) -> int:
        """How long the file is."""
        assert self._file is not None and self._room is not None  # noqa: S101, PT018 - publish() has looked
        sections: dict[str, tuple[str, Sequence[int], int]] = {}
        at = len(self._room)
        for name, array in _arrays(rows, progress):
            if name == "vectors.raw":
                sections[name] = (array.dtype.str, array.shape, HEAD)
                continue
            at += -at % ALIGNED
            sections[name] = (array.dtype.str, array.shape, at)
            at += _write_all(self._file, np.ascontiguousarray(array), at)
        os.truncate(self._file, at)
        self._room.flush()
        self._write_head(MAGIC, {"size": at, "sections": sections})
        os.fsync(self._file)
        return at

    def _write_head(self, magic: bytes, more: dict[str, Any]) -> None:
        assert self._file is not None  # noqa: S101 - whoever writes has opened it
        head = json.dumps({**self._head, **more}).encode()
        if len(magic) + len(head) > HEAD:
            raise ValueError("The head of a file of turns has no room")
        os.pwrite(self._file, magic + head.ljust(HEAD - len(magic)), 0)


_ARRAYS = len(PLAIN) + len(POSTINGS)


def _of_slice(rows: TurnRows) -> Iterator[NDArray[Any]]:
    yield from (getattr(rows, name) for name in PLAIN)
    yield from (getattr(rows.postings, name) for name in POSTINGS)


def _arrays(rows: TurnRows, progress: Sequence[Progress]) -> Iterator[tuple[str, NDArray[Any]]]:
    if rows.vectors is not None:
        for name in VECTORS:
            yield f"vectors.{name}", getattr(rows.vectors, name)
        if rows.vectors.levels is not None:
            for name in LEVELS:
                yield f"levels.{name}", getattr(rows.vectors.levels, name)
        if rows.vectors.bits is not None:
            yield "signs.planes", rows.vectors.bits.planes
            yield "signs.noise", np.array([rows.vectors.bits.noise])
    yield from zip((*PLAIN, *(f"postings.{name}" for name in POSTINGS)), _of_slice(rows), strict=True)
    yield from _states(rows.sessions, progress)


def _states(sessions: Sequence[Any], progress: Sequence[Progress]) -> Iterator[tuple[str, NDArray[Any]]]:
    yield "sessions", np.frombuffer(b"".join(one.bytes for one in sessions), np.uint8).reshape(-1, 16)
    yield "progress", np.array(progress, np.int32).reshape(-1, len(Progress._fields))


def _write_all(file: int, content: Any, at: int) -> int:
    view = memoryview(content.reshape(-1).view(np.uint8).data if isinstance(content, np.ndarray) else content)
    written = 0
    while written < len(view):
        written += os.pwrite(file, view[written:], at + written)
    return written


def _allocate(file: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    zeros = bytes(1 << 20)
    # What a killed process has written stays.
    for start in range(os.fstat(file).st_size, size, len(zeros)):
        _write_all(file, zeros[: size - start], start)


def _gave_up(error: Exception) -> None:
    logger.warning("An index stays in the memory of its process: its file cannot be written (%s)", type(error).__name__)
