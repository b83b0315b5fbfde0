"""What a file of an import holds, measured as bodies of the API are: size, depth and count, before anything is built.

How large a file is, is its owner's matter. What it holds is split in its bytes: the members of a list, or lines. Each
of these is measured by itself, and one that is too much is refused by itself. What is made of it for the hub is then
read as strictly as the body of a request.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memories.api import documents
from memories.exceptions import InvalidInput

# A conversation of an export becomes several requests, and has more beside each message than a request.
_TIMES = 10
_CHUNK = 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_OPENS, _CLOSES, _COMMA = b"[{", b"]}", ord(",")
_STEPS = np.zeros(256, np.int32)
_STEPS[list(_OPENS)], _STEPS[list(_CLOSES)] = 1, -1


class RefusedDocumentError(Exception):
    """What is wrong with a memory or a file, as a code with its place, without a word of it."""


Outcome = dict[str, Any] | RefusedDocumentError


def list_in(path: Path) -> Iterator[Outcome]:
    """The objects of a JSON list, or why one is too much. What is no object is an empty one.

    Errors: OSError, ValueError when it is no list.
    """
    return map(_outcome, _of_list(_read(path)))


def lines_in(path: Path) -> Iterator[Outcome]:
    """The same of JSON lines, of which one at a time is read."""
    with path.open("rb") as lines:
        yield from (_outcome(line.removeprefix(_BOM)) for line in lines if line.strip())


def documents_in(path: Path, refused: Counter[str], *, lists: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects of a JSON list, of the list in one of the members `lists`, of JSON lines, or an object alone. What is
    too much is counted in `refused`. Errors: OSError, ValueError when it is none of these.
    """
    for found in map(_outcome, _split(_read(path), lists)):
        if isinstance(found, RefusedDocumentError):
            refused[str(found)] += 1
        else:
            yield found


def document_in(path: Path) -> dict[str, Any]:
    """The object in a file. Errors: OSError, ValueError, RefusedDocumentError."""
    body = _read(path)
    if not body.startswith(b"{"):
        raise ValueError("it holds no object")
    return _built(body)


def checked(expected: type[Any], document: Any) -> dict[str, Any]:
    """The document as the operation with this serializer reads its body. Errors: RefusedDocumentError."""
    try:
        return documents.read(expected, document)
    except InvalidInput as error:
        faults = (f"{fault.pointer} {fault.code}".strip() for fault in error.faults)
        raise RefusedDocumentError(", ".join(faults)) from error


def _read(path: Path) -> bytes:
    return path.read_bytes().removeprefix(_BOM).strip()


def _outcome(document: bytes) -> Outcome:
    try:
        return _built(document)
    except RefusedDocumentError as error:
        return error


def _built(document: bytes) -> dict[str, Any]:
    """Errors: RefusedDocumentError, ValueError."""
    try:
        documents.check_measure(document, times=_TIMES)
    except InvalidInput as error:
        raise RefusedDocumentError(error.faults[0].code) from error
    found = json.loads(document.decode())
    return found if isinstance(found, dict) else {}


def _split(body: bytes, lists: Sequence[str]) -> Iterator[bytes]:
    """The documents of a file. Errors: ValueError."""
    first, _, rest = body.partition(b"\n")
    if not body or (rest and first.startswith(b"{") and _is_whole(first)):
        return filter(None, map(bytes.strip, body.splitlines()))
    if body.startswith(b"{"):
        named = (_member(body, name) for name in lists)
        found = next((one for one in named if one.startswith(b"[")), None)
        return iter([body]) if found is None else _of_list(found)
    return _of_list(body)


def _of_list(body: bytes) -> Iterator[bytes]:
    """Errors: ValueError."""
    if not body.startswith(b"["):
        raise ValueError("it holds no list")
    places = _members(body)
    return (body[start:end] for start, end in places)


def _is_whole(line: bytes) -> bool:
    try:
        _members(line.strip())
    except ValueError:
        return False
    return True


def _member(body: bytes, name: str) -> bytes:
    """The value of the member of an object; nothing where it has none."""
    wanted = json.dumps(name).encode()
    for start, end in _members(body):
        key, _, value = body[start:end].partition(b":")
        if key.strip() == wanted:
            return value.strip()
    return b""


def _members(body: bytes) -> list[tuple[int, int]]:
    """Where the members of the list or object are that these bytes are. Errors: ValueError when it has no end."""
    places: list[tuple[int, int]] = []
    start = depth = 0
    inside = np.uint8(0)
    # Of the same length, so that places stay.
    plain = body.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    for first in range(0, len(plain), _CHUNK):
        part = np.frombuffer(plain, np.uint8, min(_CHUNK, len(plain) - first), first)
        in_text = np.bitwise_xor.accumulate((part == ord('"')).view(np.uint8)) ^ inside
        inside = in_text[-1]
        found = np.flatnonzero((in_text == 0) & ((_STEPS[part] != 0) | (part == _COMMA)))
        steps = _STEPS[part[found]]
        levels = np.cumsum(steps) + depth
        depth = int(levels[-1]) if len(levels) else depth
        for place in found[((steps == 1) & (levels == 1)) | ((steps == 0) & (levels == 1)) | (levels == 0)]:
            at = first + int(place)
            if body[at] not in _OPENS and (body[at] == _COMMA or places or body[start:at].strip()):
                places.append((start, at))
            start = at + 1
    if depth or inside or start != len(body):
        raise ValueError("it has no end")
    return places
