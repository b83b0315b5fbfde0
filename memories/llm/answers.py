"""From a model's text to a checked answer; pure, and nothing escapes but a ModelError."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from memories.exceptions import ModelAnswerInvalid

A = TypeVar("A", bound=BaseModel)

# Prose and code around an answer hold a few braces; text made of braces must not cost minutes.
_STARTS_TRIED = 1_000
_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
# NUL and half a surrogate pair cannot be stored; whole pairs and other escapes are matched to be kept.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|(?P<nul>\\u0000)|\\."
)
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
# A little less than the largest float, so that any integer that is read can be compared with one.
_LONGEST_INTEGER = 300


@dataclass(frozen=True)
class AnswerFormat(Generic[A]):
    """The answer that a call asks for: the stable name and JSON schema of the request, the model that checks what
    comes back, and the text of an answer that says nothing."""

    name: str
    schema: Mapping[str, Any]
    model: type[A]
    empty: str


def parse(text: str, answer: AnswerFormat[A]) -> A:
    """The first JSON object in `text` that fits `answer`; prose, code fences, thinking around it are skipped.

    Nothing is taken out of an object that does not end (a truncated answer); one level of wrapping is opened.
    Lone surrogates become U+FFFD and NUL goes. ModelAnswerInvalid when nothing fits.
    """
    for found in _objects(_storable(text)):
        for candidate in (found, *found.values()):
            fitting = _fit(candidate, answer)
            if fitting is not None:
                return fitting
    raise ModelAnswerInvalid


def load_object(text: str) -> dict[str, Any]:
    """`text` as one JSON object, for envelopes; ModelAnswerInvalid when it is anything else."""
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise ModelAnswerInvalid from None
    if not isinstance(value, dict):
        raise ModelAnswerInvalid
    return value


def _storable(text: str) -> str:
    text = _LONE_SURROGATES.sub("\ufffd", text.replace("\0", ""))
    return _ESCAPE.sub(_storable_escape, text)


def _storable_escape(escape: re.Match[str]) -> str:
    if escape["lone"]:
        return "\\ufffd"
    return "" if escape["nul"] else escape[0]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every outermost JSON object, those after the model's thinking first."""
    spoken = _THOUGHTS.sub("", text)
    yield from _outermost(spoken)
    if spoken != text:
        # The answer itself may speak of </think>.
        yield from _outermost(text)


def _outermost(text: str) -> Iterator[dict[str, Any]]:
    place = text.find("{")
    for _ in range(_STARTS_TRIED):
        if place < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, place)
            yield value
        except json.JSONDecodeError as error:
            # What was read of a broken object is skipped: no piece of a truncated answer is taken for one.
            end = max(error.pos, place + 1)
        except RecursionError:
            raise ModelAnswerInvalid from None
        place = text.find("{", end)


def _fit(candidate: Any, answer: AnswerFormat[A]) -> A | None:
    if not isinstance(candidate, dict):
        return None
    try:
        return answer.model.model_validate(candidate)
    except (ValidationError, RecursionError):
        return None


def _integer(digits: str) -> int | float:
    """Python refuses to read integers of thousands of digits; no field takes them, but the rest is good."""
    return int(digits) if len(digits) <= _LONGEST_INTEGER else math.inf


# strict=False: small models write bare newlines inside strings.
_DECODER = json.JSONDecoder(strict=False, parse_int=_integer)
