"""Candidates as the gate lets them through."""

from typing import Any

from memories.models import Category, Source, Trust
from memories.reconcile.gate import Accepted


def accepted(content: str, index: int = 0, **over: Any) -> Accepted:
    """Said by the person, sure, without a key."""
    given: dict[str, Any] = {
        "category": Category.KNOWLEDGE,
        "key": "",
        "value": "",
        "tags": [],
        "confidence": 0.9,
        "importance": 0.5,
        "trust": Trust.USER,
        "source": Source.EXPLICIT,
        "cited": [1],
        "quote": "",
        "quoted": None,
        "source_error": "",
        "expires_in": None,
    }
    return Accepted(index=index, content=content, **{**given, **over})
