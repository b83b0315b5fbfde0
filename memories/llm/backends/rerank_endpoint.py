"""A reranker: any endpoint that speaks the protocol of Jina, Cohere and vLLM.

{"model", "query", "documents"} → {"results": [{"index", "relevance_score"}]}, at MEMORYHUB_RERANK_URL.
"""

import os
from collections.abc import Sequence
from functools import lru_cache

import httpx2

from memories import conf
from memories.exceptions import ModelError, RerankFailed
from memories.llm.answers import load_object
from memories.llm.backends.transport import BoundedTransport, deadline
from memories.llm.reranking import Candidate

# Models read 512 tokens or a few thousand of question and document together; more is cut there anyhow.
LONGEST_DOCUMENT = 4_000


def rerank(query: str, candidates: Sequence[Candidate]) -> list[float]:
    """The endpoint's relevance of each candidate, from one call bounded in time and size. Errors: RerankFailed."""
    config = conf.reranking()
    documents = [candidate.text[:LONGEST_DOCUMENT] for candidate in candidates]
    asked = {"query": query[:LONGEST_DOCUMENT], "documents": documents, "top_n": len(documents)}
    if config.model:
        asked["model"] = config.model
    body = _post(config, asked)
    try:
        rows = load_object(body.decode("utf-8"))["results"]
        scores = {row["index"]: float(row["relevance_score"]) for row in rows}
        return [scores[index] for index in range(len(candidates))]
    except (ModelError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        raise RerankFailed("The rerank endpoint's answer is not one score for each document.") from None


def _post(config: conf.RerankConfig, asked: dict[str, object]) -> bytes:
    headers = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
    try:
        with deadline(config.timeout):
            answer = _client(os.getpid(), config.url).post(
                config.url, json=asked, headers=headers, timeout=config.timeout
            )
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, ModelError) as error:
        # Its name alone: messages may hold what was sent.
        raise RerankFailed(f"The rerank endpoint gave no answer ({type(error).__name__}).") from None
    if answer.status_code != 200:
        raise RerankFailed(f"The rerank endpoint answered {answer.status_code}.")
    return answer.content


@lru_cache(maxsize=2)
def _client(_process: int, url: str) -> httpx2.Client:
    """One per process: a forked child must not use its parent's sockets and locks."""
    own = {"Accept-Encoding": "identity"}
    return httpx2.Client(transport=BoundedTransport(url), headers=own, follow_redirects=False)
