"""Bodies and query strings, read strictly.

What PostgreSQL, UTF-8 or the stack cannot hold is refused here, with its place in the request. How many values a body
has and how deep they are nested is counted in its bytes: to build objects of them takes far more time and room.
"""

import json
import math
import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from django.conf import settings
from django.http import HttpRequest
from django.utils.http import parse_header_parameters
from gunicorn.http.errors import ParseException
from rest_framework.exceptions import APIException, UnsupportedMediaType
from rest_framework.parsers import BaseParser

from memories.api import shapes
from memories.api.shapes import MOST_VALUES
from memories.exceptions import Fault, InvalidInput

MAX_DEPTH = 64
# So deep the bytes are read; what is nested deeper than MAX_DEPTH is then told with its place.
_MOST_BRACKETS = 2 * MAX_DEPTH
MAX_INTEGER = 2**63 - 1
_DIGITS = 20
MAX_PARAMETERS = 50
# Parameters that may be given several times, each time with one or more words between commas.
LISTED = frozenset({"roles"})

# A longer step of a pointer is cut: an answer does not repeat what was sent.
_LONGEST_STEP = 200
# Only these can be what _inspect, _integer and _float look for: most bodies have none.
_ODD_TEXT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_ODD_NUMBER = re.compile(rb"[0-9]{19}|[0-9][eE][+]?[0-9]{3}")
_CHUNK = 1024 * 1024
_STEPS = np.zeros(256, np.int32)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1

# A place in a document: the place around it and the key there. Only an error writes it out as a pointer.
Place = tuple[Any, str | int] | None


class BodyTooLarge(APIException):
    status_code = 413
    default_code = "too_large"
    default_detail = "A body may be at most 10 MB; send the messages in several posts."


class StrictJSONParser(BaseParser):
    """One JSON object in UTF-8, at most 10 MB."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        """The decoded object. Errors: BodyTooLarge, UnsupportedMediaType, InvalidInput."""
        kind, parameters = parse_header_parameters(media_type or "")
        # REST framework lets wildcards through to here.
        if kind != self.media_type or parameters.get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
            raise UnsupportedMediaType(media_type or "")
        length = int(parser_context["request"].META["CONTENT_LENGTH"])
        if length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise BodyTooLarge
        body = stream.read(length)
        if len(body) < length:
            raise incomplete()
        operation = getattr(parser_context["view"], parser_context["request"].method.lower(), None)
        taken = getattr(operation, "takes_body", None)
        return self.decode(body, most=shapes.most_values(taken) if taken else MOST_VALUES)

    def decode(self, body: bytes, *, most: int = MOST_VALUES) -> dict[str, Any]:
        """The object in the body, of so many values. Errors: InvalidInput."""
        return decode(body, most=most)


def accept_chunked(request: HttpRequest) -> None:
    """Set the Content-Length of a chunked body, which comes without one: Django would read nothing."""
    chunked = "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower()
    if request.META.get("CONTENT_LENGTH") or not chunked or not request.META.get("wsgi.input_terminated"):
        return
    try:
        body = request.META["wsgi.input"].read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
    except (OSError, ParseException) as error:
        raise incomplete() from error
    request._stream = BytesIO(body)
    request.META["CONTENT_LENGTH"] = str(len(body))


def decode(body: bytes, *, most: int = MOST_VALUES) -> dict[str, Any]:
    """The JSON object in `body`. Errors: InvalidInput with a JSON pointer to the fault."""
    is_deep = measure(body, most=most) > MAX_DEPTH
    decoder = _STRICT_DECODER if _ODD_NUMBER.search(body) else _DECODER
    try:
        document = decoder.decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _fault(f"The body is not UTF-8: see byte {error.start}.", code="encoding") from error
    except json.JSONDecodeError as error:
        raise _fault(f"The body is not JSON: {error}.", code="syntax") from error
    except RecursionError as error:
        raise _too_deep(None) from error
    if not isinstance(document, dict):
        raise _fault("The body must be a JSON object.", code="not_an_object")
    if is_deep or _ODD_TEXT.search(body):
        _inspect(document)
    return document


def measure(body: bytes, *, most: int = MOST_VALUES) -> int:
    """How deep the document in these bytes is nested, or more. Nothing is built of it. Errors: InvalidInput."""
    openings = body.count(b"[") + body.count(b"{")
    if body.count(b",") + openings <= most and openings <= MAX_DEPTH:
        # Also if none of them is inside a text.
        return openings
    depth = values = deepest = 0
    for signs in _outside_texts(body):
        levels = np.cumsum(_STEPS[signs]) + depth
        values += int(np.count_nonzero(signs == ord(","))) + int(np.count_nonzero(_STEPS[signs] == 1))
        deepest = max(deepest, int(levels.max(initial=0)))
        depth = int(levels[-1]) if len(levels) else depth
        if values > most:
            detail = f"The body has more than {most:,} values: what its lists and objects have, together."
            raise _fault(detail, code="max_values")
        if deepest > _MOST_BRACKETS:
            raise _too_deep(None)
    return deepest


def _outside_texts(body: bytes) -> Iterator[Any]:
    """The brackets and commas that are not inside of a text, in order, some at a time."""
    # Without escapes each quote begins or ends a text.
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside = np.uint8(0)
    for start in range(0, len(body), _CHUNK):
        part = np.frombuffer(body, np.uint8, min(_CHUNK, len(body) - start), start)
        in_text = np.bitwise_xor.accumulate((part == ord('"')).view(np.uint8)) ^ inside
        inside = in_text[-1]
        found = part[in_text == 0]
        yield found[(_STEPS[found] != 0) | (found == ord(","))]


def parameters(request: HttpRequest) -> dict[str, str]:
    """Parameter name → value, without blank ones. Errors: InvalidInput with the parameter's name as its place."""
    raw = request.META.get("QUERY_STRING", "")
    try:
        # WSGI hands bytes over as Latin-1; curl sends Chinese unescaped.
        text = raw.encode("latin-1").decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        detail = f"The query string is not UTF-8 or has more than {MAX_PARAMETERS} parameters."
        raise InvalidInput.at("", detail, code="encoding") from error
    found: dict[str, str] = {}
    for name, value in pairs:
        if "\x00" in name or "\x00" in value:
            raise InvalidInput.at(name.replace("\x00", ""), "A parameter may not contain U+0000.", code="nul")
        if name in found and name not in LISTED:
            raise InvalidInput.at(name, "Give this parameter once.", code="repeated")
        found[name] = f"{found[name]},{value}" if name in found else value
    return {name: value for name, value in found.items() if value}


def refuse_parameters(request: HttpRequest) -> None:
    """For an operation that takes none. Errors: InvalidInput."""
    detail = "There is no such parameter. This operation takes none."
    faults = [Fault(name, "unknown_field", detail) for name in parameters(request)]
    if faults:
        raise InvalidInput(faults=faults)


def incomplete() -> InvalidInput:
    """A body that is shorter than it says."""
    return _fault("The body could not be read to its end.", code="incomplete")


def escape(key: object) -> str:
    """One step of a JSON pointer."""
    step = str(key)
    step = step if len(step) <= _LONGEST_STEP else f"{step[:_LONGEST_STEP]}…"
    return step.replace("~", "~0").replace("/", "~1")


def _inspect(document: Any) -> None:
    """Refuse NUL, lone surrogates and deep nesting anywhere. A loop, because depth must not exhaust the stack."""
    waiting: list[tuple[Any, Place, int]] = [(document, None, 1)]
    while waiting:
        value, place, depth = waiting.pop()
        if isinstance(value, str):
            _check_text(value, place)
        elif isinstance(value, dict):
            for key, item in value.items():
                _check_text(key, place)
                waiting.append((item, (place, key), depth + 1))
        elif isinstance(value, list):
            waiting.extend((item, (place, index), depth + 1) for index, item in enumerate(value))
        if depth > MAX_DEPTH and isinstance(value, dict | list):
            raise _too_deep(place)


def _check_text(text: str, place: Place) -> None:
    if "\x00" in text:
        raise _fault("Text may not contain the character U+0000.", code="nul", place=place)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        detail = "Text may not contain half of a surrogate pair."
        raise _fault(detail, code="surrogate", place=place) from error


def _integer(digits: str) -> int:
    # Count the digits first: Python refuses to read more than some thousands of them.
    if len(digits) > _DIGITS or abs(value := int(digits)) > MAX_INTEGER:
        raise _fault("An integer must fit into 64 bits.", code="number")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _fault("A number is too large.", code="number")
    return value


def _constant(name: str) -> None:
    raise _fault(f"{name} is not JSON.", code="number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _fault("An object names the same key twice.", code="duplicate_key")
    return found


def _too_deep(place: Place) -> InvalidInput:
    return _fault(f"The body is nested more than {MAX_DEPTH} levels deep.", code="depth", place=place)


def _fault(detail: str, *, code: str, place: Place = None) -> InvalidInput:
    """The error with the JSON pointer (RFC 6901) of its place; "" is the whole document."""
    pointer = ""
    while place is not None:
        place, key = place
        pointer = f"/{escape(key)}{pointer}"
    return InvalidInput.at(pointer, detail, code=code)


_DECODER = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_unique)
_STRICT_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_unique
)
