"""Any rerank endpoint: the request, the order, and every way of going wrong."""

import json
import time
from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from memories.exceptions import RerankFailed
from memories.llm.backends import rerank_endpoint
from memories.llm.reranking import Candidate
from tests.llm import endpoint as at
from tests.llm.endpoint import Endpoint, Response

FOUND = [Candidate("turn", "1", "private words", 0.9), Candidate("fact", "2", "b" * 5_000, 0.8)]


def sends_scores(*scores: object) -> Response:
    """The last document's first, as endpoints send them by relevance."""
    rows = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return at.sends(json.dumps({"model": "m", "results": rows[::-1]}).encode())


@pytest.fixture(autouse=True)
def configured(settings: LazySettings, endpoint: Endpoint) -> Iterator[None]:
    settings.MEMORYHUB_RERANK_URL = f"{endpoint.url}/rerank"
    settings.MEMORYHUB_RERANK_MODEL = "m"
    settings.MEMORYHUB_RERANK_API_KEY = "sk-rerank"
    settings.OPENAI_API_KEY = "sk-of-another"
    endpoint.responds(sends_scores(0.1, 0.7))
    yield
    rerank_endpoint._client.cache_clear()


def test_the_request_and_the_scores_in_order(endpoint: Endpoint) -> None:
    assert rerank_endpoint.rerank("which?", FOUND) == [0.1, 0.7]
    documents = ["private words", "b" * 4_000]
    assert endpoint.requests == [{"model": "m", "query": "which?", "documents": documents, "top_n": 2}]
    assert endpoint.headers[0]["Authorization"] == "Bearer sk-rerank"


def test_no_key_and_no_model_where_none_is_set(settings: LazySettings, endpoint: Endpoint) -> None:
    settings.MEMORYHUB_RERANK_API_KEY = settings.MEMORYHUB_RERANK_MODEL = ""
    rerank_endpoint.rerank("which?", FOUND)
    assert "Authorization" not in endpoint.headers[0]
    assert "model" not in endpoint.requests[0]


FAULTS: dict[str, Response] = {
    "429": at.fails(429),
    "500": at.fails(500),
    "401": at.fails(401, "private words"),
    "redirect": at.sends(b"", 302, Location="http://127.0.0.1:9/"),
    "reset": at.resets,
    "without end": at.never_ends,
    "compressed": at.sends(b"x", Content_Encoding="gzip"),
    "fewer": sends_scores(0.5),
    "words": sends_scores("private words", 1),
    "null": sends_scores(None, 1),
    "no object": at.sends(b"[]"),
    "no JSON": at.sends(b"\xff{"),
    "rows of numbers": at.sends(b'{"results": [1, 2]}'),
    "50,000 deep": at.sends(b'{"results":' + b"[" * 50_000),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(endpoint: Endpoint, name: str) -> None:
    endpoint.responds(FAULTS[name])
    with pytest.raises(RerankFailed) as raised:
        rerank_endpoint.rerank("private question", FOUND)
    assert "private" not in str(raised.value)


def test_a_whole_call_ends_in_time(settings: LazySettings, endpoint: Endpoint) -> None:
    """However else it hangs: tests/llm/test_openai_backend.py, of the same transport."""
    settings.MEMORYHUB_RERANK_TIMEOUT = 0.5
    endpoint.responds(at.drips_body)
    begun = time.monotonic()
    with pytest.raises(RerankFailed):
        rerank_endpoint.rerank("which?", FOUND)
    assert time.monotonic() - begun < 3
