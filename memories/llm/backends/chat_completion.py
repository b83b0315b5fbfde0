"""Reads the body of a chat completion, which may be anything at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memories.exceptions import ModelAnswerInvalid, ModelAnswerTruncated, ModelError, ModelRefused
from memories.llm.answers import load_object

# A column of the runs holds no more.
_MOST_TOKENS = 2**31 - 1


@dataclass(frozen=True)
class Reply:
    """The text that the model wrote, and its tokens as reported (0 when they were not)."""

    text: str
    prompt_tokens: int
    completion_tokens: int


def read(body: bytes) -> Reply:
    """The first choice of a chat completion.

    ModelAnswerTruncated when it stopped at its length limit, ModelRefused when the model or a filter declined,
    ModelAnswerInvalid when there is no text or the body is no chat completion; each with the tokens as reported.
    """
    envelope = _decoded(body)
    usage = _mapping(envelope.get("usage"))
    read, written = _tokens(usage.get("prompt_tokens")), _tokens(usage.get("completion_tokens"))
    try:
        return Reply(_content(envelope), prompt_tokens=read, completion_tokens=written)
    except ModelError as error:
        error.prompt_tokens, error.completion_tokens = read, written
        raise


def _content(envelope: Mapping[str, Any]) -> str:
    choices = envelope.get("choices")
    choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    message = _mapping(choice.get("message"))
    if choice.get("finish_reason") == "length":
        raise ModelAnswerTruncated
    if choice.get("finish_reason") == "content_filter" or message.get("refusal"):
        raise ModelRefused
    return _text(message.get("content"))


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise ModelAnswerInvalid("The endpoint's answer is not UTF-8.") from None
    return load_object(text)


def _text(content: Any) -> str:
    """A string, or the text parts of a list, as some compatible servers send them."""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if isinstance(_mapping(part).get("text"), str))
    if not isinstance(content, str) or not content.strip():
        raise ModelAnswerInvalid("The endpoint's answer has no text.")
    return content


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _tokens(value: Any) -> int:
    return min(value, _MOST_TOKENS) if isinstance(value, int) and value >= 0 else 0
