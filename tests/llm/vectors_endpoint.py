"""Embeddings of an endpoint on loopback, right and wrong."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.llm import endpoint as at
from tests.llm.endpoint import Handler, Response

DIMENSIONS = 8


def vector(text: str) -> list[float]:
    """Eight numbers that tell the text."""
    return [byte / 255 + 0.01 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]


def sends_vectors(change: Callable[[list[dict[str, Any]]], Sequence[Any]] = lambda rows: rows) -> Response:
    """A vector for each text of the request, after `change`."""

    def respond(handler: Handler) -> None:
        texts = handler.endpoint.requests[-1]["input"]
        rows = [{"object": "embedding", "index": place, "embedding": vector(text)} for place, text in enumerate(texts)]
        body = {"object": "list", "data": list(change(rows)), "model": "m", "usage": {}}
        at.sends(json.dumps(body).encode())(handler)

    return respond


def refuses(word: str) -> Response:
    """400 for a request in which a text holds this word."""

    def respond(handler: Handler) -> None:
        bad = any(word in text for text in handler.endpoint.requests[-1]["input"])
        (at.fails(400) if bad else sends_vectors())(handler)

    return respond


def altered(**changes: Any) -> Response:
    """The first vector's entry, changed."""
    return sends_vectors(lambda rows: [{**rows[0], **changes}, *rows[1:]])
