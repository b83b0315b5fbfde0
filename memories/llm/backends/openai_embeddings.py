"""Any OpenAI-compatible endpoint's embeddings."""

import os
from collections.abc import Sequence
from typing import Any

import httpx2
import numpy as np
import openai

from memories import conf
from memories.exceptions import (
    EmbeddingAnswerInvalid,
    EmbeddingError,
    EmbeddingMisconfigured,
    EmbeddingRefused,
    EmbeddingTimeout,
    EmbeddingUnavailable,
    ModelError,
)
from memories.llm.answers import load_object
from memories.llm.backends.openai_client import client_of
from memories.llm.backends.retry_after import seconds_to_wait
from memories.llm.backends.transport import deadline
from memories.llm.embeddings import OPENAI_PREFIX, Kind, Vectors, checked


def embed(texts: Sequence[str], kind: Kind, model: str) -> Vectors:
    """Unit vectors of the endpoint's model, from one call bounded in total time and size. Errors: EmbeddingError."""
    name, _, dimensions = model.removeprefix(OPENAI_PREFIX).partition("@")
    config = conf.embeddings()
    timeout = config.query_timeout if kind == "query" else config.timeout
    # Endpoints refuse an empty text.
    asked: dict[str, Any] = {"model": name, "input": [text or " " for text in texts], "encoding_format": "float"}
    if dimensions:
        asked["dimensions"] = int(dimensions)
    rows = _rows(_post(config, asked, timeout), count=len(texts))
    return checked(rows, count=len(texts), dimensions=int(dimensions or 0))


def preload(_model: str) -> None:
    """Nothing is left to load: this module has brought the library."""


def _post(config: conf.EmbeddingConfig, asked: dict[str, Any], timeout: float) -> bytes:
    """The body of the answer; openai's and httpx2's exceptions end here, with the texts that they may hold."""
    try:
        client = client_of(os.getpid(), config.base_url, config.api_key)
        with deadline(timeout):
            response = client.embeddings.with_raw_response.create(**asked, timeout=timeout)
        return response.http_response.content
    except openai.APIStatusError as error:
        failure = _failure(error)
    except openai.APITimeoutError:
        failure = EmbeddingTimeout()
    except (openai.OpenAIError, OSError):
        failure = EmbeddingUnavailable()
    except ModelError:
        # The transport's: larger than 8 MB, or compressed.
        failure = EmbeddingAnswerInvalid()
    except (httpx2.InvalidURL, ValueError):
        failure = EmbeddingMisconfigured()
    raise failure


def _failure(error: openai.APIStatusError) -> EmbeddingError:
    status = error.status_code
    if status >= 500 or status in (408, 409, 425, 429):
        return EmbeddingUnavailable(retry_after=seconds_to_wait(error.response.headers))
    return EmbeddingRefused() if status in (400, 413, 422) else EmbeddingMisconfigured()


def _rows(body: bytes, *, count: int) -> Vectors:
    """The vectors in the order of the texts; EmbeddingAnswerInvalid for anything but one list of numbers each."""
    try:
        items = load_object(body.decode("utf-8")).get("data")
        placed = {item["index"]: item["embedding"] for item in items or ()}
        rows = [placed[index] for index in range(count)]
        if len(items or ()) != count:
            raise EmbeddingAnswerInvalid
        with np.errstate(over="ignore"):
            return np.array(rows, dtype=np.float64).astype(np.float32)
    except (ModelError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise EmbeddingAnswerInvalid from None
