"""Any OpenAI-compatible endpoint, by Chat Completions."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import httpx2
import openai

# The library would load it with its first call, in each process of the pool.
import openai.resources.chat.completions
from openai.types.chat import ChatCompletionMessageParam

from memories.conf import LLMConfig
from memories.exceptions import (
    ModelAnswerInvalid,
    ModelAnswerTruncated,
    ModelError,
    ModelMisconfigured,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from memories.llm.answers import A, AnswerFormat, parse
from memories.llm.backends import chat_completion
from memories.llm.backends.openai_client import client_of as _client
from memories.llm.backends.retry_after import seconds_to_wait
from memories.llm.backends.transport import deadline
from memories.llm.calls import Call, Completion
from memories.llm.prompts.framing import Message

_FORMS = ("json_schema", "json_object", "text")
# The first form of the request that an endpoint and model have not refused, for as long as the process lives.
_first_form: dict[tuple[str, str], int] = {}

# Words of endpoints that do not agree on a code; they are looked for in the body of a 400 and go nowhere else.
_TOO_LONG = (
    "context_length",
    "context length",
    "context size",
    "context_size",
    "context window",
    "too many tokens",
)
_FILTERED = ("content_filter", "content_policy", "content management policy")


# The question that tells an endpoint that is down from a batch that it fails at.
_HARMLESS: list[Message] = [{"role": "user", "content": "Answer with the word OK."}]


class _FormRefusedError(Exception):
    """The endpoint will not take this form of the request, or will take none."""


def complete(call: Call[A]) -> Completion[A]:
    """Ask with a JSON schema; where the endpoint refuses that, for any JSON object; then in plain words."""
    key = (call.config.base_url, call.config.model)
    for number in range(1, call.max_calls + 1):
        form = _first_form.get(key, 0)
        call.before_call()
        try:
            body = _post(call.config, call.messages, _response_format(call.answer, _FORMS[form]))
            reply = chat_completion.read(body)
        except _FormRefusedError:
            _step_down(key, form)
            continue
        try:
            answer = parse(reply.text, call.answer)
        except ModelAnswerInvalid as error:
            error.prompt_tokens, error.completion_tokens = reply.prompt_tokens, reply.completion_tokens
            raise
        return Completion(
            answer=answer,
            model=call.config.model,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            calls=number,
        )
    raise ModelAnswerInvalid("No model call is left to ask in a simpler form.")


def check(config: LLMConfig) -> None:
    """Have it say a word, in the plainest form there is; raises ModelError when it does not even answer that."""
    try:
        _post(config, _HARMLESS, {})
    except _FormRefusedError:
        raise ModelMisconfigured("The model endpoint refused the request in every form.") from None


def _step_down(key: tuple[str, str], refused: int) -> None:
    if refused + 1 < len(_FORMS):
        _first_form[key] = refused + 1
        return
    # It was not about the form: the next batch starts from the top.
    _first_form.pop(key, None)
    raise ModelMisconfigured("The model endpoint refused the request in every form.")


def _post(config: LLMConfig, messages: Sequence[Message], response_format: Mapping[str, Any]) -> bytes:
    """The body of the answer; openai's and httpx2's exceptions end here, with the prompts that they may hold."""
    try:
        client = _client(os.getpid(), config.base_url, config.api_key, entered=config.entered, guarded=config.guarded)
        with deadline(config.timeout):
            response = client.chat.completions.with_raw_response.create(
                model=config.model,
                messages=cast(Iterable[ChatCompletionMessageParam], messages),
                timeout=config.timeout,
                **response_format,
            )
        return response.http_response.content
    except openai.APIStatusError as error:
        failure = _failure(error)
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


def _failure(error: openai.APIStatusError) -> ModelError | _FormRefusedError:
    status = error.status_code
    wait = seconds_to_wait(error.response.headers)
    if status == 429:
        return ModelRateLimited(retry_after=wait)
    if status >= 500 or status in (408, 409, 425):
        return ModelUnavailable(retry_after=wait)
    if status == 413:
        return ModelAnswerTruncated("The prompt is longer than the endpoint takes.")
    return _bad_request(error) if status in (400, 422) else ModelMisconfigured()


def _bad_request(error: openai.APIStatusError) -> ModelError | _FormRefusedError:
    body = error.response.text[:4_000].casefold()
    if any(words in body for words in _TOO_LONG):
        return ModelAnswerTruncated("The prompt is longer than the model's context.")
    if any(words in body for words in _FILTERED):
        return ModelRefused()
    return _FormRefusedError()
