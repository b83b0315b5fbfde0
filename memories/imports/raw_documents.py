"""What a file of an import holds, measured as bodies of the API are: size, depth and count, before anything is built.

How large a file is, is its owner's matter: it is read some at a time, and only the places of what it holds are kept. It
is split in its bytes: the members of a list, or lines. Each of these is measured by itself, and one that is too much or
broken is refused by itself. What is made of it for the hub is then read as strictly as the body of a request.
"""

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from django.conf import settings

from memories.api import documents
from memories.exceptions import InvalidInput

# A conversation of an export becomes several requests, and has more beside each message than a request.
_TIMES = 10
# Of one file.
MOST_DOCUMENTS = 10_000_000
_CHUNK = 1024 * 1024
_HEAD = 4096
_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_OPENS, _COMMA = b"[{", ord(",")
_STEPS = np.zeros(256, np.int32)
_STEPS[list(_OPENS)], _STEPS[list(b"]}")] = 1, -1


class RefusedDocumentError(Exception):
    """What is wrong with a memory or a file, as a code with its place, without a word of it.

    `hint` says what would be right.
    """

    def __init__(self, faults: str, *, hint: str = "") -> None:
        super().__init__(faults)
        self._first, self._hint = faults.partition(",")[0], hint

    def __str__(self) -> str:
        return " – ".join(part for part in (super().__str__(), self._hint) if part)

    @property
    def code(self) -> str:
        """The code alone, of the first fault."""
        code = self._first.rpartition(" ")[2]
        return "surrogate" if code == "encoding" else code

    @property
    def place(self) -> str:
        return self._first.rpartition(" ")[0]

    @property
    def is_letters(self) -> bool:
        """Whether it holds letters that no text can have: nobody can mend them in what another program wrote."""
        return self.code in ("nul", "surrogate")


Outcome = dict[str, Any] | RefusedDocumentError


class Place(NamedTuple):
    """Bytes of a file: from `start` up to `end`."""

    start: int
    end: int


class Line(NamedTuple):
    """A line of JSON lines, and the byte at which it begins."""

    document: Outcome
    start: int


class Places:
    """Places in the order of the file, in 16 bytes each: a file can have millions of documents."""

    def __init__(self) -> None:
        self._bounds = array("Q")

    def __len__(self) -> int:
        return len(self._bounds) // 2

    def __iter__(self) -> Iterator[Place]:
        return (Place(*self._bounds[at : at + 2]) for at in range(0, len(self._bounds), 2))

    def append(self, place: Place) -> None:
        """Errors: ValueError, beyond what memory should hold."""
        if len(self) >= MOST_DOCUMENTS:
            raise ValueError("it holds too many documents")
        self._bounds.extend(place)


class Documents:
    """The documents of a file, of which only the places are in memory; each is built when it is asked for."""

    def __init__(self, path: Path, places: Iterable[Place]) -> None:
        """Errors: ValueError, where there are too many."""
        self.path, self.places = path, Places()
        for place in places:
            self.places.append(place)

    def __iter__(self) -> Iterator[Outcome]:
        with self.path.open("rb") as file:
            for place in self.places:
                yield built_at(file, place)


def list_in(path: Path) -> Documents:
    """The objects of a JSON list, or why one is too much. What is no object is an empty one.

    Errors: OSError, ValueError when it is no list.
    """
    with path.open("rb") as file:
        return Documents(path, _of_list(file, _whole(file)))


def lines_in(path: Path) -> Iterator[Outcome]:
    """The same of JSON lines, of which one at a time is read."""
    with path.open("rb") as file:
        for place in _lines(file, _whole(file)):
            yield built_at(file, place)


def places_of_lines(path: Path) -> Iterator[Line]:
    """The same, each with the byte at which it begins. A line that is still being written is left out."""
    with path.open("rb") as file:
        whole = _whole(file)
        end = file.seek(0, 2)
        for place in _lines(file, whole):
            if place.end < end:
                yield Line(built_at(file, place), place.start)


def found_in(path: Path, *, lists: Sequence[str] = ()) -> Documents:
    """The objects of a JSON list, of the list in one of the members `lists`, of JSON lines, or an object alone.

    Errors: OSError, ValueError when it is none of these.
    """
    with path.open("rb") as file:
        return Documents(path, _split(file, lists))


def documents_in(path: Path, refused: Counter[str], *, lists: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The same; what is too much is counted in `refused`. Errors: as found_in()."""
    for found in found_in(path, lists=lists):
        if isinstance(found, RefusedDocumentError):
            refused[str(found)] += 1
        else:
            yield found


def document_in(path: Path) -> dict[str, Any]:
    """The object in a file. Errors: OSError, ValueError, RefusedDocumentError."""
    with path.open("rb") as file:
        place = _whole(file)
        if _read(file, place._replace(end=min(place.start + 1, place.end))) != b"{":
            raise ValueError("it holds no object")
        found = built_at(file, place)
    if isinstance(found, RefusedDocumentError):
        raise found
    return found


def member_names(path: Path) -> list[str]:
    """The names of the members of the object that a file holds; none where it holds something else."""
    with path.open("rb") as file:
        place = _whole(file)
        if _read(file, place._replace(end=min(place.start + 1, place.end))) != b"{":
            return []
        return [name for name, _ in _named_members(file, place)]


def lists_in(path: Path) -> dict[str, Documents]:
    """Of the object in a file the members that are lists: where the documents of each are.

    Errors: OSError, ValueError.
    """
    with path.open("rb") as file:
        members = _named_members(file, _whole(file))
        found = {name: place for name, place in members if _read(file, place._replace(end=place.start + 1)) == b"["}
        return {name: Documents(path, _of_list(file, place)) for name, place in found.items()}


def beginning(path: Path) -> bytes:
    """The first bytes of a file: a name in it that stands there is one of its head."""
    with path.open("rb") as file:
        return file.read(_HEAD)


def built_at(file: BinaryIO, place: Place) -> Outcome:
    """The object at that place, or why it is refused."""
    if place.end - place.start > _TIMES * settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        return RefusedDocumentError(documents.TOO_LARGE)
    try:
        return _built(_read(file, place))
    except RefusedDocumentError as error:
        return error


def checked(expected: type[Any], document: Any) -> dict[str, Any]:
    """The document as the operation with this serializer reads its body. Errors: RefusedDocumentError."""
    try:
        return documents.read(expected, document)
    except InvalidInput as error:
        faults = (f"{fault.pointer} {fault.code}".strip() for fault in error.faults)
        hint = next((fault.detail for fault in error.faults if fault.code == "unknown_field"), "")
        raise RefusedDocumentError(", ".join(faults), hint=str(hint)) from error


def _built(document: bytes) -> dict[str, Any]:
    """Errors: RefusedDocumentError."""
    try:
        documents.check_measure(document, times=_TIMES)
        found = json.loads(document.decode())
    except InvalidInput as error:
        raise RefusedDocumentError(error.faults[0].code) from error
    except UnicodeDecodeError as error:
        raise RefusedDocumentError("encoding") from error
    except ValueError as error:
        raise RefusedDocumentError("syntax") from error
    return found if isinstance(found, dict) else {}


def _whole(file: BinaryIO) -> Place:
    """Where the file's text is: without a mark of its encoding, and without blanks around it."""
    end = file.seek(0, 2)
    start = len(_BOM) if _read(file, Place(0, min(end, len(_BOM)))) == _BOM else 0
    return _stripped(file, Place(start, end))


def _stripped(file: BinaryIO, place: Place) -> Place:
    start, end = place
    while start < end and (part := _read(file, Place(start, min(end, start + _CHUNK)))):
        rest = part.lstrip(_BLANKS)
        start += len(part) - len(rest)
        if rest:
            break
    while end > start and (part := _read(file, Place(max(start, end - _CHUNK), end))):
        rest = part.rstrip(_BLANKS)
        end -= len(part) - len(rest)
        if rest:
            break
    return Place(start, end)


def _read(file: BinaryIO, place: Place) -> bytes:
    file.seek(place.start)
    return file.read(place.end - place.start)


def _lines(file: BinaryIO, whole: Place) -> Iterator[Place]:
    """Where the lines are that are not blank."""
    start = whole.start
    while start < whole.end:
        end = _line_end(file, Place(start, whole.end))
        if end - start > _CHUNK or _read(file, Place(start, end)).strip():
            yield Place(start, end)
        start = end + 1


def _line_end(file: BinaryIO, place: Place) -> int:
    at = place.start
    while at < place.end:
        part = _read(file, Place(at, min(place.end, at + _CHUNK)))
        if (found := part.find(b"\n")) >= 0:
            return at + found
        at += len(part)
    return place.end


def _split(file: BinaryIO, lists: Sequence[str]) -> Iterator[Place]:
    """The documents of a file. Errors: ValueError."""
    whole = _whole(file)
    first = _read(file, Place(whole.start, min(whole.start + 1, whole.end)))
    if not first:
        return iter(())
    if first != b"{":
        return _of_list(file, whole)
    line = Place(whole.start, _line_end(file, whole))
    if line.end < whole.end and _is_whole(file, line):
        return _lines(file, whole)
    for name, place in _named_members(file, whole) if lists else ():
        if name in lists and _read(file, Place(place.start, place.start + 1)) == b"[":
            return _of_list(file, place)
    return iter([whole])


def _of_list(file: BinaryIO, place: Place) -> Iterator[Place]:
    """Errors: ValueError."""
    if _read(file, Place(place.start, min(place.start + 1, place.end))) != b"[":
        raise ValueError("it holds no list")
    return iter(_members(file, place))


def _is_whole(file: BinaryIO, line: Place) -> bool:
    try:
        end = line.end - (_read(file, Place(line.end - 1, line.end)) == b"\r")
        _members(file, line._replace(end=end))
    except ValueError:
        return False
    return True


def _named_members(file: BinaryIO, place: Place) -> Iterator[tuple[str, Place]]:
    """Name and place of the value of each member of an object. Errors: ValueError."""
    for start, end in _members(file, place):
        # A name is short, and what follows it may be everything.
        head = _read(file, Place(start, min(end, start + _HEAD)))
        key, colon, _ = head.partition(b":")
        if colon:
            at = start + len(key) + 1
            yield key.strip().strip(b'"').decode("utf-8", "replace"), _stripped(file, Place(at, end))


def _members(file: BinaryIO, place: Place) -> Places:
    """Where the members of the list or object are that these bytes are. Errors: ValueError when it has no end."""
    places = Places()
    start, is_over = place.start, False
    for at, sign, level in _brackets(file, place):
        if is_over:
            raise ValueError("it has no end")
        if sign > 0:
            start = at + 1
            continue
        # A comma between members, or the end of all.
        is_over = level == 0
        if not is_over or places or not _is_blank(file, Place(start, at)):
            places.append(Place(start, at))
        start = at + 1
    if not is_over or start != place.end:
        raise ValueError("it has no end")
    return places


def _is_blank(file: BinaryIO, place: Place) -> bool:
    while place.start < place.end:
        part = _read(file, Place(place.start, min(place.end, place.start + _CHUNK)))
        if part.strip(_BLANKS):
            return False
        place = place._replace(start=place.start + len(part))
    return True


def _brackets(file: BinaryIO, place: Place) -> Iterator[tuple[int, int, int]]:
    """What opens and closes the list or object, and the commas between its members: place, step and depth after it."""
    at, depth, inside, carried = place.start, 0, np.uint8(0), b""
    while at < place.end:
        part = carried + _read(file, Place(at + len(carried), min(place.end, at + len(carried) + _CHUNK)))
        if not part:
            break
        # Half an escape belongs to the next part.
        slashes = len(part) - len(part.rstrip(b"\\"))
        carried = b"\\" if slashes % 2 and at + len(part) < place.end else b""
        part = part[: len(part) - len(carried)]
        # Of the same length, so that places stay.
        signs = np.frombuffer(part.replace(b"\\\\", b"__").replace(b'\\"', b"__"), np.uint8)
        if len(signs):
            in_text = np.bitwise_xor.accumulate((signs == ord('"')).view(np.uint8)) ^ inside
            inside = in_text[-1]
            found = np.flatnonzero((in_text == 0) & ((_STEPS[signs] != 0) | (signs == _COMMA)))
            steps = _STEPS[signs[found]]
            levels = np.cumsum(steps) + depth
            depth = int(levels[-1]) if len(levels) else depth
            outer = ((steps == 1) & (levels == 1)) | ((steps == 0) & (levels == 1)) | ((steps == -1) & (levels <= 0))
            for which in np.flatnonzero(outer):
                yield at + int(found[which]), int(steps[which]), int(levels[which])
        at += len(part)
    if depth or inside:
        raise ValueError("it has no end")
