"""What an endpoint says is wrong with a request: its length, its content, the form that is asked for, or the endpoint.

Endpoints agree neither on a status nor on a code. So their words are read, as kinds and not as whole sentences. What
they say goes nowhere else, because it may repeat the prompt.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from memories.exceptions import (
    ModelAnswerInvalid,
    ModelAnswerTruncated,
    ModelError,
    ModelMisconfigured,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
)

_MOST_READ = 4_000
_DEEPEST = 6
# Below these keys an endpoint repeats what it was asked, or what the model had written.
_REPEATED = {"input", "failed_generation", "messages", "prompt", "body", "request", "flagged_input"}
# Keys whose numbers mean something; others count tokens and seconds.
_CODES = {"code", "status_code", "error_code"}

# Zhipu 1261, MiniMax 1039, SiliconFlow 20015, Spark 10907.
_LENGTH_CODES = {"1261", "1039", "20015", "10907"}
# Zhipu 1301, MiniMax 1026 and 1027, Spark 10013 and 10014.
_CONTENT_CODES = {"1301", "1026", "1027", "10013", "10014"}
_INPUT = r"(?:prompt|input|request|message|query|text|sequence|conversation|contents?|payload)s?"
_TOO_MUCH = (
    r"exceed|maxim|\bmax|limit|at most|(?:greater|longer|larger|more|less|fewer) than|too (?:many|long|large)|<="
)
# Of the length of a prompt alone.
_TOO_LONG = re.compile(
    r"context[\s_-]?(?:length|size|window|limit)|max_model_len|max_seq_len|(?:model|sequence) length"
    rf"|tokens?\b[^\n]{{0,80}}(?:{_TOO_MUCH})|(?:{_TOO_MUCH})[^\n]{{0,80}}\btokens?\b"
    rf"|\b{_INPUT}[\s_](?:tokens?[\s_])?(?:length|size|count)|\b(?:length|size) of (?:the |your )?{_INPUT}\b"
    rf"|\b{_INPUT}\b[^\n]{{0,40}}(?:too (?:long|large|big)|exceeds?\b)|(?:input|prompt|request)_too_(?:long|large)"
    r"|reduce the length|shorten (?:the|your)|above_max_length"
    r"|(?:超过|超出|超长|过长|太长)|(?:长度|字数|token)[^\n]{0,20}(?:限制|上限|最大)|長すぎ|超え"
)
# What limits tokens as well, and no shorter prompt helps.
_ALLOWANCE = re.compile(
    r"quota|balance|credit|billing|per (?:minute|day|hour|month)|\b[tr]p[md]\b|access token|api token"
    r"|额度|余额|欠费|频率"
)
_TOO_LARGE = re.compile(r"\b(?:request|prompt|input)\b[^\n]{0,40}too (?:large|long)")
_FILTERED = re.compile(
    r"content[\s_-]?(?:filter|polic|violation|moderation|management|safety|risk|exists risk|security|check)"
    r"|data[\s_-]?inspection|inappropriate|(?<!case )(?<!case-)sensitive|moderation|\bflagged|invalid_prompt"
    r"|(?:usage|safety|acceptable use|content|community) (?:polic|guideline|standard)|policy[\s_]violation"
    r"|violat\w*\b[^\n]{0,60}(?:polic|guideline|terms|standard|law)|responsible\s?ai|guardrail|jailbreak"
    r"|prohibited[\s_]content|\bsafety\b|safety_|\bunsafe\b|\bharmful\b|high risk|risk[\s_]control|illegal content"
    r"|\b(?:prompt|input|content|message|output|answer|response)s?\b[^\n]{0,40}\bblock|block[\s_]?reason"
    r"|敏感|违规|违法|不安全|不合规|不当内容|风控|存在风险|高风险|内容安全|安全策略|内容审核|审核[^\n]{0,6}(?:不|未)|有害"
)
_FORM = re.compile(
    r"response[\s_]?format|response_?schema|response_?mime|json[\s_-]?(?:schema|object|mode)|schema"
    r"|structured[\s_-]?outputs?|guided[\s_]|\bgrammar\b|requested parameters"
)
# "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
_NEWER_LIMIT = re.compile(r"\bmax_tokens\b[^\n]{0,80}\bmax_completion_tokens\b")
# The model's answer did not fit the form: nothing is wrong with the form itself.
_ILL_FORMED = re.compile(r"json_validate_failed|failed[\s_](?:to generate|generation)|generated json")
# "Unrecognized request argument supplied: stream_options", "stream is not supported".
_USAGE_OF_STREAM = re.compile(r"stream_options|include_usage")
_STREAM = re.compile(r"\bstream(?:ed|ing|s)?\b")
_STATUS = re.compile(r"[45][0-9]{2}")
_BUSY = re.compile(r"rate[\s_-]?limit|too many requests|throttl|限流|频率|频繁")
_DOWN = re.compile(r"overloaded|unavailable|time[d\s_]?\s?out|internal (?:server )?error|server_error|bad gateway|繁忙")
_TOO_LONG_AT_ALL = re.compile(r"too (?:long|large|big)")


class FormRefusedError(Exception):
    """The endpoint will not take this form of the request, or will take none.

    `named`: it says that the form is the reason, which holds for everybody's requests.
    """

    def __init__(self, *, named: bool) -> None:
        super().__init__()
        self.named = named


def names_newer_limit(body: Any) -> bool:
    """Whether the model takes the most tokens of an answer by its newer name alone."""
    return _NEWER_LIMIT.search(_Said(body).words) is not None


def names_stream(body: Any) -> str:
    """What an endpoint does not take of a request for a stream: "usage", "stream", or nothing that it says ("")."""
    words = _Said(body).words
    return "usage" if _USAGE_OF_STREAM.search(words) else "stream" if _STREAM.search(words) else ""


def failure(status: int, body: Any, *, retry_after: float | None = None) -> ModelError | FormRefusedError:
    """What a request failed of that was answered with an HTTP status of 300 or more.

    `body`: the decoded JSON of the answer, or its text. `retry_after`: seconds.
    """
    said = _Said(body)
    if status == 429 and not _TOO_LARGE.search(said.words):
        return ModelRateLimited(retry_after=retry_after)
    if status in (413, 429):
        return _too_long()
    # The words of a page of an error are not about the request; some give another's status as 500.
    may_be_about_it = status in (400, 422) or (said.is_json and status not in (401, 402))
    about = said.about() if may_be_about_it else None
    if isinstance(about, ModelError):
        return about
    if status >= 500 or status in (408, 409, 425):
        return ModelUnavailable(retry_after=retry_after)
    if about is None or status == 403:
        return FormRefusedError(named=False) if status in (400, 422) else ModelMisconfigured()
    return about


def failure_within(error: Any) -> ModelError | FormRefusedError:
    """What an error says that came with the status 200: routers put the status of another endpoint in its code."""
    code = str(error.get("code")) if isinstance(error, dict) else ""
    if _STATUS.fullmatch(code):
        return failure(int(code), error)
    said = _Said(error)
    if _BUSY.search(said.words):
        return ModelRateLimited()
    if _DOWN.search(said.words):
        return ModelUnavailable()
    return said.about() or ModelAnswerInvalid("The endpoint's answer is an error.")


def decoded(text: str) -> Any:
    """The JSON of an answer, or its text where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class _Said:
    """The strings of a body and its codes, without what it repeats of the request."""

    def __init__(self, body: Any) -> None:
        self.is_json = isinstance(body, dict | list)
        self.codes: set[str] = set()
        self.words = "\n".join(self._strings(body, 0))[:_MOST_READ].casefold()

    def about(self) -> ModelError | FormRefusedError | None:
        """What is wrong with the request, if it says so."""
        if _ILL_FORMED.search(self.words):
            return FormRefusedError(named=False)
        # Some name the tokens of the schema beside those of the messages.
        is_long = _TOO_LONG.search(self.words) and not _ALLOWANCE.search(self.words)
        if self.codes & _LENGTH_CODES or is_long:
            return _too_long()
        if self.codes & _CONTENT_CODES or _FILTERED.search(self.words):
            return ModelRefused()
        if _FORM.search(self.words):
            return FormRefusedError(named=True)
        return _too_long() if _TOO_LONG_AT_ALL.search(self.words) else None

    def _strings(self, value: Any, depth: int) -> Iterator[str]:
        if isinstance(value, str):
            yield from self._of_text(value, depth)
        elif isinstance(value, list) and depth < _DEEPEST:
            for one in value[:50]:
                yield from self._strings(one, depth + 1)
        elif isinstance(value, dict) and depth < _DEEPEST:
            for key, one in list(value.items())[:50]:
                if key in _CODES:
                    self.codes.add(str(one))
                if key not in _REPEATED:
                    yield from self._strings(one, depth + 1)

    def _of_text(self, text: str, depth: int) -> Iterator[str]:
        """The text, or what stands in it if it is the answer of another endpoint, as routers pass it on."""
        inner = decoded(text) if text.lstrip().startswith("{") and depth < _DEEPEST else text
        if inner is text or isinstance(inner, str):
            yield text
        else:
            yield from self._strings(inner, depth + 1)


def _too_long() -> ModelAnswerTruncated:
    return ModelAnswerTruncated("The prompt is longer than the endpoint or the model's context takes.")
