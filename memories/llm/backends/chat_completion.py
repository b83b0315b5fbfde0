"""Reads the body of a chat completion, which may be anything at all."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memories.exceptions import ModelAnswerInvalid, ModelAnswerTruncated, ModelError, ModelRefused
from memories.llm.answers import load_object
from memories.llm.backends import complaints

# A column of the runs holds no more.
_MOST_TOKENS = 2**31 - 1
# Why a model stopped, in the words of several endpoints.
_STOPPED = {"length", "max_tokens", "model_length"}
_DECLINED = {"content_filter", "sensitive", "safety", "refusal", "prohibited_content", "blocklist", "recitation"}


@dataclass(frozen=True)
class Reply:
    """The texts in which the model may have answered, likeliest first, and its tokens as reported (0 when they were
    not)."""

    texts: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int


def read(body: bytes) -> Reply:
    """The first choice of a chat completion.

    ModelAnswerTruncated when it stopped at its length limit, ModelRefused when the model or a filter declined,
    ModelAnswerInvalid when there is no text or the body is no chat completion; what an error says that stands in the
    place of an answer (complaints.py). Each ModelError with the tokens as reported.
    """
    return read_envelope(_decoded(body))


def read_envelope(envelope: Mapping[str, Any]) -> Reply:
    """As read(), of a body that is decoded already."""
    usage = _mapping(envelope.get("usage"))
    read, written = _tokens(usage.get("prompt_tokens")), _tokens(usage.get("completion_tokens"))
    try:
        return Reply(_texts(envelope), prompt_tokens=read, completion_tokens=written)
    except ModelError as error:
        error.prompt_tokens, error.completion_tokens = read, written
        raise


class Growing:
    """A chat completion that comes in the pieces of a stream."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._arguments: dict[int, str] = {}
        self._choice: dict[str, Any] = {}
        self._rest: dict[str, Any] = {}

    @property
    def content(self) -> str:
        """The text of the answer so far."""
        return self._texts.get("content", "")

    @property
    def written(self) -> str:
        """All that the model wrote so far, which includes what it thought."""
        return "".join([*self._texts.values(), *self._arguments.values()])

    def add(self, data: bytes) -> None:
        """The data of one event. Errors: ModelAnswerInvalid."""
        piece = _decoded(data)
        choices = piece.get("choices")
        choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
        # Some that know no streams put the whole answer into one event.
        delta = _mapping(choice.get("delta")) or _mapping(choice.get("message"))
        for name in ("content", "reasoning_content", "reasoning", "refusal"):
            if text := _text(delta.get(name)):
                self._texts[name] = self._texts.get(name, "") + text
        calls = delta.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            number, arguments = _mapping(call).get("index"), _mapping(_mapping(call).get("function")).get("arguments")
            key = number if isinstance(number, int) else place
            if isinstance(arguments, str):
                self._arguments[key] = self._arguments.get(key, "") + arguments
        self._choice |= {name: choice[name] for name in ("finish_reason", "error") if choice.get(name)}
        self._rest |= {name: piece[name] for name in ("usage", "error", "base_resp") if piece.get(name)}

    def reply(self) -> Reply:
        """The answer, of which no more comes. Errors: as of read()."""
        calls = [{"function": {"arguments": said}} for said in self._arguments.values()]
        message = {**self._texts, "tool_calls": calls}
        return read_envelope({**self._rest, "choices": [{**self._choice, "message": message}]})


def _texts(envelope: Mapping[str, Any]) -> tuple[str, ...]:
    choices = envelope.get("choices")
    choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    message = _mapping(choice.get("message"))
    # How MiniMax says that a request failed.
    status = _mapping(envelope.get("base_resp"))
    if error := envelope.get("error") or choice.get("error") or (status if status.get("status_code") else None):
        raise complaints.failure_within(error)
    reason = str(choice.get("finish_reason")).casefold()
    if reason in _STOPPED:
        raise ModelAnswerTruncated
    if reason in _DECLINED or message.get("refusal"):
        raise ModelRefused
    content = _text(message.get("content"))
    # Some endpoints put an answer in a form into a call of a tool, though none is offered.
    texts = [content, *_arguments(message)]
    if not any(text.strip() for text in texts):
        # Some take the whole answer of a model that thinks for its thinking.
        texts = [_text(message.get(name)) for name in ("reasoning_content", "reasoning")]
    spoken = tuple(text for text in texts if text.strip())
    if not spoken:
        raise ModelAnswerInvalid("The endpoint's answer has no text.")
    return spoken


def _arguments(message: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of the calls, the last first."""
    calls = message.get("tool_calls")
    functions = [_mapping(_mapping(call).get("function")) for call in calls] if isinstance(calls, list) else []
    for function in reversed([_mapping(message.get("function_call")), *functions]):
        arguments = function.get("arguments")
        if arguments:
            yield arguments if isinstance(arguments, str) else json.dumps(arguments)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise ModelAnswerInvalid("The endpoint's answer is not UTF-8.") from None
    return load_object(text)


def _text(content: Any) -> str:
    """A string, or the text parts of a list, as some compatible servers send them; empty for anything else."""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if isinstance(_mapping(part).get("text"), str))
    return content if isinstance(content, str) else ""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _tokens(value: Any) -> int:
    return min(value, _MOST_TOKENS) if isinstance(value, int) and value >= 0 else 0
