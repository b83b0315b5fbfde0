"""Embeddings of any OpenAI-compatible endpoint: the request, the order, and every way of going wrong."""

import time

import pytest
from django.conf import LazySettings

from memories import conf
from memories.exceptions import (
    EmbeddingAnswerInvalid,
    EmbeddingError,
    EmbeddingMisconfigured,
    EmbeddingRefused,
    EmbeddingTimeout,
    EmbeddingUnavailable,
)
from memories.llm import embeddings
from tests.llm import endpoint as at
from tests.llm.endpoint import Endpoint, Response
from tests.llm.vectors_endpoint import DIMENSIONS, altered, sends_vectors, vector


@pytest.fixture(autouse=True)
def configured(settings: LazySettings, endpoint: Endpoint) -> None:
    settings.MEMORYHUB_EMBEDDINGS = "openai"
    settings.MEMORYHUB_EMBEDDING_MODEL = "m"
    settings.MEMORYHUB_EMBEDDING_BASE_URL = endpoint.url
    settings.MEMORYHUB_EMBEDDING_API_KEY = "sk-embedding"
    settings.OPENAI_API_KEY = "sk-of-another"
    endpoint.responds(sends_vectors())


def test_the_request(endpoint: Endpoint) -> None:
    rows = embeddings.embed(["a" * 2_000, ""])
    assert rows.shape == (2, DIMENSIONS)
    assert endpoint.requests == [{"model": "m", "input": ["a" * 1_000, " "], "encoding_format": "float"}]
    assert endpoint.headers[0]["Authorization"] == "Bearer sk-embedding"


def test_dimensions_are_asked_for_and_part_of_the_name(settings: LazySettings, endpoint: Endpoint) -> None:
    settings.MEMORYHUB_EMBEDDING_DIMENSIONS = DIMENSIONS
    assert embeddings.current_model() == f"openai:m@{DIMENSIONS}"
    embeddings.embed(["a"])
    assert endpoint.requests[0]["dimensions"] == DIMENSIONS
    settings.MEMORYHUB_EMBEDDING_DIMENSIONS = DIMENSIONS + 1
    with pytest.raises(EmbeddingAnswerInvalid):
        embeddings.embed(["a"])


def test_the_key_of_the_language_model_goes_nowhere_else(settings: LazySettings) -> None:
    settings.MEMORYHUB_EMBEDDING_API_KEY = ""
    assert conf.embeddings().api_key == ""
    settings.MEMORYHUB_EMBEDDING_BASE_URL = ""
    assert conf.embeddings().api_key == "sk-of-another"


def test_the_order_is_that_of_the_index(endpoint: Endpoint) -> None:
    endpoint.responds(sends_vectors(lambda rows: rows[::-1]))
    rows = embeddings.embed(["a", "b"])
    assert rows[0] @ vector("a") > rows[1] @ vector("a")


def test_at_most_64_texts_a_call(endpoint: Endpoint) -> None:
    assert len(embeddings.embed([f"text {n}" for n in range(130)])) == 130
    assert [len(request["input"]) for request in endpoint.requests] == [64, 64, 2]


INVALID = EmbeddingAnswerInvalid
FAULTS: dict[str, tuple[Response, type[EmbeddingError]]] = {
    "429": (at.fails(429), EmbeddingUnavailable),
    "500": (at.fails(500), EmbeddingUnavailable),
    "400": (at.fails(400), EmbeddingRefused),
    "413": (at.fails(413), EmbeddingRefused),
    "401": (at.fails(401), EmbeddingMisconfigured),
    "404": (at.fails(404), EmbeddingMisconfigured),
    "reset": (at.resets, EmbeddingUnavailable),
    "without end": (at.never_ends, INVALID),
    "fewer": (sends_vectors(lambda rows: rows[1:]), INVALID),
    "more": (sends_vectors(lambda rows: [*rows, {**rows[0], "index": 9}]), INVALID),
    "one twice": (sends_vectors(lambda rows: [rows[0], rows[0]]), INVALID),
    "another dimension": (altered(embedding=[1.0]), INVALID),
    "NaN": (altered(embedding=[float("nan")] * DIMENSIONS), INVALID),
    "infinite": (altered(embedding=[1e400] * DIMENSIONS), INVALID),
    "beyond float32": (altered(embedding=[1e200] * DIMENSIONS), INVALID),
    "zero": (altered(embedding=[0.0] * DIMENSIONS), INVALID),
    "null": (altered(embedding=None), INVALID),
    "words": (altered(embedding=["a"] * DIMENSIONS), INVALID),
    "base64": (altered(embedding="AAAA"), INVALID),
    "deep": (altered(embedding=[[1.0] * DIMENSIONS]), INVALID),
    "no data": (at.sends(b"{}"), INVALID),
    "no object": (at.sends(b"[]"), INVALID),
    "no JSON": (at.sends(b"\xff{"), INVALID),
    "50,000 deep": (at.sends(b'{"data":' + b"[" * 50_000), INVALID),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(endpoint: Endpoint, name: str) -> None:
    respond, expected = FAULTS[name]
    endpoint.responds(respond)
    with pytest.raises(EmbeddingError) as raised:
        embeddings.embed(["private words", "b"])
    assert type(raised.value) is expected
    assert "private" not in str(raised.value)


def test_a_wait_that_is_asked_for_is_told(endpoint: Endpoint) -> None:
    endpoint.responds(at.fails(429, Retry_After="7"))
    with pytest.raises(EmbeddingUnavailable) as raised:
        embeddings.embed(["a"])
    assert raised.value.retry_after == 7


def test_a_whole_call_ends_in_time(settings: LazySettings, endpoint: Endpoint) -> None:
    """However else it hangs: tests/llm/test_openai_backend.py, of the same transport."""
    settings.MEMORYHUB_EMBEDDING_TIMEOUT = 0.5
    endpoint.responds(at.drips_body)
    begun = time.monotonic()
    with pytest.raises(EmbeddingTimeout):
        embeddings.embed(["a"])
    assert time.monotonic() - begun < 3
