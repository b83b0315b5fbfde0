"""Decodes what is inside data: escapes, hex and base64, zlib, gzip and zip, also inside one another.

Nothing is ever unpickled: a pickle holds its strings and ids as they are.
"""

import binascii
import re
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from itertools import chain
from typing import NamedTuple

# A task's payload is base64 of a compressed pickle, whose string may be JSON that holds escapes.
DEPTH = 6
LARGEST_STREAM = 64 << 20
LARGEST_LAYER = 256 << 20
SHORTEST_RUN = 16
_BETWEEN = b"\0\n\0"
_ESCAPES = re.compile(
    rb"(?P<u>(?:\\{1,4}u[0-9a-fA-F]{4})+)|(?P<x>(?:\\{1,4}x[0-9a-fA-F]{2}){2,})"
    rb"|(?P<url>(?:%[0-9a-fA-F]{2})+)|(?P<html>&(?:#[0-9]{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});)"
)
# Found first, because they are quick: each begins with a fixed character.
_SIGNS = tuple(
    re.compile(sign)
    for sign in (
        rb"\\u[0-9a-fA-F]{4}",
        rb"\\x[0-9a-fA-F]{2}\\{1,4}x[0-9a-fA-F]{2}",
        rb"%[0-9a-fA-F]{2}",
        rb"&[#a-zA-Z][0-9a-zA-Z]{1,7};",
    )
)
# Broken into lines as e-mails and PEM do it; a line's end is two characters where COPY wrote it.
# An id is left out by the pattern itself: a row has several, and nothing is inside.
_RUN = re.compile(
    rb"(?<![A-Za-z0-9+/_-])(?![0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![A-Za-z0-9+/_\\-]))"
    rb"[A-Za-z0-9+/_-]{%d,}(?:(?:\\r|\r)?(?:\\n|\n)[A-Za-z0-9+/_-]{4,})*={0,2}" % SHORTEST_RUN
)
_ESCAPE_LETTERS = frozenset(b"bfnrtv")
_LINE_END = re.compile(rb"\\r|\\n|\s")
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX = re.compile(rb"x?((?:[0-9a-fA-F]{2})+)")
_PACKED = re.compile(rb"x[\x01\x5e\x9c\xda]|\x1f\x8b\x08|PK\x03\x04")
_ZIP_HEADER_BYTES = 30


class DecodedPiece(NamedTuple):
    """What was decoded, and its place in the data; not whole when it is too large to unpack."""

    at: int
    data: bytes
    whole: bool = True


@dataclass
class Layer:
    """Everything decoded from the layer above; the outermost is the data itself."""

    data: bytes
    starts: list[int] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    whole: bool = True

    def origin(self, position: int) -> int:
        """The place in the outermost data of what is at this position."""
        return self.origins[bisect_right(self.starts, position) - 1] if self.starts else position


def layers(data: bytes) -> Iterator[Layer]:
    """The data, what is inside it, what is inside that …"""
    layer = Layer(data)
    for _ in range(DEPTH):
        yield layer
        layer = _next_layer(layer)
        if not layer.data:
            return
    yield layer


def _next_layer(layer: Layer) -> Layer:
    below, size = Layer(b"", whole=layer.whole), 0
    parts: list[bytes] = []
    for piece in chain(_unescaped(layer.data), _decoded(layer.data), _unpacked(layer.data)):
        if size + len(piece.data) > LARGEST_LAYER:
            below.whole = False
            break
        below.whole &= piece.whole
        below.starts.append(size)
        below.origins.append(layer.origin(piece.at))
        parts += (piece.data, _BETWEEN)
        size += len(piece.data) + len(_BETWEEN)
    below.data = b"".join(parts)
    return below


def _unescaped(data: bytes) -> Iterator[DecodedPiece]:
    """Each line that has escapes, without them."""
    done = 0
    for place in sorted(token.start() for sign in _SIGNS for token in sign.finditer(data)):
        if place >= done:
            start, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place)
            done = end if end >= 0 else len(data)
            yield DecodedPiece(start, _ESCAPES.sub(_unescape, data[start:done]))


def _unescape(token: re.Match[bytes]) -> bytes:
    text = token[0]
    if token["u"]:
        units = b"".join(bytes.fromhex(unit.decode()) for unit in re.findall(rb"u(....)", text))
        return units.decode("utf-16-be", "replace").encode()
    if token["x"]:
        return bytes.fromhex(text.replace(b"\\", b"").replace(b"x", b"").decode())
    if token["url"]:
        return bytes.fromhex(text.replace(b"%", b"").decode())
    return unescape(text.decode()).encode("utf-8", "replace")


def _decoded(data: bytes) -> Iterator[DecodedPiece]:
    for run in _RUN.finditer(data):
        yield from _pieces(run.start(), run[0])
        # The letter of an escape, as of a tab or the end of a line, is none of the value's.
        if run[0][0] in _ESCAPE_LETTERS and data.endswith(b"\\", 0, run.start()):
            yield from _pieces(run.start() + 1, run[0][1:])


def _pieces(start: int, run: bytes) -> Iterator[DecodedPiece]:
    lines = list(_lines(run))
    # The lines of one value, or rows of a table below each other, each encoded by itself: as both.
    for at, text in [(0, run), *lines] if len(lines) > 1 else lines:
        if not (len(text) == 36 and _UUID.fullmatch(text)):
            yield DecodedPiece(start + at, _decode(text))


def _lines(run: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of the run, each with its place in it."""
    start = 0
    for end in _LINE_END.finditer(run):
        if end.start() > start:
            yield start, run[start : end.start()]
        start = end.end()
    yield start, run[start:]


def _decode(text: bytes) -> bytes:
    hexadecimal = _HEX.fullmatch(text)
    if hexadecimal:
        return binascii.unhexlify(hexadecimal[1])
    return _from_base64(_LINE_END.sub(b"", text).rstrip(b"="))


def _from_base64(text: bytes) -> bytes:
    standard = text.replace(b"-", b"+").replace(b"_", b"/")
    # One digit over is half a byte: no encoder leaves that, and no decoder takes it.
    whole = standard[: len(standard) - (len(standard) % 4 == 1)]
    return binascii.a2b_base64(whole + b"=" * (-len(whole) % 4))


def _unpacked(data: bytes) -> Iterator[DecodedPiece]:
    done = 0
    for magic in _PACKED.finditer(data):
        # What is inside a stream's own bytes is no stream.
        if magic.start() < done:
            continue
        start, kind = _stream(data, magic.start(), magic[0])
        unpacker = zlib.decompressobj(kind)
        try:
            text = unpacker.decompress(data[start : start + LARGEST_STREAM], LARGEST_STREAM)
        except zlib.error:
            continue
        if text:
            rest = len(unpacker.unused_data) + len(unpacker.unconsumed_tail)
            done = min(len(data), start + LARGEST_STREAM) - rest
            yield DecodedPiece(magic.start(), text, whole=not unpacker.unconsumed_tail)


def _stream(data: bytes, at: int, magic: bytes) -> tuple[int, int]:
    """Where the compressed bytes begin, and of which kind zlib is to take them."""
    if magic != b"PK\x03\x04":
        return at, zlib.MAX_WBITS | 32
    name, extra = (int.from_bytes(data[at + place : at + place + 2], "little") for place in (26, 28))
    return at + _ZIP_HEADER_BYTES + name + extra, -zlib.MAX_WBITS
