"""Makes files of what was given: archives are unpacked, and texts in UTF-16 or UTF-32 are written as UTF-8.

An archive is unpacked beside the hub's temporary files as long as the import runs: what it holds is read more than
once, and no archive can be read from its middle. Names in it are never used as paths. It may hold archives, which hold
none. Of one that ends early, the list of files at its end is missing: its files are found one behind the other.
"""

import codecs
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from memories.imports.findings import DAMAGED, ENCRYPTED, PACKED, TOO_MUCH, UnreadableError
from memories.imports.raw_documents import CUT_OFF, RefusedDocumentError

# What can hold something to import; the rest are pictures and sound.
JSON = frozenset({".json", ".jsonl", ".ndjson"})
READ = JSON | {".csv", ".md", ".markdown", ".txt", ""}
ARCHIVE = ".zip"
# No export of a person's is larger or has more files, and a small archive can hold more than any disk.
MOST_UNPACKED, MOST_FILES = 50 * 1024**3, 200_000
# Texts are packed to a tenth, and what repeats itself to a hundredth.
MOST_TIMES, ALWAYS = 200, 64 * 1024**2
# Archives in an archive: exports come in batches.
DEEPEST = 1
# Of the list of an archive's files, in bytes: some hundred thousand of them.
_LONGEST_LIST = 16 * 1024 * 1024
# zipfile unpacks others without a bound of what it holds at once.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK = 1024 * 1024
_BEGINS = b"PK\x03\x04"
# Of a file's head: flags, method, time, day, sum, packed size, size, and how long its name and more are.
_HEAD = struct.Struct("<4s2xHHHHIIIHH")
_ENCRYPTED, _SIZE_FOLLOWS = 1, 8
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)


class DamagedError(RefusedDocumentError):
    """A file of an archive cannot be read, or not to its end; `number` from 1 in the order of their names. `at`: the
    byte of the archive at which it ends early."""

    def __init__(self, code: str, number: int, name: str, *, at: int = 0) -> None:
        shown = name.encode("ascii", "backslashreplace").decode()[:80]
        told = f"the archive ends early, at byte {at:,}, in" if at else "in the archive"
        super().__init__(code, hint=f"{told} file {number:,} ({shown!a})")
        self.number, self.at = number, at


class Part(NamedTuple):
    """A file, with its name below what was given."""

    name: str
    path: Path

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.name).parts


class _ArchiveFile(io.FileIO):
    """zipfile reads the list of an archive's files at once, and makes an object of each."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Errors: BadZipFile."""
        if size is not None and size > _LONGEST_LIST:
            raise zipfile.BadZipFile("its list is too long")
        return super().read(size)


def is_archive(path: Path) -> bool:
    """Also one that ends early."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_BEGINS)) == _BEGINS or zipfile.is_zipfile(file)


class Unpacking:
    """Archives that are being unpacked into a folder: `faults` says which of their files cannot be read, `skipped`
    counts those that are nothing to read. They may hold `most` bytes."""

    def __init__(self, folder: Path, most: int = 0) -> None:
        self._folder, self._left, self._files = folder, most or MOST_UNPACKED, 0
        self.skipped = 0
        self.faults: list[RefusedDocumentError] = []

    def unpack(self, archive: Path) -> list[Part]:
        """Each file that may hold something. Errors: OSError, UnreadableError."""
        self._left = min(self._left, ALWAYS + MOST_TIMES * archive.stat().st_size)
        parts = list(self._parts(archive, 0))
        if self.faults and not parts:
            raise UnreadableError(DAMAGED)
        return parts

    def _parts(self, archive: Path, depth: int, within: str = "") -> Iterator[Part]:
        try:
            found = self._listed(archive) if zipfile.is_zipfile(archive) else self._walked(archive)
            for name, path in found:
                if name.suffix.lower() != ARCHIVE:
                    yield Part(f"{within}{name.as_posix()}", path)
                elif depth < DEEPEST and is_archive(path):
                    yield from self._parts(path, depth + 1, f"{within}{name.with_suffix('').as_posix()}/")
                else:
                    self.skipped += 1
        except NotImplementedError as error:
            raise UnreadableError(PACKED) from error
        except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OverflowError, RuntimeError) as error:
            if depth:
                self.faults.append(DamagedError(DAMAGED, 1, within))
                return
            raise UnreadableError(ENCRYPTED if isinstance(error, RuntimeError) else DAMAGED) from error

    def _listed(self, archive: Path) -> Iterator[tuple[PurePosixPath, Path]]:
        """The files by the list at its end. Errors: those of zipfile, UnreadableError."""
        with _ArchiveFile(archive) as file, zipfile.ZipFile(file) as packed:
            for number, member in enumerate(sorted(packed.infolist(), key=lambda one: one.filename), start=1):
                name = PurePosixPath(member.filename.replace("\\", "/"))
                if member.is_dir() or not self._is_read(name):
                    continue
                if member.compress_type not in _METHODS:
                    raise NotImplementedError
                if member.flag_bits & _ENCRYPTED:
                    raise UnreadableError(ENCRYPTED)
                path = self._place(name)
                try:
                    with packed.open(member) as source, path.open("wb") as target:
                        # What the archive says of the size may be wrong.
                        while chunk := source.read(_CHUNK):
                            self._write(target, chunk)
                except (zipfile.BadZipFile, zlib.error, struct.error, EOFError):
                    # What came of it may be wrong, too.
                    path.unlink(missing_ok=True)
                    self.faults.append(DamagedError(DAMAGED, number, name.as_posix()))
                    continue
                _date(path, member.date_time)
                yield name, path

    def _walked(self, archive: Path) -> Iterator[tuple[PurePosixPath, Path]]:
        """The files one behind the other, up to where the archive ends. Of the last the beginning comes where what
        is whole in it can be told. Errors: zlib.error, struct.error, UnreadableError."""
        number, name, size = 0, PurePosixPath("?"), archive.stat().st_size
        with archive.open("rb") as file:
            while len(head := file.read(_HEAD.size)) == _HEAD.size and head.startswith(_BEGINS):
                _, flags, method, clock, day, total, packed, _, long, more = _HEAD.unpack(head)
                written = file.read(long).decode("utf-8", "replace").replace("\\", "/")
                number, name = number + 1, PurePosixPath(written)
                file.seek(more, os.SEEK_CUR)
                if flags & _ENCRYPTED:
                    raise UnreadableError(ENCRYPTED)
                if method not in _METHODS or (method == zipfile.ZIP_STORED and flags & _SIZE_FOLLOWS):
                    raise NotImplementedError
                is_read = not written.endswith("/") and self._is_read(name)
                path = self._place(name if is_read else PurePosixPath("other"))
                with path.open("wb") as target:
                    own, is_whole = self._copied(file, target, method, packed)
                total = _sum_behind(file) if is_whole and flags & _SIZE_FOLLOWS else total
                _date(path, _moment(day, clock))
                if is_read and is_whole and own != total:
                    self.faults.append(DamagedError(DAMAGED, number, name.as_posix()))
                elif is_read and (is_whole or name.suffix.lower() in JSON):
                    yield name, path
                else:
                    path.unlink()
                if not is_whole:
                    break
        self.faults.append(DamagedError(CUT_OFF, number, name.as_posix(), at=size))

    def _copied(self, file: BinaryIO, target: BinaryIO, method: int, packed: int) -> tuple[int, bool]:
        """The sum of what was unpacked, and whether that is all of it. Errors: zlib.error, UnreadableError."""
        total, left = 0, packed
        if method == zipfile.ZIP_STORED:
            while left and (chunk := file.read(min(left, _CHUNK))):
                left, total = left - len(chunk), zlib.crc32(chunk, total)
                self._write(target, chunk)
            return total, not left
        unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
        waiting = b""
        while not unpacking.eof and (waiting := unpacking.unconsumed_tail or file.read(_CHUNK)):
            chunk = unpacking.decompress(waiting, _CHUNK)
            total = zlib.crc32(chunk, total)
            self._write(target, chunk)
        file.seek(-len(unpacking.unused_data), os.SEEK_CUR)
        return total, unpacking.eof

    def _is_read(self, name: PurePosixPath) -> bool:
        """Whether it may hold something; others are counted."""
        is_other = name.suffix.lower() not in READ | {ARCHIVE} or is_hidden(name.parts) or "__MACOSX" in name.parts
        self.skipped += is_other
        return not is_other

    def _place(self, name: PurePosixPath) -> Path:
        """Where it is written. Errors: UnreadableError."""
        self._files += 1
        if self._files > MOST_FILES:
            raise UnreadableError(TOO_MUCH)
        return self._folder / f"{self._files}{name.suffix.lower()}"

    def _write(self, target: BinaryIO, chunk: bytes) -> None:
        """Errors: UnreadableError."""
        self._left -= len(chunk)
        if self._left <= 0:
            raise UnreadableError(TOO_MUCH)
        target.write(chunk)


def as_utf8(part: Part, folder: Path) -> Part:
    """The same, in UTF-8 without a mark, where it is a text in another form of Unicode. Errors: OSError."""
    if part.path.suffix.lower() not in READ or not part.path.is_file():
        return part
    with part.path.open("rb") as source:
        encoding, mark = _encoding_of(source.read(4))
        if not encoding:
            return part
        source.seek(mark)
        path = folder / f"utf8-{sum(1 for _ in folder.iterdir())}{part.path.suffix.lower()}"
        # Half a letter at the end, and half characters, become what the reader of the file refuses by its place.
        decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        with path.open("wb") as target:
            while chunk := source.read(_CHUNK):
                with suppress(UnicodeDecodeError):
                    target.write(decoder.decode(chunk).encode("utf-8", "surrogatepass"))
    stat = part.path.stat()
    os.utime(path, (stat.st_atime, stat.st_mtime))
    return Part(part.name, path)


def text_as_utf8(data: bytes) -> bytes:
    """The same of a small file; as it is, where it is no such text."""
    encoding, mark = _encoding_of(data[:4])
    if not encoding:
        return data
    return data[mark:].decode(encoding, "replace").encode()


def _encoding_of(head: bytes) -> tuple[str, int]:
    """That of a text that is not plain UTF-8, and how long its mark is. JSON and CSV begin with letters of ASCII."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    empty = tuple(not one for one in head)
    shapes: dict[tuple[bool, ...], str] = {
        (False, True, False, True): "utf-16-le",
        (True, False, True, False): "utf-16-be",
        (False, True, True, True): "utf-32-le",
        (True, True, True, False): "utf-32-be",
    }
    return shapes.get(empty, ""), 0


def is_hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith(".") for part in parts)


def _sum_behind(file: BinaryIO) -> int:
    """The sum that follows a file whose head does not say it, with its sizes: of four bytes each, or of eight."""
    head = file.read(4)
    if head == b"PK\x07\x08":
        head = file.read(4)
    for size in (8, 16):
        at = file.tell()
        file.seek(at + size)
        if file.read(2) in (b"PK", b"") or size == 16:
            file.seek(at + size)
            break
        file.seek(at)
    return int.from_bytes(head, "little")


def _moment(day: int, clock: int) -> tuple[int, int, int, int, int, int]:
    return (1980 + (day >> 9), day >> 5 & 15, day & 31, clock >> 11, clock >> 5 & 63, 2 * (clock & 31))


def _date(path: Path, moment: tuple[int, ...]) -> None:
    """When the file was changed; archives do not say in which zone."""
    with suppress(ValueError, OverflowError, OSError):
        changed = datetime(*moment, tzinfo=UTC).timestamp()  # type: ignore[misc,arg-type]
        os.utime(path, (changed, changed))
