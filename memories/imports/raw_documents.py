"""What a file of an import holds, measured as bodies of the API are: size, depth and count, before anything is built.

How large a file is, is its owner's matter: it is read some at a time, and only the places of what it holds are kept. It
is split in its bytes: the members of a list, or lines. Each of these is measured by itself, and one that is too much or
broken is refused by itself. Of a file that ends in the middle, what is whole is read, and it is said where it ends.
What is made of it for the hub is then read as strictly as the body of a request.
"""

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from django.conf import settings

from memories.api import documents
from memories.exceptions import InvalidInput
from memories.imports import findings
from memories.imports.findings import TOO_MANY, UnreadableError

# A conversation of an export becomes several requests, and has more beside each message than a request.
_TIMES = 10
# Where an object is expected there is something else; the file ends in the middle.
OTHER_FORM, CUT_OFF = findings.OTHER_FORM, "cut_off"
# Of one file.
MOST_DOCUMENTS = 10_000_000
_CHUNK = 1024 * 1024
_HEAD = 4096
_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_HALVES = re.compile("[\ud800-\udfff]")
# So many lines show whether a file whose beginning is broken is one of JSON lines.
_LINES_SEEN = 20
# So much of what has no end shows what it was.
_SHOWN = 64 * 1024
_OPENS, _COMMA = b"[{", ord(",")
_STEPS = np.zeros(256, np.int32)
_STEPS[list(_OPENS)], _STEPS[list(b"]}")] = 1, -1


def unsendable_in(text: str) -> str:
    """The code of the letters in a text that no text here can have; "" for none."""
    if "\0" in text:
        return "nul"
    return "surrogate" if _HALVES.search(text) else ""


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


class CutOffError(RefusedDocumentError):
    """The file ends early, at byte `at`: within what begins at `begins`, behind so many `whole` documents or rows."""

    def __init__(self, path: Path, at: int, begins: int, *, whole: int) -> None:
        within = f"within what begins at byte {begins:,}; {whole:,} before it are whole"
        super().__init__(CUT_OFF, hint=f"the file ends early, at byte {at:,}, {within}")
        self.path, self.at, self.begins, self.whole = path, at, begins, whole


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

    def __init__(self, places: Iterable[Place] = ()) -> None:
        """Errors: as append()."""
        self._bounds = array("Q")
        for place in places:
            self.append(place)

    def __len__(self) -> int:
        return len(self._bounds) // 2

    def __iter__(self) -> Iterator[Place]:
        return (Place(*self._bounds[at : at + 2]) for at in range(0, len(self._bounds), 2))

    def append(self, place: Place) -> None:
        """Errors: ValueError, beyond what memory should hold."""
        if len(self) >= MOST_DOCUMENTS:
            raise UnreadableError(TOO_MANY)
        self._bounds.extend(place)

    def pop(self) -> Place:
        """The last, which it has no more."""
        end, start = self._bounds.pop(), self._bounds.pop()
        return Place(start, end)


class Split(NamedTuple):
    """Where the documents of a file are, and why what stands behind them is not read."""

    places: Places
    fault: RefusedDocumentError | None = None


class Documents:
    """The documents of a file, of which only the places are in memory; each is built when it is asked for. The last is
    the `fault` of a file that goes on, or ends, otherwise than it should."""

    def __init__(self, path: Path, split: Split) -> None:
        self.path, self.places, self.fault = path, split.places, split.fault

    def __iter__(self) -> Iterator[Outcome]:
        with self.path.open("rb") as file:
            for place in self.places:
                yield built_at(file, place)
        if self.fault:
            yield self.fault


def lines_in(path: Path) -> Iterator[Outcome]:
    """The objects of JSON lines, of which one at a time is read, or why one is refused."""
    with path.open("rb") as file:
        for place in _lines(file, _whole(file)):
            yield built_at(file, place)


def places_of_lines(path: Path) -> Iterator[Line]:
    """The same, each with the byte at which it begins. A line that is still being written was cut off."""
    with path.open("rb") as file:
        whole = _whole(file)
        end, count = file.seek(0, 2), 0
        for count, place in enumerate(_lines(file, whole)):
            found = built_at(file, place)
            if place.end == end and isinstance(found, RefusedDocumentError) and found.code == "syntax":
                found = CutOffError(path, end, place.start, whole=count)
            yield Line(found, place.start)


def found_in(path: Path, *, lists: Sequence[str] = ()) -> Documents:
    """The objects of a JSON list, of the list in one of the members `lists`, of JSON lines, or an object alone.

    Errors: OSError, ValueError when it is none of these.
    """
    with path.open("rb") as file:
        return Documents(path, _split(path, file, lists))


def document_in(path: Path) -> dict[str, Any]:
    """The object in a file. Errors: OSError, RefusedDocumentError."""
    with path.open("rb") as file:
        place = _whole(file)
        found = built_at(file, place)
        fault = _members(path, file, place).fault if isinstance(found, RefusedDocumentError) else None
    if isinstance(found, RefusedDocumentError):
        raise fault if isinstance(fault, CutOffError) and found.code == "syntax" else found
    return found


def member_names(path: Path) -> list[str]:
    """The names of the members of the object that a file holds; none where it holds something else."""
    with path.open("rb") as file:
        place = _whole(file)
        if _read(file, place._replace(end=min(place.start + 1, place.end))) != b"{":
            return []
        return [name for name, _ in _named_members(path, file, place)]


def lists_in(path: Path) -> dict[str, Documents]:
    """Of the object in a file the members that are lists: where the documents of each are.

    Errors: OSError, ValueError.
    """
    with path.open("rb") as file:
        members = _named_members(path, file, _whole(file))
        found = {name: place for name, place in members if _read(file, place._replace(end=place.start + 1)) == b"["}
        return {name: Documents(path, _of_list(path, file, place)) for name, place in found.items()}


def beginning(path: Path) -> bytes:
    """The first bytes of a file: a name in it that stands there is one of its head."""
    with path.open("rb") as file:
        return file.read(_HEAD)


def unended_in(documents: Documents) -> dict[str, Any]:
    """What can be read of the beginning of the object in whose middle a file ends; nothing where it ends otherwise."""
    fault = documents.fault
    if not isinstance(fault, CutOffError):
        return {}
    with documents.path.open("rb") as file:
        shown = _read(file, Place(fault.begins, min(fault.at, fault.begins + _SHOWN))).decode("utf-8", "replace")
    try:
        found = json.loads(_ended(shown))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


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
        # A letter that no text can have is refused with what it stands in.
        found = json.loads(document.decode("utf-8", "surrogateescape"), strict=False)
    except InvalidInput as error:
        raise RefusedDocumentError(error.faults[0].code) from error
    except ValueError as error:
        raise RefusedDocumentError("syntax") from error
    if not isinstance(found, dict):
        raise RefusedDocumentError(OTHER_FORM)
    return found


def _ended(text: str) -> str:
    """The text up to its last whole value, with an end of all that is open there."""
    is_inside, is_escaped = False, False
    open_: list[str] = []
    last = 0
    for at, letter in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif is_inside:
            is_inside, is_escaped = letter != '"', letter == "\\"
        elif letter == '"':
            is_inside = True
        elif letter in "[{":
            open_.append("]" if letter == "[" else "}")
            last = at + 1
        elif letter in "]}" and open_:
            open_.pop()
            last = at + 1
        elif letter == ",":
            last = at
    # What is open changes only where something whole ends or begins.
    return text[:last] + "".join(reversed(open_))


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


def _split(path: Path, file: BinaryIO, lists: Sequence[str]) -> Split:
    """The documents of a file. Errors: ValueError."""
    whole = _whole(file)
    first = _read(file, Place(whole.start, min(whole.start + 1, whole.end)))
    if not first:
        return Split(Places())
    line = Place(whole.start, _line_end(file, whole))
    has_lines = line.end < whole.end
    if has_lines and first == b"{" and _is_whole(path, file, line):
        return _of_lines(path, file, whole)
    members = _members(path, file, whole) if first in (b"{", b"[") else Split(Places(), RefusedDocumentError("syntax"))
    if has_lines and members.fault and _has_whole_lines(path, file, whole):
        # Its first line is broken.
        return _of_lines(path, file, whole)
    if first != b"{":
        return _of_list(path, file, whole, members)
    return _of_object(path, file, whole, members, lists)


def _of_object(path: Path, file: BinaryIO, whole: Place, members: Split, lists: Sequence[str]) -> Split:
    """The list in one of the members `lists`, or the object alone."""
    for name, place in _named(file, members) if lists else ():
        if name in lists and _read(file, Place(place.start, place.start + 1)) == b"[":
            return _of_list(path, file, place)
    if not isinstance(members.fault, CutOffError):
        # Whatever follows it, it is refused as it is.
        return Split(Places([whole]))
    return Split(Places(), CutOffError(path, members.fault.at, whole.start, whole=0))


def _of_lines(path: Path, file: BinaryIO, whole: Place) -> Split:
    places = Places(_lines(file, whole))
    last = places.pop()
    is_cut = _read(file, Place(last.start, last.start + 1)) == b"{" and last.end == file.seek(0, 2)
    if is_cut and not _is_whole(path, file, last):
        return Split(places, CutOffError(path, last.end, last.start, whole=len(places)))
    places.append(last)
    return Split(places)


def _has_whole_lines(path: Path, file: BinaryIO, whole: Place) -> bool:
    first = islice(_lines(file, whole), _LINES_SEEN)
    return any(_read(file, Place(one.start, one.start + 1)) == b"{" and _is_whole(path, file, one) for one in first)


def _of_list(path: Path, file: BinaryIO, place: Place, members: Split | None = None) -> Split:
    """Errors: ValueError."""
    if _read(file, Place(place.start, min(place.start + 1, place.end))) != b"[":
        raise UnreadableError(findings.OTHER_FORM)
    return members or _members(path, file, place)


def _is_whole(path: Path, file: BinaryIO, line: Place) -> bool:
    end = line.end - (_read(file, Place(line.end - 1, line.end)) == b"\r")
    return not _members(path, file, line._replace(end=end)).fault


def _named_members(path: Path, file: BinaryIO, place: Place) -> Iterator[tuple[str, Place]]:
    """Name and place of the value of each member of an object, also of the last in whose middle it ends."""
    yield from _named(file, _members(path, file, place))


def _named(file: BinaryIO, members: Split) -> Iterator[tuple[str, Place]]:
    fault = members.fault
    last = [Place(fault.begins, fault.at)] if isinstance(fault, CutOffError) else []
    for start, end in chain(members.places, last):
        # A name is short, and what follows it may be everything.
        head = _read(file, Place(start, min(end, start + _HEAD)))
        key, colon, _ = head.partition(b":")
        if colon:
            at = start + len(key) + 1
            yield key.strip().strip(b'"').decode("utf-8", "replace"), _stripped(file, Place(at, end))


def _members(path: Path, file: BinaryIO, place: Place) -> Split:
    """Where the members are of the list or object that these bytes are. Errors: ValueError when there are too many."""
    places = Places()
    start, is_over = place.start, False
    for at, sign, level in _brackets(file, place):
        if is_over:
            break
        if sign > 0:
            start = at + 1
            continue
        # A comma between members, or the end of all.
        is_over = level == 0
        if not is_over or places or not _is_blank(file, Place(start, at)):
            places.append(Place(start, at))
        start = at + 1
    if not is_over:
        begins = _stripped(file, Place(start, place.end)).start
        return Split(places, CutOffError(path, place.end, begins, whole=len(places)))
    if start != place.end:
        return Split(places, RefusedDocumentError("syntax", hint=f"something follows its end, at byte {start:,}"))
    return Split(places)


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
