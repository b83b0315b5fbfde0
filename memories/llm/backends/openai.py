"""Any OpenAI-compatible endpoint, by Chat Completions."""

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from time import monotonic
from typing import Any, cast

import httpx2
import openai

# The library would load it with its first call, in each process of the pool.
import openai.resources.chat.completions
from openai.types.chat import ChatCompletionMessageParam

from memories.conf import LLMConfig
from memories.exceptions import (
    ModelAnswerInvalid,
    ModelError,
    ModelMisconfigured,
    ModelTimeout,
    ModelUnavailable,
)
from memories.llm.answers import A, AnswerFormat, parse
from memories.llm.backends import chat_completion, complaints
from memories.llm.backends.chat_completion import Growing, Reply
from memories.llm.backends.complaints import FormRefusedError
from memories.llm.backends.openai_client import client_of as _client
from memories.llm.backends.retry_after import seconds_to_wait
from memories.llm.backends.transport import deadline
from memories.llm.calls import Call, Completion, Written
from memories.llm.prompts.framing import Message

_FORMS = ("json_schema", "json_object", "text")
# The first form of the request that an endpoint and model have not refused, for as long as the process lives.
_first_form: dict[tuple[str, str], int] = {}
# What an endpoint and model call the most tokens of an answer; most know the older name.
_LIMITS = ("max_tokens", "max_completion_tokens")
_limit_of: dict[tuple[str, str], str] = {}
# How an endpoint and model are asked for a stream: the first way that they have not refused.
_STREAMS: tuple[Mapping[str, Any], ...] = (
    {"stream": True, "stream_options": {"include_usage": True}},
    {"stream": True},
    {},
)
_stream_of: dict[tuple[str, str], int] = {}
_MALFORMED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.NOT_IMPLEMENTED)
_DATA = b"data:"

# The question that tells an endpoint that is down from a batch that it fails at.
_HARMLESS: list[Message] = [{"role": "user", "content": "Answer with the word OK."}]


class LimitRefusedError(Exception):
    """The model takes the most tokens of an answer by its newer name."""


class StreamRefusedError(Exception):
    """The endpoint answers in no stream (`way` 2), or does not count the tokens of one (1)."""

    def __init__(self, way: int) -> None:
        super().__init__()
        self.way = way


def complete(call: Call[A]) -> Completion[A]:
    """Ask with a JSON schema; where the endpoint refuses that, for any JSON object; then in plain words.

    The process remembers a form that was refused by name. Other complaints may be about this prompt.
    """
    asking = _asked(call, streams=False)
    while True:
        try:
            next(asking)
        except StopIteration as end:
            completion: Completion[A] = end.value
            return completion


def stream(call: Call[A]) -> Generator[Written, None, Completion[A]]:
    """As complete(), with what is written so far each time that more of it comes. An endpoint that refuses a stream,
    or that answers without one, is waited for. The connection ends with the generator."""
    return _asked(call, streams=True)


def _asked(call: Call[A], *, streams: bool) -> Generator[Written, None, Completion[A]]:
    key = (call.config.base_url, call.config.model)
    form = _first_form.get(key, 0)
    for number in range(1, call.max_calls + 1):
        call.before_call()
        try:
            limit = {} if call.most_tokens is None else {_limit_of.get(key, _LIMITS[0]): call.most_tokens}
            way = _STREAMS[_stream_of.get(key, 0) if streams else -1]
            given = {**_response_format(call.answer, _FORMS[form]), **limit, **way}
            reply = yield from _replied(call, given)
        except LimitRefusedError:
            _limit_of[key] = _LIMITS[1]
            continue
        except StreamRefusedError as refusal:
            _stream_of[key] = refusal.way
            continue
        except FormRefusedError as refusal:
            form = _next_form(key, form, is_named=refusal.named)
            continue
        return Completion(
            answer=_parsed(reply, call.answer),
            model=call.config.model,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            calls=number,
        )
    raise ModelAnswerInvalid("No model call is left to ask in a simpler form.")


def check(config: LLMConfig) -> None:
    """Have it say a word, in the plainest form there is; raises ModelError when it does not even answer that."""
    try:
        with deadline(config.timeout):
            answer = _sent(config, _HARMLESS, {}).content
        chat_completion.read(answer)
    except FormRefusedError:
        raise ModelMisconfigured("The model endpoint refused the request in every form.") from None


def _next_form(key: tuple[str, str], refused: int, *, is_named: bool) -> int:
    if refused + 1 == len(_FORMS):
        # It was not about the form: the next batch starts from the top.
        _first_form.pop(key, None)
        raise ModelMisconfigured("The model endpoint refused the request in every form.")
    if is_named and _first_form.get(key, 0) == refused:
        _first_form[key] = refused + 1
    return refused + 1


def _parsed(reply: Reply, answer: AnswerFormat[A]) -> A:
    """The answer in the first of the reply's texts that has one."""
    for text in reply.texts:
        try:
            return parse(text, answer)
        except ModelAnswerInvalid as error:
            failure = error
    failure.prompt_tokens, failure.completion_tokens = reply.prompt_tokens, reply.completion_tokens
    raise failure


def _with_picture(call: Call[A]) -> Sequence[Mapping[str, Any]]:
    """The messages; the last one with its picture, if there is one."""
    if not call.picture:
        return call.messages
    *before, last = call.messages
    parts = [{"type": "text", "text": last["content"]}, {"type": "image_url", "image_url": {"url": call.picture}}]
    return [*before, {"role": last["role"], "content": parts}]


def _replied(call: Call[A], given: Mapping[str, Any]) -> Generator[Written, None, Reply]:
    """What the endpoint answers to this form of the request; before that, what is written of it."""
    until = monotonic() + call.config.timeout
    with deadline(call.config.timeout, call.has_left):
        response = _sent(call.config, _with_picture(call), given)
    if "stream" not in given:
        return chat_completion.read(response.content)
    try:
        parts = _parts(response, until, call)
        if "event-stream" not in response.headers.get("content-type", ""):
            return chat_completion.read(b"".join(parts))
        growing = Growing()
        for data in _events(parts):
            growing.add(data)
            yield growing
    finally:
        response.close()
    return growing.reply()


def _parts(response: httpx2.Response, until: float, call: Call[A]) -> Iterator[bytes]:
    """The body as it comes. The deadline holds while it is waited for, and not for what is done between two parts."""
    parts = response.iter_bytes()
    while True:
        try:
            with deadline(until - monotonic(), call.has_left):
                part = next(parts, None)
        except httpx2.TimeoutException:
            failure: ModelError = ModelTimeout()
        except (httpx2.HTTPError, OSError):
            failure = ModelUnavailable()
        else:
            if part is None:
                return
            yield part
            continue
        raise failure


def _events(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The data of each event: with Chat Completions it is one line. The connection may stay open behind the last."""
    rest = b""
    for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.startswith(_DATA):
                data = line[len(_DATA) :].strip()
                if data == b"[DONE]":
                    return
                yield data


def _sent(config: LLMConfig, messages: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> httpx2.Response:
    """The answer, of which a stream is not read; openai's and httpx2's exceptions end here, with the prompts that they
    may hold."""
    try:
        client = _client(os.getpid(), config.base_url, config.api_key, entered=config.entered, guarded=config.guarded)
        response = client.chat.completions.with_raw_response.create(
            model=config.model,
            messages=cast(Iterable[ChatCompletionMessageParam], messages),
            timeout=config.timeout,
            **given,
        )
        return response.http_response
    except openai.APIStatusError as error:
        failure: Exception = _failure(error, streams="stream" in given)
    except openai.APITimeoutError:
        failure = ModelTimeout()
    except (openai.OpenAIError, OSError):
        failure = ModelUnavailable()
    except (httpx2.InvalidURL, ValueError):
        failure = ModelMisconfigured("The address or the key of the endpoint cannot be used in a request; check both.")
    raise failure


def _response_format(answer: AnswerFormat[A], form: str) -> Mapping[str, Any]:
    if form == "json_schema":
        schema = {"name": answer.name, "strict": True, "schema": answer.schema}
        return {"response_format": {"type": form, "json_schema": schema}}
    return {"response_format": {"type": form}} if form == "json_object" else {}


def _failure(
    error: openai.APIStatusError, *, streams: bool
) -> ModelError | FormRefusedError | LimitRefusedError | StreamRefusedError:
    response = error.response
    body = complaints.decoded(response.content.decode(errors="replace"))
    if error.status_code == HTTPStatus.BAD_REQUEST and complaints.names_newer_limit(body):
        return LimitRefusedError()
    if streams and error.status_code in _MALFORMED and (named := complaints.names_stream(body)):
        return StreamRefusedError(1 if named == "usage" else 2)
    return complaints.failure(error.status_code, body, retry_after=seconds_to_wait(response.headers))
