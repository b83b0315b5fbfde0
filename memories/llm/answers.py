"""From a model's text to a checked answer; pure, and nothing escapes but a ModelError."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from memories.exceptions import ModelAnswerInvalid

A = TypeVar("A", bound=BaseModel)

# Prose and code around an answer hold a few braces; text made of braces must not cost minutes.
_STARTS_TRIED = 1_000
# Whatever closes thinking: </think>, [/THINK], <|end|>, ◁/think▷, "…done thinking."; not what closes the answer.
_MARK = re.compile(
    r"</(?!answer|final|json|output|response|result)[\w:.|-]{1,40}>|\[/[\w:-]{1,40}\]"
    r"|<\|[^<>\n]{1,60}\|>|◁/?\w{1,40}▷|done thinking|assistantfinal",
    re.IGNORECASE,
)
_MARKS_TRIED = 20
# NUL and half a surrogate pair cannot be stored; whole pairs and other escapes are matched to be kept.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|(?P<nul>\\u0000)|\\."
)
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_BEFORE_ITEM = re.compile(r"[\s,]*(?=\{)")
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
    """The last JSON object in `text` that fits `answer`: those before it are drafts. Prose, code fences and thinking
    around it are skipped.

    Nothing is taken out of an object that does not end (a truncated answer), nor from before one; one level of
    wrapping is opened. Lone surrogates become U+FFFD and NUL goes. ModelAnswerInvalid when nothing fits, and when the
    last one says nothing after another that does, without a mark that this one was thinking.
    """
    text = _storable(text)
    # A brace that stands open in the thinking could swallow the answer.
    for mark in reversed(list(_MARK.finditer(text))[-_MARKS_TRIED:]):
        if found := _fitting(text, mark.end(), answer):
            return found[-1]
    found = _fitting(text, 0, answer)
    if not found:
        raise ModelAnswerInvalid
    *drafts, last = found
    if any(map(_says_something, drafts)) and not _says_something(last):
        raise ModelAnswerInvalid("The model answered twice, with something and with nothing.")
    return last


class GrowingItems:
    """The objects in one list of an answer that is still being written, each as soon as it is complete.

    Only of an answer that begins the text, or follows its thinking: behind other words nothing is certain before the
    end. What is broken ends it. parse() reads the whole.
    """

    def __init__(self, name: str) -> None:
        self._start = re.compile(rf'\s*(?:<think>.*?</think>\s*)?(?:```\w*\s*)?\{{\s*"{name}"\s*:\s*\[', re.DOTALL)
        self._place = 0

    def new_in(self, text: str) -> list[Any]:
        """Those that were not complete before in the text, which goes on."""
        if not self._place:
            begun = self._start.match(text)
            if begun is None:
                return []
            self._place = begun.end()
        found: list[Any] = []
        while (before := _BEFORE_ITEM.match(text, self._place)) is not None and "}" in text[before.end() :]:
            try:
                _, end = _DECODER.raw_decode(text, before.end())
                found.append(_DECODER.decode(_storable(text[before.end() : end])))
            except (ValueError, RecursionError):
                break
            self._place = end
        return found


def valid(items: Iterable[Any], kind: type[A]) -> Iterator[A]:
    """The items of an answer that are of this kind: one bad item loses no good one."""
    for raw in items:
        try:
            yield kind.model_validate(raw)
        except ValidationError:
            continue


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


def _fitting(text: str, start: int, answer: AnswerFormat[A]) -> list[A]:
    """The outermost objects from `start` on that fit, in their order; none before an answer that does not end."""
    fitting: list[A] = []
    place = text.find("{", start)
    for _ in range(_STARTS_TRIED):
        if place < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, place)
        except json.JSONDecodeError as error:
            # What was read of a broken object is skipped: no piece of a truncated answer is taken for one.
            end = max(error.pos, place + 1)
            # Without a name of the answer they are braces in prose.
            is_open = error.msg.startswith("Unterminated") or "}" not in text[error.pos :]
            if is_open and any(f'"{name}"' in text[place : error.pos] for name in answer.model.model_fields):
                fitting.clear()
        except RecursionError:
            raise ModelAnswerInvalid from None
        else:
            fitting += _fits(value, answer)
        place = text.find("{", end)
    return fitting


def _fits(value: dict[str, Any], answer: AnswerFormat[A]) -> list[A]:
    """The object if it fits, or else the objects directly in it that do."""
    whole = _fit(value, answer)
    inner = () if whole is not None else value.values()
    return [fit for fit in (whole, *(_fit(one, answer) for one in inner)) if fit is not None]


def _says_something(answer: BaseModel) -> bool:
    """Whether it has a text, an item of a list, or a part that is to change."""
    values = answer.model_dump().values()
    return any(bool(value.strip()) if isinstance(value, str) else _has_item(value) for value in values)


def _has_item(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_item, value.values()))
    return value is True or (isinstance(value, list) and bool(value))


def _fit(candidate: Any, answer: AnswerFormat[A]) -> A | None:
    if not isinstance(candidate, dict):
        return None
    try:
        return answer.model.model_validate(candidate)
    except (ValidationError, RecursionError):
        return None


# strict=False: small models write bare newlines inside strings. Python refuses to read integers of thousands of digits;
# no field takes them, but the rest is good.
_DECODER = json.JSONDecoder(
    strict=False, parse_int=lambda digits: int(digits) if len(digits) <= _LONGEST_INTEGER else math.inf
)
