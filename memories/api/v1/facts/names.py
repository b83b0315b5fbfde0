"""Names that other memory systems have for the fields of a fact: who sends one is told the name that it has here.

docs/api.md has the same table ("Names of other systems").
"""

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ErrorDetail

# Of the hub itself: no caller states them.
_OF_THE_HUB = "The hub sets it: it is `{}` in its answers."
_HERE = "Here it is `{}`."
# Name elsewhere → what to say of it; `{}` stands for the name here.
ELSEWHERE: Mapping[str, str] = {
    "memory_id": _HERE.format("external_id"),
    "target_memory_id": _HERE.format("target_id"),
    "visibility": _HERE.format("scope"),
    "summary": _HERE.format("content"),
    "raw": _HERE.format("raw"),
    "structured": _HERE.format("structured"),
    "importance": _HERE.format("importance"),
    "confidence": _HERE.format("confidence"),
    "tags": _HERE.format("tags"),
    "source": _HERE.format("source"),
    "scope": _HERE.format("scope"),
    "allowed_users": _HERE.format("allowed_users"),
    "allowed_roles": _HERE.format("allowed_roles"),
    "type": "It follows from `category`.",
    "expires_in_days": f"{_HERE.format('expires_at')[:-1]}, a time.",
    "mentions": _OF_THE_HUB.format("mentions"),
    "tenant_id": "The key says which tenant it is.",
    "version": _OF_THE_HUB.format("version"),
    "created_at": f"{_OF_THE_HUB.format('created_at')} Since when it holds is `valid_from`.",
    "updated_at": _OF_THE_HUB.format("updated_at"),
    "last_accessed": _OF_THE_HUB.format("last_recalled_at"),
    "decay_score": _OF_THE_HUB.format("decay_score"),
    "model": _OF_THE_HUB.format("embedding_model"),
    "vector": "The hub makes the vectors itself.",
}
# Objects that hold such fields; here all stand beside `content`.
GROUPS = {"content", "metadata", "time", "access_control", "embedding"}


def told_here(name: str, value: Any) -> Any:
    """Details of the fault that there is no such field, at the place of each name that is known; None: none is."""
    if name in GROUPS and isinstance(value, Mapping):
        told = {}
        for inner, said in ELSEWHERE.items():
            if inner in value:
                is_beside = said.startswith("Here") and inner != "summary"
                told[inner] = [_detail(f"{said[:-1]}, beside `content`." if is_beside else said)]
        return told or None
    return [_detail(ELSEWHERE[name])] if name in ELSEWHERE else None


def _detail(said: str) -> ErrorDetail:
    return ErrorDetail(f"There is no such field. {said}", code="unknown_field")
