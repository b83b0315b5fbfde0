"""What is wrong with a request, read from the words of many endpoints."""

import json
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
from memories.llm.backends.complaints import FormRefusedError, decoded, failure, failure_within
from tests.each import each


def error(message: str, code: Any = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


TOO_LONG = [
    error("This model's maximum context length is 8192 tokens. However, your messages and schemas have 9000 tokens."),
    error("prompt is too long: 210000 tokens > 200000 maximum"),
    error("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    error("Invalid request: Your request exceeded model token limit: 8192"),
    error("Input is too long for requested model."),
    error("The text exceeds the number of tokens that the model can handle: 128001"),
    error("This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
    error("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"),
    error("Prompt 超长", "1261"),
    error("请求参数错误", 1261),
    error("输入内容过长，请缩短后重试"),
    error("输入token数量超过模型上限"),
    error("The decoder prompt (length 9001) is longer than the maximum model length of 8192."),
    error("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"),
    error("Input validation error: `inputs` must have less than 1024 tokens. Given: 2000"),
    error("request (9000 tokens) exceeds the available context size (8192 tokens)", 400),
    error("too many tokens: total number of tokens in the prompt cannot exceed 4081"),
    error("the input length exceeds the context length"),
    error("length of prompt_tokens (9000) must be less than max_seq_len (8192).", 20015),
    error("Invalid 'messages[1].content': string too long.", "string_above_max_length"),
    error("Please reduce the length of the messages."),
]  # fmt: skip
REFUSED = [
    error("Content Exists Risk"),
    error("<400> DataInspectionFailed: Input data may contain inappropriate content.", "data_inspection_failed"),
    error("系统检测到输入或生成内容可能包含不安全或敏感内容", "1301"),
    error("error", 1301),
    error("Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"),
    error("The request failed because the input text may contain sensitive information.", "SensitiveContentDetected"),
    error("The request was rejected because it was considered high risk", "content_filter"),
    error("The prompt triggered Azure OpenAI's content management policy.", "content_filter"),
    error("Output blocked by content filtering policy"),
    error("Your request was rejected as a result of our safety system."),
    error("Content violates usage guidelines."),
    error("The prompt contains prohibited content."),
    error("Blocked by guardrail"),
    error("您的输入包含违规信息"),
]  # fmt: skip
NAMES_THE_FORM = [
    error("This response_format type is unavailable now"),
    error("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
    error("json mode is not supported"),
    error("Structured outputs are not available for this model"),
    error("'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."),
    error("The specified schema produces a constraint that has too many states for serving."),
    error("The schema is too large"),
    {"detail": [{"loc": ["body", "response_format"], "msg": "Not permitted", "input": {"messages": "too long"}}]},
]  # fmt: skip
OTHERS = [
    error("no"),
    error("Failed to generate JSON. Please adjust your prompt. See 'failed_generation'.", "json_validate_failed"),
    {"error": {"message": "Generated JSON does not match the expected schema", "failed_generation": "{"}},
    error("Unsupported parameter: 'max_tokens'"),
    error("The model `m` does not exist. Model names are case-sensitive.", "model_not_found"),
    error("You exceeded your token quota"),
    {"error": {"message": "no", "input": "my context length is sensitive"}},
    "<html>Your request is too long a story</html>"[:6],
]


def kind(status: int, body: Any) -> Any:
    found = failure(status, body)
    return found.named if isinstance(found, FormRefusedError) else type(found)


@each(
    ("bodies", "expected"),
    [(TOO_LONG, ModelAnswerTruncated), (REFUSED, ModelRefused), (NAMES_THE_FORM, True), (OTHERS, False)],
)
def test_400(bodies: list[Any], expected: Any) -> None:
    assert [(body, found) for body in bodies if (found := kind(400, body)) is not expected] == []


@each("body", [*TOO_LONG, *REFUSED])
def test_a_router_passes_the_words_of_another_on(body: dict[str, Any]) -> None:
    raw = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps(body)}}}
    assert isinstance(failure_within(raw["error"]), ModelAnswerTruncated | ModelRefused)


@each(
    ("status", "message", "expected"),
    [
        (401, "sensitive", ModelMisconfigured),
        (402, "You requested up to 9000 tokens, but can only afford 10", ModelMisconfigured),
        (403, "no", ModelMisconfigured),
        (403, "response_format is not allowed for this key", ModelMisconfigured),
        (403, "Input was flagged by moderation", ModelRefused),
        (404, "no", ModelMisconfigured),
        (404, "No endpoints found that support response_format", True),
        (413, "no", ModelAnswerTruncated),
        (429, "You exceeded your tokens per minute", ModelRateLimited),
        (429, "Request too large for m on tokens per min", ModelAnswerTruncated),
        (451, "The content is illegal: content policy", ModelRefused),
        (500, "no", ModelUnavailable),
        (500, "response_format", ModelUnavailable),
        (500, "the prompt exceeds the context window", ModelAnswerTruncated),
        (503, "no", ModelUnavailable),
    ],
)
def test_other_statuses(status: int, message: str, expected: Any) -> None:
    assert kind(status, error(message)) is expected


@each("status", [403, 500])
def test_a_page_of_an_error_says_nothing_of_the_request(status: int) -> None:
    assert kind(status, "<html>blocked by content policy</html>") is not ModelRefused
    assert kind(status, error("blocked by content policy")) is ModelRefused


@each(
    ("said", "expected"),
    [
        ({"message": "no", "code": 429}, ModelRateLimited),
        ({"message": "no", "code": "503"}, ModelUnavailable),
        ({"message": "no", "code": 401}, ModelMisconfigured),
        ({"message": "rate limited"}, ModelRateLimited),
        ({"message": "The engine is overloaded"}, ModelUnavailable),
        ({"message": "no"}, ModelAnswerInvalid),
        ({"message": "no", "code": 7}, ModelAnswerInvalid),
        ({"message": "no", "code": "４²９"}, ModelAnswerInvalid),
        ("prompt is too long", ModelAnswerTruncated),
        ({"status_code": 1026, "status_msg": "input new_sensitive"}, ModelRefused),
        ({"status_code": 1039, "status_msg": "no"}, ModelAnswerTruncated),
        (["no"], ModelAnswerInvalid),
    ],
)
def test_an_error_in_the_place_of_an_answer(said: Any, expected: type[ModelError]) -> None:
    assert type(failure_within(said)) is expected


def test_words_are_read_through_the_escapes_of_json() -> None:
    assert kind(400, decoded('{"error": {"message": "\\u654f\\u611f"}}')) is ModelRefused


def test_deep_bodies_end() -> None:
    assert kind(400, decoded('{"error":' * 50_000)) is False
    assert kind(400, decoded('{"a":' * 500 + '"too long"' + "}" * 500)) is False
